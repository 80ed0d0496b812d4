"""HTML, made so that nothing from a table or a model becomes markup."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from gpclf.report.words import clean

EMPTY = frozenset({"meta", "br", "hr", "col"})


class Markup(str):
    """Text that is HTML already."""


def text(value: Any) -> Markup:
    """A value as text of a page."""
    return value if isinstance(value, Markup) else Markup(escape(clean_edges(str(value))))


def clean_edges(value: str) -> str:
    """Cleaned, with the spaces at its ends, which separate it from its neighbours."""
    first = " " if value[:1].isspace() else ""
    last = " " if value[1:] and value[-1].isspace() else ""
    return first + clean(value) + last


def element(name: str, /, *children: Any, **attributes: Any) -> Markup:
    """<name …>children</name>; `class_` is class, `aria_label` aria-label; None is left out."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(clean(str(value)))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in EMPTY:
        return Markup(f"<{name}{given}>")
    inside = "".join(text(child) for child in children if child is not None)
    return Markup(f"<{name}{given}>{inside}</{name}>")


def joined(parts: Iterable[Any]) -> Markup:
    """Parts one after the other."""
    return Markup("".join(text(part) for part in parts if part is not None))


def table(
    caption: str,
    headings: Sequence[str],
    rows: Iterable[Sequence[Any]],
    words: int = 1,
    narrow: bool = False,
) -> Markup:
    """A table in a box that scrolls by itself; its first `words` columns are words, not numbers.

    `narrow`: the first column holds short entries only.
    """
    kinds = ["" if place < words else "n" for place in range(len(headings))]
    head = [
        element("th", heading, scope="col", class_=kind or None)
        for heading, kind in zip(headings, kinds, strict=True)
    ]
    body = []
    for row in rows:
        first, *others = row
        cells = [element("th", first, scope="row")]
        cells += [
            element("td", cell, class_=kind or None)
            for cell, kind in zip(others, kinds[1:], strict=True)
        ]
        body.append(element("tr", *cells))
    inside = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *head)),
        element("tbody", *body),
    )
    kind = "scroll narrow" if narrow else "scroll"
    return element("div", inside, class_=kind, tabindex="0", role="region", aria_label=caption)


def figure(finding: str, caption: Any, picture: Markup, numbers: Markup | None) -> Markup:
    """A picture below the sentence that it shows, and its numbers as a table to open."""
    opened = element("summary", "The numbers as a table")
    return element(
        "figure",
        element("figcaption", element("h3", finding), element("p", caption)),
        picture,
        None if numbers is None else element("details", opened, numbers),
    )
