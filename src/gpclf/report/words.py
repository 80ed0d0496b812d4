"""Numbers as people read them."""

import re
import unicodedata

import numpy as np

SPACE = "\N{NO-BREAK SPACE}"
LONGEST = 26  # characters of a name in a picture
_BLANKS = re.compile(r"[ \t\n\r\f\v]+")  # not the space that holds a number and its unit
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def clean(text: str) -> str:
    """What may stand in a page: one line, without control characters."""
    visible = "".join(c for c in text if unicodedata.category(c) != "Cf")  # no turned directions
    return _BLANKS.sub(" ", _CONTROL.sub("\N{REPLACEMENT CHARACTER}", visible)).strip(" ")


def short(text: str, most: int = LONGEST) -> str:
    """A name with its middle left out where it is long."""
    text = clean(text)
    return text if len(text) <= most else f"{text[: most - 9]}…{text[-8:]}"


def percent(share: float, digits: int | None = None) -> str:
    """A share of 1; with a decimal where it is near 0 or 1."""
    if np.isnan(share):
        return "—"
    if digits is None:
        digits = 0 if 0.02 <= share <= 0.98 or share in (0, 1) else 1
    value = round(100 * share, digits)
    if value == 0 < share:
        return f"below{SPACE}{10**-digits:g}{SPACE}%"
    if value == 100 and share < 1:
        return f"above{SPACE}{100 - 10**-digits:g}{SPACE}%"
    return f"{value:.{digits}f}{SPACE}%"


def number(value: float, digits: int = 3) -> str:
    """A score or a measurement, with so many decimals, none if it is large."""
    if not np.isfinite(value):
        return "—" if np.isnan(value) else ("∞" if value > 0 else "−∞")
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.{digits}f}"
    return text.replace("-", "−" if text.strip("-0.,") else "")


def measured(value: float, digits: int = 4) -> str:
    """An entry of a table, with about so many digits."""
    text = f"{value:,.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.{digits}g}"
    return text.replace("-", "−")


def count(value: int) -> str:
    """A whole number."""
    return f"{value:,}"


def rows(value: int) -> str:
    """So many rows."""
    return f"{value:,}{SPACE}row" + ("" if value == 1 else "s")


def listed(names: list[str]) -> str:
    """a, b and c."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
