"""From a table and parameters to a posterior: what `fit` does once all is checked."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.utils import check_random_state

from gpclf import inducing
from gpclf.compilation import compiled_once
from gpclf.data import (
    ArrayRows,
    Block,
    Columns,
    Rows,
    Scaling,
    Summary,
    Survey,
    blocks,
    fingerprint,
)
from gpclf.data.sources import Streamed
from gpclf.estimators.callbacks import Snapshot, callbacks_of, held_out, judging
from gpclf.estimators.checkpoints import Checkpoint, Kept
from gpclf.estimators.measurement_error import (
    RESAMPLE,
    errors_for,
    inputs_for,
    mask_of,
    typical,
)
from gpclf.estimators.parameters import check_full, is_auto
from gpclf.estimators.points import how_many, points_given
from gpclf.estimators.progress import shown
from gpclf.gaussian import Natural
from gpclf.inference import Engine, Plan, Progress, Result, Settings, Sizes, Watch, engine_from, fit
from gpclf.inference.engines import Asked
from gpclf.inference.fresh_bound import fresh_bound
from gpclf.inference.incremental import absorb, grown
from gpclf.inference.plan import BATCH_ROWS, CHUNK_ROWS
from gpclf.inputs import Exact, Inputs
from gpclf.kernels import FAMILIES, kernel_from
from gpclf.likelihoods import Likelihood, likelihood_from
from gpclf.linalg import one_thread
from gpclf.model import Model, Theta, one_per_function, prepare
from gpclf.posterior import Posterior, coupled, freeze, thawed
from gpclf.precision import cast, double_precision, row_dtype

DEFAULT_KERNEL = "matern52"
FEWER_EVALUATIONS = 36  # of many functions, whose kernel rows left out and more points mend
CANDIDATES = 2000  # rows of a piece that may become inducing points
BATCHES_BY_ROW = 800  # at least, where rows have parameters: each step moves those of a batch
FEWEST_AND_MOST = 50, BATCH_ROWS  # rows of it
VALIDATION_SHARE = 0.1  # of the rows, kept apart where early stopping is merely asked for


INTERRUPTED = (
    "The fit was interrupted: the classifier is fitted as far as it had come, and may not have "
    "learned its kernel nor seen all rows."
)


class FitInterrupted(UserWarning):
    """Ctrl-C ended a fit, and it left the last good model."""


Labelled = Block | Streamed


class Task(NamedTuple):
    """A fit, ready to run."""

    training: Labelled
    scaling: Scaling
    rows: Rows
    likelihood: Likelihood
    inputs: Inputs
    engine: Engine
    settings: Settings
    n_latent: int
    n_classes: int

    @property
    def adds_points(self) -> bool:
        """Whether there will be more inducing points than are learned."""
        return self.settings.points > 0

    def plan(self, n_inducing: int, max_epochs: int | str) -> Plan:
        """What it will do, with so many inducing points."""
        nodes, n_rows = self.inputs.places, self.training.n_rows
        sizes = Sizes(n_rows, self.n_latent, n_inducing, self.scaling.width, nodes)
        plan = self.engine.plan(sizes, max_epochs)
        if self.adds_points and max_epochs == "auto":
            plan = plan._replace(evaluations=FEWER_EVALUATIONS)
        if max_epochs == "auto" and self.inputs.by_row and plan.optimizer == "adam":
            enough = -(-BATCHES_BY_ROW * plan.batch_rows // n_rows)
            plan = plan._replace(max_epochs=max(plan.max_epochs, enough))
        return plan


@compiled_once
@double_precision
def learn(
    clf: Any,
    training: Labelled,
    columns: Columns,
    classes: np.ndarray,
    began: float,
    checkpoint: Checkpoint | None = None,
) -> None:
    """Build model, inducing points and plan; run the engine; keep what it found."""
    check_full(clf.n_inducing, training.n_rows)
    rng, kept = _begun(clf, training, columns, classes, checkpoint)
    likelihood = likelihood_from(clf.likelihood, len(classes))
    survey, apart = training.survey(columns.counts, len(classes)), None
    summary = Summary.found(survey, columns.counts)
    if clf.early_stopping is not False:
        share = VALIDATION_SHARE if clf.early_stopping is True else float(clf.early_stopping)
        assert isinstance(training, Block)  # else it was refused
        used, validation = held_out(share, training.y, rng)
        training, apart = training.part(used), training.part(validation)
        survey = training.survey(columns.counts, len(classes))
    again = clf.warm_start and clf._fits_on(columns, classes, likelihood)
    scaling = clf._scaling if again else _scaling_of(clf, survey, columns)
    task = _task(clf, training, survey, scaling, likelihood)
    theta, start = _again(clf, task) if again else _start(clf, task, columns, rng)
    plan = task.plan(theta.Z.shape[-2], clf.max_epochs)
    clf._columns, clf._scaling = columns, scaling

    def stopped_at(line: Progress) -> Posterior:
        return freeze(line.theta, line.q, task.settings.jitter, task.settings.dtype)

    def usual(line: Progress) -> np.ndarray | None:
        return typical(line.theta.model.inputs, survey.typical, scaling)

    judge = None if apart is None else judging(*apart, scaling, stopped_at, usual)

    def run(report: Callable[[Progress], bool]) -> Result:
        limit = np.inf if clf.max_seconds is None else float(clf.max_seconds)
        watch = Watch(report, judge, began, limit, None if kept is None else kept.journal(theta))
        return fit(theta, start, task.rows, task.engine, plan, task.settings, rng, watch)

    result = _watched(clf, classes, stopped_at, usual, run)
    clf.classes_ = classes
    clf.training_summary_, clf.n_samples_seen_ = summary, training.n_rows
    clf.history_ = result.history
    clf.stopped_ = result.stopped
    clf.jitter_ = result.jitter
    clf.notes_ = None  # those of another fit
    clf.selection_ = result.tried
    clf.loo_score_, clf.loo_unsure_, logs = result.left_out or (None, None, None)
    clf.loo_log_proba_ = logs if logs is not None and len(logs) == training.n_rows else None
    clf.input_noise_std_ = typical(result.theta.model.inputs, survey.typical, scaling)
    clf._keep(freeze(result.theta, result.q, result.jitter, task.settings.dtype))
    clf.elbo_ = result.objective
    if result.interrupted:  # nor should what called go on: a search, or a script
        more = "" if checkpoint is None else f" resume=True goes on from {checkpoint.path}."
        warnings.warn(INTERRUPTED + more, FitInterrupted, stacklevel=2)
        raise KeyboardInterrupt
    if task.inputs.estimated:
        end, rows = clf.posterior_, task.rows.in_chunks(plan.chunk_rows)
        clf.elbo_ = fresh_bound(replace(end.prepared, model=result.theta.model), end.q, rows)


def _begun(
    clf: Any,
    training: Labelled,
    columns: Columns,
    classes: np.ndarray,
    checkpoint: Checkpoint | None,
) -> tuple[np.random.Generator, Kept | None]:
    """The random numbers of a fit, and where it is kept if that is asked for."""
    seed = check_random_state(clf.random_state).randint(2**31 - 1)
    if checkpoint is None:
        return np.random.default_rng(seed), None
    kept = checkpoint.begun(clf, _told(clf, training, columns, classes), seed)
    return np.random.default_rng(kept.seed), kept


def _told(clf: Any, training: Labelled, columns: Columns, classes: np.ndarray) -> dict[str, str]:
    """All that a fit learns from, by its fingerprint."""
    found = training.fingerprints()
    of_columns = [None if own is None else np.asarray(own).tolist() for own in columns.levels]
    found |= {"the classes": fingerprint(classes), "the levels": fingerprint(repr(of_columns))}
    if clf.warm_start and hasattr(clf, "posterior_"):
        leaves = [fingerprint(leaf) for leaf in jax.tree.leaves(clf.posterior_)]
        found["the results of the fit before"] = fingerprint(leaves)
    return found


def _scaling_of(clf: Any, survey: Survey, columns: Columns) -> Scaling:
    """As asked for; errors of inputs are those of what is not bent."""
    exact = clf.input_noise is None and clf.input_noise_std is None and survey.typical is None
    kind = "standard" if clf.scaling == "robust" and not exact else clf.scaling
    return Scaling.found(survey, columns.counts, kind)


def _task(
    clf: Any, training: Labelled, survey: Survey, scaling: Scaling, likelihood: Likelihood
) -> Task:
    """All that the parameters say, or a sentence about what cannot be done together."""
    n_rows, n_classes = training.n_rows, len(survey.counts)
    names = getattr(clf, "feature_names_in_", None)
    exact = mask_of(clf.noisy_features, len(scaling.levels), names)
    inputs = inputs_for(
        clf.input_noise,
        clf.input_noise_std,
        survey.typical,
        exact,
        scaling,
        n_classes,
        n_rows,
    )
    redraw, engine = clf.input_noise == RESAMPLE, engine_from(clf.inference)
    engine.refuse(
        Asked(
            likelihood,
            inputs,
            n_classes,
            shared=clf.share == "both",
            even=survey.even,
            noisy=type(inputs) is not Exact or clf.input_noise is not None,
        )
    )
    dtype = row_dtype(clf.precision, n_rows * inputs.places)
    rows = training.rows(scaling, dtype, redraw)
    if inputs.by_row:
        if not isinstance(rows, ArrayRows):
            raise ValueError(
                'input_noise="parametric" has parameters for each row, which need rows in memory: '
                'use "latent" for a table on disk.'
            )
        few = int(np.clip(n_rows // 8, *FEWEST_AND_MOST))
        rows, engine = rows.drawing(inputs.places), engine.on_batches(few)
    elif redraw:
        engine = engine.on_batches()
    n_latent = likelihood.n_latent(n_classes)
    settings = Settings(
        float(clf.tol),
        dtype,
        clf.n_inducing is not None and bool(engine.get_params()["learn_inducing"]),
        FAMILIES if clf.kernel is None else (),
        _most_points(clf, engine, inputs, n_latent, n_rows),
    )
    return Task(training, scaling, rows, likelihood, inputs, engine, settings, n_latent, n_classes)


def _most_points(clf: Any, engine: Engine, inputs: Inputs, n_latent: int, n_rows: int) -> int:
    """How many inducing points there may be once those of the start are learned; 0: no more."""
    free = is_auto(clf.n_inducing) and clf.share == "both" and type(inputs) is Exact
    return inducing.most_points(n_rows) if free and engine.adds_points(n_latent) else 0


def _model(clf: Any, task: Task, distance: float) -> Model:
    """The model with its start values, for rows with this median distance."""
    kernel = kernel_from(DEFAULT_KERNEL if clf.kernel is None else clf.kernel)
    kernel = kernel.started(distance, task.scaling.width)
    one_kernel, one_set = (clf.share in ("both", part) for part in ("kernel", "points"))
    if not one_kernel:
        kernel = one_per_function(kernel, task.n_latent)
    model = Model(kernel, task.likelihood, task.inputs, one_kernel, one_set)
    return cast(model, jnp.float64)


def _start(
    clf: Any, task: Task, columns: Columns, rng: np.random.Generator
) -> tuple[Theta, int | Natural]:
    """A first θ, while XLA compiles on another core what follows."""
    X, forward, width = task.training.inputs, task.scaling.forward, task.scaling.width
    given = points_given(clf, clf.n_inducing, columns, task.scaling)
    count = how_many(clf.n_inducing, given, len(X), width, task.n_classes)
    if task.adds_points:
        count = min(count, inducing.FEW)
    with one_thread():
        if given is not None or (count is not None and count < len(X)):  # else Z is not counted
            plan = task.plan(int(count), clf.max_epochs)
            first = _model(clf, task, 1.0)
            task.engine.compile_ahead(first, int(count), task.rows, task.n_latent, plan)
        Z = inducing.choose(X, count, rng, forward) if given is None else given
        model = _model(clf, task, inducing.median_distance(X, rng, forward))
    return Theta(model, Z if model.shared_points else np.stack([Z] * task.n_latent)), task.n_latent


def _again(clf: Any, task: Task) -> tuple[Theta, Natural | int]:
    """Where the last fit ended; parameters of rows start anew, and points that are to be added."""
    theta, q = thawed(coupled(clf.posterior_))
    inputs = theta.model.inputs.for_rows(task.training.n_rows, task.scaling.width)
    theta = theta._replace(model=replace(theta.model, inputs=inputs))
    if task.adds_points:
        return theta._replace(Z=theta.Z[: inducing.FEW]), task.n_latent
    return theta, q


def _watched(
    clf: Any,
    classes: np.ndarray,
    stopped_at: Callable[[Progress], Posterior],
    usual: Callable[[Progress], np.ndarray | None],
    run: Callable[[Callable[[Progress], bool]], Result],
) -> Result:
    """A fit that a bar, the user's function and scikit-learn's callbacks hear of."""

    def attributes(line: Progress) -> dict[str, Any]:
        found = {"posterior_": stopped_at(line), "classes_": classes}
        return found | {"input_noise_std_": usual(line)}

    with shown(clf.verbose) as draw, callbacks_of(clf, attributes) as tell:

        def report(line: Progress) -> bool:
            draw(line)
            if clf.callback is not None:
                clf.callback(Snapshot(line, partial(clf._seen, usual(line)), stopped_at))
            return tell(line)

        return run(report)


@compiled_once
@double_precision
def learn_more(clf: Any, training: Block) -> None:
    """Take rows in under the kernel and by the side of the rows before."""
    X, inputs = training.X, clf.posterior_.prepared.model.inputs
    training = training._replace(std=errors_for(inputs, training.std, X, clf.input_noise_std_))
    dtype = np.dtype(clf.posterior_.row_dtype)
    clf.n_samples_seen_ += len(X)
    theta, q = thawed(clf.posterior_)
    with one_thread():
        if is_auto(clf.n_inducing):
            wanted = inducing.auto_count(clf.n_samples_seen_, clf._scaling.width, len(clf.classes_))
            candidates = clf._scaling.forward(X[:CANDIDATES])
            theta, q = grown(theta, q, candidates, wanted, clf.jitter_)
        prepared, clf.jitter_ = prepare(*theta, clf.jitter_)
        for block in blocks(len(X)):
            X, index, weight, std = training.part(block)
            rows = ArrayRows(X, index, weight, scaling=clf._scaling, dtype=dtype, std=std)
            length = min(CHUNK_ROWS, 2 ** int(np.ceil(np.log2(rows.n_rows))))  # few lengths
            tolerance = clf.tol * rows.total_weight
            q, bound = absorb(prepared, q, rows.in_chunks(length), tolerance)
            clf.elbo_ += bound
    clf._keep(freeze(theta, q, clf.jitter_, dtype))
