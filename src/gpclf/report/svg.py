"""Pictures by matplotlib as SVG inside a page: its colours are the page's, its text is text.

Colours that are drawn with stand for variables of the page's style, which differ in light and dark.
"""

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING, Any

from gpclf.report.markup import Markup
from gpclf.report.words import clean

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, SOFT, LINE, PAPER = "#010203", "#040506", "#070809", "#0a0b0c"
SERIES = ("#110001", "#110002", "#110003", "#110004", "#110005", "#110006")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (6, 1.5, 1.5, 1.5)))
DASHES = (*DASHES, (0, (3, 1.2)), (0, (8, 2)))
_VARIABLES = {INK: "--ink", SOFT: "--soft", LINE: "--line", PAPER: "--paper"}
_VARIABLES |= {colour: f"--s{i + 1}" for i, colour in enumerate(SERIES)}
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 10,
    "axes.labelsize": 10,
    "xtick.labelsize": 9.5,
    "ytick.labelsize": 9.5,
    "legend.fontsize": 9.5,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": SOFT,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": LINE,
    "grid.linewidth": 0.7,
    "axes.grid": False,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.unicode_minus": True,
    "lines.linewidth": 1.8,
    "legend.frameon": False,
    "path.simplify": True,
}
WIDTH = 5.0  # inches, 360 points: the picture is that wide on a telephone


@contextmanager
def drawing(height: float) -> Iterator[tuple["Figure", "Axes"]]:
    """A new picture of one pair of axes; settings of the process are as before afterwards."""
    import matplotlib  # slow to import

    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        warnings.filterwarnings("ignore", message=".*[Gg]lyph")  # the reader's fonts have it
        from matplotlib.figure import Figure

        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        yield figure, figure.subplots()


def written(figure: "Figure", label: str, name: str) -> Markup:
    """The picture as an element of a page; `name` makes its inner names unlike those of others."""
    import matplotlib

    buffer = io.StringIO()
    matplotlib.rcParams["svg.hashsalt"] = name
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(buffer, format="svg", metadata=nothing)
    found = buffer.getvalue()
    found = found[found.index("<svg") :]
    found = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", found, flags=re.DOTALL)
    found = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", found, flags=re.DOTALL)
    found = re.sub(r' (width|height)="[^"]*pt"', "", found, count=2)
    found = re.sub(r"<[^>]*>", _of_page, found)
    found = re.sub(r"\s*\n\s*", " ", found).strip()
    label = escape(clean(label))
    return Markup(found.replace("<svg", f'<svg role="img" aria-label="{label}"', 1))


def _of_page(match: re.Match) -> str:
    """A tag as the page has it: colours by name, shorter numbers, no names that nobody uses."""
    tag = match.group()
    if tag.startswith("<g "):
        tag = re.sub(r' id="[^"]*"', "", tag)
    tag = re.sub(r' xmlns(:xlink)?="[^"]*"', "", tag).replace("xlink:href", "href")
    tag = re.sub(r' transform="rotate\(-0 [^"]*"', "", tag)
    tag = re.sub(r"font-family: [^;\"]*;? ?", "", tag)
    tag = re.sub(r"(font: [\d.]+px) [^;\"]*", r"\1 var(--sans)", tag)
    for colour, variable in _VARIABLES.items():
        tag = tag.replace(colour, f"var({variable})")
    return re.sub(r"(\d+\.\d\d)\d+", r"\1", tag)
