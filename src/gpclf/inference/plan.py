"""What a fit will do, decided from the size of the problem before it starts."""

from typing import Literal, NamedTuple

import numpy as np

Optimizer = Literal["lbfgs", "adam", "adadelta"] | None

FLOATS_AT_ONCE = 2**24  # of the largest array of a chunk, rows × functions × M: 64 MB in float32
KEPT_FLOATS = 2**25  # of features, for the steps on all rows: 128 MB in float32
CHUNK_ROWS = 2048
LEARNING_ROWS = 8192  # that hyper-parameters see, at least
MOST_FOR_POINTS, MOST_FOR_ROWS = 20480, 32768  # where Z has many numbers, where rows are many
SHARE = 16  # one row of so many
SMALL_ROWS, SMALL_NUMBERS = 5000, 2**21  # up to which the gradient engine sees all rows at once
EVALUATIONS, BATCHES = 400, 2000  # of the gradient engine, full batch or stochastic
MORE_POINTS = 2  # times as many for the mean alone, of the decoupled engine
MANY_ROWS = 2**18  # from here on full-batch steps see a quarter of so many first


class Plan(NamedTuple):
    """The stages of a fit, each with its size."""

    optimizer: Optimizer
    evaluations: int  # of the dual bound, all rounds together
    learning_rows: int  # that the last of them see
    chunk_rows: int  # of a pass over everything
    batch_rows: int  # of a stochastic step
    drawn_classes: int | None  # for each stochastic step; None: all
    rate: float | None  # of stochastic steps; None: one that falls with their number
    full_batch: bool  # the last natural steps see all rows at once
    max_epochs: int  # of stochastic steps, or full-batch steps
    tolerance: float  # nats per row below which a step or round has converged
    jitter: float
    move_points: bool  # Z is learned with the kernel; not for the full process, where Z is X
    dtype: np.dtype
    move_inputs: bool = True  # what the inputs learn goes along
    inference: str = "natural"  # the engine
    mean_points: int = 0  # more of them for the mean alone, of the decoupled engine
    alpha: float = 1.0  # of power-EP


def make_plan(
    n_rows: int,
    n_latent: int,
    n_inducing: int,
    *,
    optimizer: str | None,
    max_epochs: int | str,
    batch_size: int | str,
    tolerance: float,
    dtype: np.dtype,
    n_features: int = 1,
    move_points: bool = True,
    rate: float | str = "auto",
    drawn_classes: int | None = None,
    places: int = 1,
    inference: str = "natural",
    mean_points: int | str = "auto",
    alpha: float = 1.0,
) -> Plan:
    """The stated rules behind "auto".

    Hyper-parameters: L-BFGS on the dual bound of at most 8,192 rows, 60 evaluations, before them
    half as many where a likelihood has an easier one; rows stand for all, by their weights. Half as
    many rows as Z has numbers, if that is more, up to 20,480, or a sixteenth of all rows, up to
    32,768: else Z and kernel fit the rows that are seen and not the others. Half of that where rows
    have several places each. The posterior: full-batch steps on all rows, two where these are many;
    a pass of steps on batches takes as long and forgets most rows. With classes drawn for each step
    no part of a fit should need them all: Adam beside stochastic steps. The gradient engine:
    L-BFGS-B on all rows, up to 5,000 of them and 2²¹ numbers of q, if no batch is asked for; else
    Adam.
    """
    automatic = "lbfgs" if drawn_classes is None else "adam"
    if inference == "gradient":
        numbers = n_latent * n_inducing * (n_inducing + 3) // 2
        small = n_rows <= SMALL_ROWS and numbers <= SMALL_NUMBERS
        automatic = "lbfgs" if small and batch_size == "auto" else "adam"
    chosen: Optimizer = automatic if optimizer == "auto" else optimizer  # type: ignore[assignment]
    most = max(64, FLOATS_AT_ONCE // (n_latent * n_inducing * places))
    most = max(64, min(2 ** int(np.log2(most)), CHUNK_ROWS // places))
    chunk_rows = most if n_rows > 4 * most else -(-n_rows // -(-n_rows // most))
    batch_rows = min(n_rows, most, 1024 if batch_size == "auto" else int(batch_size))
    stochastic = batch_size != "auto" or drawn_classes is not None
    full_batch = not stochastic and chosen not in ("adam", "adadelta")
    epochs = {"lbfgs": 2, "adam": 30, "adadelta": 30, None: 10}[chosen]
    if full_batch:
        epochs = 30 if n_rows <= MANY_ROWS else 2
    if inference == "gradient":
        epochs = EVALUATIONS if full_batch else max(10, -(-BATCHES * batch_rows // n_rows))
    return Plan(
        optimizer=chosen,
        evaluations=60 if max_epochs == "auto" else int(max_epochs),
        learning_rows=_learning_rows(n_rows, n_inducing * n_features, places),
        chunk_rows=chunk_rows,
        batch_rows=batch_rows,
        drawn_classes=drawn_classes,
        rate=None if rate == "auto" else float(rate),
        full_batch=full_batch,
        max_epochs=epochs if max_epochs == "auto" else int(max_epochs),
        tolerance=tolerance,
        jitter=1e-6 if dtype == np.float32 else 1e-9,
        move_points=move_points,
        dtype=dtype,
        inference=inference,
        mean_points=MORE_POINTS * n_inducing if mean_points == "auto" else int(mean_points),
        alpha=alpha,
    )


def _learning_rows(n_rows: int, numbers: int, places: int) -> int:
    for_points = min(numbers // 2, MOST_FOR_POINTS)
    for_rows = min(n_rows // SHARE, MOST_FOR_ROWS)
    return max(LEARNING_ROWS, for_points, for_rows) // (1 if places == 1 else 2)
