"""`gpclf demo`: gpclf and two classifiers of scikit-learn, on data that needs no download.

Every method learns from the same rows in the same order and is scored on the same test rows.
scikit-learn's Gaussian process costs O(C N³), so it gets as many rows as half a minute allows.
"""

import os
import time
import warnings
from contextlib import suppress
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from jaxtyping import Float, Int
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from gpclf.estimators import GPClassifier
from gpclf.report import Scores, decision_surface, reliability_diagram, scores

RIVAL_SECONDS = 30.0
PROBE_ROWS = 100
QUICK_ROWS = 150
DATA_SETS = {"digits": load_digits, "breast cancer": load_breast_cancer}


@dataclass(frozen=True)
class Problem:
    """One split of one data set; labels are 0 … C − 1."""

    X_train: Float[np.ndarray, "N D"]
    X_test: Float[np.ndarray, "T D"]
    y_train: Int[np.ndarray, "N"]
    y_test: Int[np.ndarray, "T"]


@dataclass(frozen=True)
class Result:
    """What one method made of one problem from its first `rows` training rows."""

    rows: int
    seconds: float
    log_probabilities: Float[np.ndarray, "T C"]
    scores: Scores


def demo(
    output: Annotated[Path, typer.Option(help="Folder for the two pictures.")] = Path("gpclf-demo"),
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seeds all that is random.")] = 0,
    quick: Annotated[
        bool, typer.Option("--quick", help=f"Keep scikit-learn's GP to {QUICK_ROWS} rows.")
    ] = False,
) -> None:
    """Compare gpclf with scikit-learn on digits and breast cancer, and draw two pictures."""
    _make_folder(output)
    console = Console()
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("loading", total=3 * len(DATA_SETS) + 1)
        problems, results = {}, {}
        for name, load in DATA_SETS.items():
            X, y = load(return_X_y=True)
            split = train_test_split(X, y, test_size=0.25, stratify=y, random_state=seed)
            problems[name], results[name] = Problem(*map(np.asarray, split)), {}
            for method, classifier in _methods(X.shape[1], seed).items():
                progress.update(task, description=f"{name}: {method}")
                rows = len(problems[name].y_train)
                if method == "scikit-learn GP":
                    rows = QUICK_ROWS if quick else _affordable(classifier, problems[name])
                results[name][method] = _run(classifier, problems[name], rows)
                progress.advance(task)
        console.print(_table(results, quick))
        progress.update(task, description="pictures")
        try:
            last_lines = _draw(output, problems["digits"], results["digits"], seed)
        except ImportError as error:  # no matplotlib: its text says how to get it
            last_lines = [error]
    for line in last_lines:
        typer.echo(line)


def _make_folder(folder: Path) -> None:
    """Complain now rather than after a minute's work."""
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        typer.echo(f"Cannot write into {folder}: name a folder with --output.", err=True)
        raise typer.Exit(2)


def _methods(n_features: int, seed: int) -> dict[str, Any]:
    kernel = 1.0 * RBF(np.sqrt(n_features))
    return {
        "gpclf": GPClassifier(random_state=seed),
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        "scikit-learn GP": make_pipeline(
            StandardScaler(), GaussianProcessClassifier(kernel, random_state=seed)
        ),
    }


def _run(classifier: Any, problem: Problem, rows: int) -> Result:
    start = time.perf_counter()
    _fit(classifier, problem, rows)
    log_p = _log_probabilities(classifier, problem.X_test)
    seconds = time.perf_counter() - start
    return Result(rows, seconds, log_p, scores(log_p, problem.y_test))


def _fit(classifier: Any, problem: Problem, rows: int) -> None:
    with warnings.catch_warnings():
        # scikit-learn's GP warns of every hyper-parameter that ends at its bound.
        warnings.simplefilter("ignore", ConvergenceWarning)
        if isinstance(classifier, GPClassifier):
            classifier.fit(problem.X_train[:rows], problem.y_train[:rows])
        else:
            # Threads slow such small matrices down, on a busy machine a hundredfold.
            with threadpool_limits(1):
                classifier.fit(problem.X_train[:rows], problem.y_train[:rows])


def _log_probabilities(classifier: Any, X: Float[np.ndarray, "T D"]) -> Float[np.ndarray, "T C"]:
    if isinstance(classifier, GPClassifier):
        return classifier.predict_log_proba(X)
    # scikit-learn's GP has no predict_log_proba; a probability that underflows has log −∞.
    with np.errstate(divide="ignore"):
        return np.log(classifier.predict_proba(X))


def _affordable(classifier: Any, problem: Problem) -> int:
    """How many rows `RIVAL_SECONDS` allow, by timing ever larger fits; seconds grow as rows³."""
    rows = PROBE_ROWS
    while True:
        start = time.perf_counter()
        _fit(classifier, problem, rows)
        growth = (RIVAL_SECONDS / (time.perf_counter() - start)) ** (1 / 3)
        if growth < 2 or rows >= len(problem.y_train):
            return min(int(rows * growth), len(problem.y_train))
        rows *= 2


def _table(results: dict[str, dict[str, Result]], quick: bool) -> Table:
    limit = f"{QUICK_ROWS} rows" if quick else f"the rows of a {RIVAL_SECONDS:.0f} s fit"
    table = Table(
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),  # all columns in 80 characters
        caption="rows: learned from; seconds: to fit and predict. The rivals fit on one thread; "
        f"scikit-learn GP has at most {limit}.",
    )
    for heading in ("data set", "method"):
        table.add_column(heading, no_wrap=True)
    for heading in ("rows", "accuracy", "NLL", "Brier", "ECE", "seconds"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, of_method in results.items():
        for method, result in of_method.items():
            figures = (f"{figure:.3f}" for figure in astuple(result.scores))
            table.add_row(name, method, str(result.rows), *figures, f"{result.seconds:.1f}")
        table.add_section()
    return table


def _draw(folder: Path, digits: Problem, results: dict[str, Result], seed: int) -> list[Path]:
    surface, reliability = folder / "decision-surface.png", folder / "reliability.png"
    curves = {name: (result.log_probabilities, digits.y_test) for name, result in results.items()}
    reliability_diagram(curves, reliability)
    X, y = _pinwheel(seed)
    # Few inducing points, so that each can be seen.
    classifier = GPClassifier(n_inducing=30, random_state=seed).fit(X, y)
    decision_surface(classifier, X, y, surface)
    return [surface, reliability]


def _pinwheel(seed: int) -> tuple[Float[np.ndarray, "N 2"], Int[np.ndarray, "N"]]:
    """Three curved arms that overlap near the centre."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(3), 80)
    radius = rng.uniform(0.2, 2.0, y.size)
    angle = 2 * np.pi * y / 3 + 0.9 * radius + 0.4 * rng.standard_normal(y.size)
    return radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1), y
