"""`gpclf info`: what a model file is, what it learned from, and how good it was."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer
from rich.table import Table

from gpclf.cli import console, scoring
from gpclf.cli.findings import WORDS
from gpclf.cli.models import Opened, open_model
from gpclf.cli.options import Common, taking
from gpclf.report import Interval

MOST_FEATURES = 30
NOT_KNOWN = "not known: the model was saved without notes"


@dataclass(frozen=True, kw_only=True)
class InfoOptions(Common):
    """The options of `gpclf info`."""

    _panel: ClassVar[str] = "Options"

    model: Annotated[str, typer.Argument(help="A model file.")]
    json: Annotated[bool, typer.Option("--json", help="Print it for machines.")] = False


@taking(InfoOptions, "gpclf info sources.gpclf", "gpclf info sources.gpclf --json")
def info(wanted: InfoOptions) -> None:
    """Show what a model is, what it was trained on, its parameters and its scores."""
    opened = open_model(wanted.model)
    if wanted.json:
        typer.echo(scoring.printed(described(opened)))
        return
    for table in (summary(opened), features(opened), *scores(opened)):
        wanted.voice.show(table)
        typer.echo()
    if wanted.verbose:
        settings = opened.notes.get("settings") or opened.clf.get_params()
        rows = [(name, value) for name, value in settings.items()]
        wanted.voice.show(console.table(("option", "value"), rows))


def described(opened: Opened) -> dict[str, Any]:
    """All of it as JSON can hold it."""
    clf = opened.clf
    return {
        "file": opened.path,
        "bytes": Path(opened.path).stat().st_size,
        "classes": [_plain(each) for each in clf.classes_],
        "features": [
            {"name": name, "relevance": float(share)}
            for name, share in zip(_names(opened), clf.relevance_, strict=True)
        ],
        "kernel": str(clf.kernel_),
        "likelihood": str(clf.likelihood_),
        "inducing_points": int(clf.inducing_points_.shape[-2]),
        "elbo": float(clf.elbo_),
        "loo_score": None if clf.loo_score_ is None else float(clf.loo_score_),
        "stopped": clf.stopped_,
        "rows": int(clf.n_samples_seen_),
        "notes": clf.notes_,
    }


def summary(opened: Opened) -> Table:
    """One fact a line."""
    clf, notes = opened.clf, opened.notes
    label = notes.get("label") or {}
    counts = label.get("classes") or {}
    classes = [str(name) for name in clf.classes_[:12]]
    shown = ", ".join(f"{name} {counts[name]:,}" if name in counts else name for name in classes)
    errors = ", ".join(f"{name} ± {column}" for name, column in notes.get("errors", {}).items())
    facts = {
        "file": f"{opened.path}, {Path(opened.path).stat().st_size / 1024:,.0f} kB",
        "made": f"{notes['created']} by gpclf {notes['gpclf']}"
        if "created" in notes
        else NOT_KNOWN,
        "data": f"{notes['data']}, label {label['name']!r}" if "data" in notes else NOT_KNOWN,
        "rows": f"{clf.n_samples_seen_:,}",
        "classes": shown + (", …" if len(clf.classes_) > 12 else ""),
        "errors": errors,
        "left out": ", ".join(each["name"] for each in notes.get("dropped", [])),
        "kernel": str(clf.kernel_),
        "likelihood": str(clf.likelihood_),
        "inducing points": f"{clf.inducing_points_.shape[-2]:,}",
        "bound": f"{clf.elbo_ / max(clf.n_samples_seen_, 1):.4f} a row",
        "left-out score": "" if clf.loo_score_ is None else f"{clf.loo_score_:.4f} a row",
        "stopped": clf.stopped_,
    }
    return console.table(("model", ""), [(name, fact) for name, fact in facts.items() if fact])


def features(opened: Opened) -> Table:
    """What it learned from, the most relevant first."""
    clf = opened.clf
    kinds = {each["name"]: each["kind"] for each in opened.notes.get("features", [])}
    order = (-clf.relevance_).argsort(kind="stable")[:MOST_FEATURES]
    names = _names(opened)
    rows = [
        (
            names[i],
            WORDS.get(kinds.get(names[i], ""), _level(opened, i)),
            f"{clf.relevance_[i]:.3f}",
        )
        for i in order.tolist()
    ]
    more = len(names) - len(rows)
    caption = f"and {more:,} more features" if more else None
    headings = ("feature", "taken as", "relevance")
    return console.table(headings, rows, headings[2:], caption=caption)


def scores(opened: Opened) -> list[Table]:
    """As they were found at the fit."""
    found = []
    for name, methods in (opened.notes.get("scores") or {}).items():
        of = {
            method: {metric: Interval(**_numbers(each)) for metric, each in scores.items()}
            for method, scores in methods.items()
        }
        found.append(scoring.table(of, f"Scores on {name}"))
    return found


def _numbers(parts: dict[str, float | None]) -> dict[str, float]:
    return {name: float("nan") if part is None else part for name, part in parts.items()}


def _names(opened: Opened) -> list[str]:
    names = getattr(opened.clf, "feature_names_in_", None)
    if names is None:
        return [f"column {i}" for i in range(opened.clf.n_features_in_)]
    return [str(name) for name in names]


def _level(opened: Opened, column: int) -> str:
    return "number" if opened.clf.categories_[column] is None else "category"


def _plain(label: Any) -> Any:
    return label.item() if hasattr(label, "item") else label
