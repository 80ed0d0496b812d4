"""The report itself: one page that needs nothing but itself, and the numbers in it."""

import os
from html import escape
from importlib.resources import files
from typing import Any, NamedTuple

from gpclf import storage
from gpclf.report import behaviour, closing, judgement
from gpclf.report.answers import summary
from gpclf.report.findings import Findings, Tell, find, plain
from gpclf.report.markup import Markup, element, joined
from gpclf.report.subject import Subject, Table
from gpclf.report.words import rows, short

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
FRAME_HEIGHT = "640"


class Report:
    """A page about a classifier and a table.

    `html` is the page as text, `figures` its numbers as dictionaries, lists and numbers. `save`
    writes the page; in a notebook a report shows itself.
    """

    def __init__(self, html: str, figures: dict[str, Any]):
        self.html = html
        self.figures = figures

    def save(self, path: str | os.PathLike) -> None:
        """Write the page as one file, there completely or not at all."""
        storage.write_file(path, self.html.encode())

    def __repr__(self) -> str:
        return f"<report on {rows(self.figures['n_rows'])}, {len(self.html):,} characters>"

    def _repr_html_(self) -> str:
        """The page in a frame of its own, in which nothing runs."""
        return (
            f'<iframe sandbox="" title="Report" width="100%" height="{FRAME_HEIGHT}" '
            f'style="border:1px solid #8888" srcdoc="{escape(self.html)}"></iframe>'
        )


class Section(NamedTuple):
    """A part of the page."""

    name: str
    title: str
    content: Markup


def make_report(
    subject: Subject, table: Table, title: str | None, date: str | None, seed: int, tell: Tell
) -> Report:
    """Ask, judge, and write the page; the same seed gives the same page."""
    found, logs = find(subject, table, seed, tell)
    tell("the page", 0.93)
    parts = sections(subject, table, found, logs)
    html = page(title or _title(subject), _facts(subject, found, date), parts)
    figures = {"classes": [str(c) for c in subject.classes], "features": list(subject.names)}
    figures |= plain(found)
    tell("done", 1.0)
    return Report(html, figures)


def sections(subject: Subject, table: Table, found: Findings, logs: Any) -> list[Section]:
    """All parts in their order; those that need labels only where there are some."""
    parts = [Section("summary", "Summary", summary(subject, table, found))]
    judged = found.judged
    if judged is not None:
        parts += [
            Section("scores", "Scores", judgement.scores(subject, judged)),
            Section("reliability", "Reliability", judgement.reliability(judged)),
            Section("confusion", "Confusion", judgement.confusion(subject, judged)),
            Section("curves", "Curves by class", judgement.curves(subject, judged)),
        ]
    uncertainty = behaviour.uncertainty(subject, table, found, logs)
    parts += [
        Section("importance", "What each feature matters", behaviour.importance(subject, found)),
        Section("dependence", "How features matter", behaviour.dependence(subject, found)),
        Section("uncertainty", "Where the model does not know", uncertainty),
        Section("drift", "Drift", behaviour.drift(subject, found)),
        Section("history", "Learning", closing.history(subject)),
        Section("card", "Model card", closing.card(subject)),
    ]
    return parts


def _title(subject: Subject) -> str:
    return "Model report" if subject.label is None else f"Model report: {subject.label}"


def _facts(subject: Subject, found: Findings, date: str | None) -> str:
    version = subject.card.get("Versions", {}).get("gpclf", "")
    known = "with their labels" if found.judged is not None else "without labels"
    said = f"{rows(found.n_rows)} {known} · gpclf {version}".rstrip()
    return said if date is None else f"{said} · {date}"


def page(title: str, facts: str, parts: list[Section]) -> str:
    """The whole page."""
    style = files("gpclf.report").joinpath("style.css").read_text(encoding="utf-8")
    links = [element("li", element("a", part.title, href=f"#{part.name}")) for part in parts]
    body = [
        element(
            "section",
            element("h2", part.title, id=f"{part.name}-title"),
            part.content,
            id=part.name,
            aria_labelledby=f"{part.name}-title",
        )
        for part in parts
    ]
    head = element(
        "head",
        element("meta", charset="utf-8"),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", short(title, 120)),
        Markup('<link rel="icon" href="data:,">'),
        element("style", Markup(style)),
    )
    contents = element("nav", element("ol", *links), aria_label="Contents")
    header = element("header", element("h1", short(title, 120)), element("p", facts), contents)
    skip = element("a", "To the summary", href="#summary", class_="skip")
    inside = element("body", skip, header, element("main", joined(body)))
    return f"<!DOCTYPE html>\n{element('html', head, inside, lang='en')}\n"
