"""`gpclf demo`: the whole way on a table with error bars that ships with the package.

It runs what it prints: fit, predict, report. Then it asks whether the model is worth it: gpclf and
three classifiers of scikit-learn on the same folds, so that each row is scored once by models that
have not seen it, and the reliability diagram has all rows.
"""

import warnings
from dataclasses import dataclass, replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import typer
from threadpoolctl import threadpool_limits

from gpclf.cli import rivals, scoring
from gpclf.cli.errors import Mistake
from gpclf.cli.fit import GUESSED, FitOptions, classifier, fit, read
from gpclf.cli.options import Common, seed_option, taking
from gpclf.cli.predict import PredictOptions, predict
from gpclf.cli.report import ReportOptions, report
from gpclf.cli.splits import folds
from gpclf.cli.training import Training
from gpclf.estimators import GPClassifier
from gpclf.report import decision_surface, reliability_diagram

TABLE = "sources.csv"
SLOPE, CURVATURE = "slope", "curvature"
SKLEARN_GP = "scikit-learn GP"
FOLDS, QUICK_FOLDS = 5, 3
SURFACE_POINTS = 30  # so that each can be seen


@dataclass(frozen=True, kw_only=True)
class DemoOptions(Common):
    """The options of `gpclf demo`."""

    _panel: ClassVar[str] = "Options"

    output: Annotated[Path, typer.Option(help="Folder for what is made.")] = Path("gpclf-demo")
    seed: Annotated[int, seed_option("Seeds all that is random.")] = 0
    quick: Annotated[
        bool, typer.Option("--quick", help=f"{QUICK_FOLDS} folds instead of {FOLDS}, no report.")
    ] = False


@taking(DemoOptions, "gpclf demo --quick")
def demo(wanted: DemoOptions) -> None:
    """Show the whole way: fit, predict, report, and a comparison with scikit-learn.

    The table has 600 made-up sources of gamma rays in three classes, measured with errors.
    """
    folder = wanted.output
    _make_folder(folder)
    table = folder / TABLE
    table.write_bytes(shipped())
    options = FitOptions(
        data=str(table),
        label="class",
        errors_suffix="_err",
        output=folder / "sources.gpclf",
        seed=wanted.seed,
        quiet=wanted.quiet,
        verbose=wanted.verbose,
    )
    _walk(wanted, options)
    data = read(replace(options, quiet=True), options.data)
    found = compared(wanted, data)
    voice = wanted.voice
    count = QUICK_FOLDS if wanted.quick else FOLDS
    title = f"{len(found.y)} rows in {count} folds: each scored by models that have not seen it"
    voice.show(scoring.table(found.scores(), title))
    reliability, surface = folder / "reliability.png", folder / "decision-surface.png"
    reliability_diagram({name: (logs, found.y) for name, logs in found.logs.items()}, reliability)
    _draw_surface(data, surface, wanted.seed)
    for line in (reliability, surface):
        typer.echo(line)


def shipped() -> bytes:
    """The table that comes with the package."""
    return files("gpclf.cli").joinpath(TABLE).read_bytes()


def _make_folder(folder: Path) -> None:
    """Complain now rather than after a minute's work."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".trial").touch()
        (folder / ".trial").unlink()
    except OSError:
        raise Mistake(f"Cannot write into {folder}: name a folder with --output.") from None


def _walk(wanted: DemoOptions, options: FitOptions) -> None:
    """What a person would type, one after the other."""
    folder, say = wanted.output, wanted.voice.note
    say(f"$ gpclf fit {options.data} --label class --errors-suffix _err -o {options.output}")
    fit.of(options)
    scores = folder / "scores.csv"
    say(f"\n$ gpclf predict {options.output} {options.data} -o {scores} --keep name")
    model = str(options.output)
    predict.of(
        PredictOptions(
            model=model, data=options.data, output=scores, keep="name", quiet=wanted.quiet
        )
    )
    if wanted.quick:
        return
    page = folder / "report.html"
    say(f"\n$ gpclf report {options.output} {options.data} -o {page}")
    say("(on the rows that it learned from, for want of others: its scores are too good)")
    report.of(ReportOptions(model=model, data=options.data, output=page, quiet=wanted.quiet))
    say("")


def compared(wanted: DemoOptions, data: Training) -> scoring.OutOfFold:
    """gpclf, two usual rivals, and scikit-learn's Gaussian process."""
    _, index = np.unique(data.y, return_inverse=True)
    splits = folds(QUICK_FOLDS if wanted.quick else FOLDS, index, wanted.seed, None, None)
    make = partial(classifier, options_of(wanted.seed), GUESSED, None, GUESSED)
    methods: dict[str, Any] = {scoring.OURS: make, **dict.fromkeys(rivals.USUAL)}
    with wanted.voice.bar("comparing") as stage:
        found = scoring.out_of_fold(data, splits, methods, wanted.seed, stage)
        stage(1.0, SKLEARN_GP)
        logs = [_sklearn_gp(data, index, split, wanted.seed) for split in splits]
    return found._replace(logs={**found.logs, SKLEARN_GP: np.concatenate(logs)})


def options_of(seed: int) -> FitOptions:
    """The defaults of a fit."""
    return FitOptions(data="", label="", seed=seed)


def _sklearn_gp(data: Training, index: np.ndarray, split: Any, seed: int) -> np.ndarray:
    """ln p by Laplace's approximation, each class against the rest, on one thread."""
    from sklearn.compose import make_column_transformer
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    X, categorical = rivals.Encoded.of(data.rows.X)
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), np.flatnonzero(categorical)),
        (make_pipeline(SimpleImputer(), StandardScaler()), np.flatnonzero(~categorical)),
    )
    kernel = 1.0 * RBF(np.sqrt(X.shape[1]))
    gp = make_pipeline(encoder, GaussianProcessClassifier(kernel, random_state=seed))
    with warnings.catch_warnings(), threadpool_limits(1), np.errstate(divide="ignore"):
        # it warns of every hyper-parameter that ends at its bound
        warnings.simplefilter("ignore", ConvergenceWarning)
        gp.fit(X[split.train], index[split.train])
        return np.log(gp.predict_proba(X[split.test]))


def _draw_surface(data: Training, path: Path, seed: int) -> None:
    """Two of the features alone, their errors left aside, so that it can be drawn."""
    columns = [data.rows.X[name].to_numpy() for name in (SLOPE, CURVATURE)]
    there = ~np.isnan(columns).any(axis=0)
    X = np.stack(columns, axis=1)[there]
    clf = GPClassifier(n_inducing=SURFACE_POINTS, random_state=seed)
    y = data.y[there]
    decision_surface(clf.fit(X, y), X, y, path, (SLOPE, CURVATURE))
