"""What a fit will do, decided from the size of the problem before it starts: plans are data."""

from typing import Literal, NamedTuple

import numpy as np

Optimizer = Literal["lbfgs", "adam", "adadelta"] | None

FLOATS_AT_ONCE = 2**24  # of the largest array of a chunk, rows × functions × M: 64 MB in float32
CHUNK_ROWS = 2048
STEP_OF_CHUNKS = 64  # or an eighth of a chunk: tables of nearly the same length share programs
LEARNING_ROWS = 8192  # that hyper-parameters see, at least
MOST_FOR_POINTS, MOST_FOR_ROWS = 20480, 32768  # where Z has many numbers, where rows are many
SHARE = 16  # one row of so many
EVALUATIONS = 60  # of the dual objective
BATCH_ROWS = 1024
MANY_ROWS = 2**18  # from here on full-batch steps see a quarter of so many first

# Hyper-parameters see few rows first: the first evaluations of the dual bound gain the most, and
# few rows tell them the way.
FEW_ROWS, FEW_SHARE = 2048, 8  # so many, or one of so many that the last evaluations see
ON_FEW = 12  # evaluations
FIRST_STEPS, FEW_STEPS = 15, 5  # on q, for the first rows; where these are few
ROUND = 6  # evaluations between two refreshes of the sites
MANY_FUNCTIONS = 10  # above which one round sees the fewest rows: dear, and a class has few of them
STEPS = 3  # on q, for each refresh
LAST_STEPS = 6  # on q, for all rows of the hyper-parameters where few had gone before


class Sizes(NamedTuple):
    """How large a problem is."""

    n_rows: int
    n_latent: int
    n_inducing: int
    n_features: int = 1
    nodes: int = 1  # of a row


class Plan(NamedTuple):
    """The stages of a fit, each with its size."""

    optimizer: Optimizer
    evaluations: int  # of the dual objective, all rounds together
    learning_rows: int  # that the last of them see
    chunk_rows: int  # of a pass over everything
    batch_rows: int  # of a stochastic step
    rate: float | None  # of stochastic steps; None: the engine's own
    full_batch: bool  # the last steps see all rows at once
    max_epochs: int  # of stochastic steps, or full-batch steps


class Round(NamedTuple):
    """Steps on q, then evaluations of the dual objective, on so many rows."""

    rows: int
    evaluations: int
    steps: int
    look: Literal["all rows", "some rows"] | None = None  # before it, a few steps on these


def make_plan(
    sizes: Sizes,
    *,
    optimizer: str | None = "auto",
    max_epochs: int | str = "auto",
    batch_size: int | str = "auto",
    rate: float | str = "auto",
    stochastic: bool = False,
) -> Plan:
    """The stated rules behind "auto".

    Hyper-parameters: L-BFGS on the dual bound of at most 8,192 rows, 60 evaluations, before them
    half as many where a likelihood has an easier one; rows stand for all, by their weights. Half as
    many rows as Z has numbers, if that is more, up to 20,480, or a sixteenth of all rows, up to
    32,768: else Z and kernel fit the rows that are seen and not the others. Half of that where rows
    have several nodes each. The posterior: full-batch steps on all rows, two where these are many;
    a pass of steps on batches takes as long and forgets most rows. Where no part of a fit should
    need all classes (`stochastic`): Adam beside stochastic steps.
    """
    n_rows = sizes.n_rows
    automatic = "adam" if stochastic else "lbfgs"
    chosen: Optimizer = automatic if optimizer == "auto" else optimizer  # type: ignore[assignment]
    batches = batch_size != "auto" or stochastic
    full_batch = not batches and chosen not in ("adam", "adadelta")
    epochs = {"lbfgs": 2, "adam": 30, "adadelta": 30, None: 10}[chosen]
    if full_batch:
        epochs = 30 if n_rows <= MANY_ROWS else 2
    return Plan(
        optimizer=chosen,
        evaluations=EVALUATIONS if max_epochs == "auto" else int(max_epochs),
        learning_rows=_learning_rows(sizes),
        chunk_rows=_chunk_rows(sizes),
        batch_rows=min(n_rows, BATCH_ROWS if batch_size == "auto" else int(batch_size)),
        rate=None if rate == "auto" else float(rate),
        full_batch=full_batch,
        max_epochs=epochs if max_epochs == "auto" else int(max_epochs),
    )


def _chunk_rows(sizes: Sizes) -> int:
    """As many as work in memory at once, nearly equal where there are few chunks.

    A few rows that count nothing fill them up, so that the folds of a cross-validation, and tables
    that grow, need not be compiled for one by one.
    """
    most = max(64, FLOATS_AT_ONCE // (sizes.n_latent * sizes.n_inducing * sizes.nodes))
    most = max(64, min(2 ** int(np.log2(most)), CHUNK_ROWS // sizes.nodes))
    n_rows = sizes.n_rows
    if n_rows > 4 * most:
        return most
    equal = -(-n_rows // -(-n_rows // most))
    step = max(STEP_OF_CHUNKS, 2 ** int(np.log2(equal)) // 8)
    return min(most, -(-equal // step) * step)


def _learning_rows(sizes: Sizes) -> int:
    for_points = min(sizes.n_inducing * sizes.n_features // 2, MOST_FOR_POINTS)
    for_rows = min(sizes.n_rows // SHARE, MOST_FOR_ROWS)
    return max(LEARNING_ROWS, for_points, for_rows) // (1 if sizes.nodes == 1 else 2)


def rows_for_points(plan: Plan, n_points: int, n_features: int) -> int:
    """Those of the hyper-parameters, where there are more points than were planned for."""
    return max(plan.learning_rows, min(n_points * n_features // 2, MOST_FOR_POINTS))


def schedule(plan: Plan, n_rows: int, n_latent: int) -> list[Round]:
    """The rounds of hyper-parameters, coarse to fine; not many more rows need no coarse ones.

    Between them a look at all rows, or halfway at some of many: a good classifier early.
    """
    rows, left, steps = plan.learning_rows, plan.evaluations, FIRST_STEPS
    few, rounds = max(FEW_ROWS, rows // FEW_SHARE), []
    if 2 * few < n_rows and 2 * few <= rows:
        on_few = min(ON_FEW if n_latent <= MANY_FUNCTIONS else ROUND, left)
        rounds, left, steps = _some_rounds(few, on_few, FEW_STEPS), left - on_few, LAST_STEPS
    rounds = rounds + _some_rounds(rows, left, steps)
    return _with_a_look(rounds, plan, n_rows)


def _some_rounds(rows: int, evaluations: int, steps: int) -> list[Round]:
    return [
        Round(rows, min(ROUND, evaluations - first), steps if first == 0 else STEPS)
        for first in range(0, evaluations, ROUND)
    ]


def _with_a_look(rounds: list[Round], plan: Plan, n_rows: int) -> list[Round]:
    done, many = 0, n_rows > MANY_ROWS
    for i, here in enumerate(rounds):
        other_rows = i > 0 and here.rows != rounds[i - 1].rows
        due = 2 * done >= plan.evaluations if many else other_rows
        if i > 0 and due and plan.full_batch and here.rows < n_rows:
            look = "some rows" if many else "all rows"
            return [*rounds[:i], here._replace(look=look), *rounds[i + 1 :]]
        done += here.evaluations
    return rounds
