"""A fit: what it does when, why it stops, and what it says where numbers are none."""

import itertools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from gpclf import GPClassifier
from gpclf.data import ArrayRows
from gpclf.gaussian import Natural as NaturalForm
from gpclf.inference import FitError, Settings, Sizes, Watch, fit
from gpclf.inference.drivers.epochs import FIRST_RATE, natural_rate
from gpclf.inference.engines import Natural
from gpclf.inference.history import History
from gpclf.inference.plan import schedule
from gpclf.inputs import Latent
from gpclf.model import Theta
from problems import POINTS, problem


@pytest.fixture(autouse=True)
def _x64():
    with jax.enable_x64(True):
        yield


def _fit(
    theta, rows, n_latent, *, max_epochs="auto", plan=None, settings=None, report=None, **options
):
    """With the natural engine of these options."""
    engine = Natural(**options)
    nodes = theta.model.inputs.places
    sizes = Sizes(rows.n_rows, n_latent, POINTS, rows.n_columns, nodes)
    plan = engine.plan(sizes, max_epochs)._replace(**(plan or {}))
    settings = Settings(1e-9) if settings is None else settings
    watch = Watch() if report is None else Watch(report)
    return fit(theta, n_latent, rows, engine, plan, settings, np.random.default_rng(0), watch)


def test_a_sample_stands_for_all_rows():
    """Its weights add up to all rows', and its sums are theirs on average."""
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.5, 2.0, 400)
    rows = ArrayRows(rng.normal(size=(400, 2)), np.zeros(400, int), weight)
    assert rows.sample(400, rng) is rows
    samples = [rows.sample(100, rng) for _ in range(400)]
    for sample in samples:
        assert sample.n_rows == 100
        np.testing.assert_allclose(sample.total_weight, rows.total_weight)
    sums = np.array([sample.weight @ sample.X for sample in samples])
    spread = sums.std(axis=0) / np.sqrt(len(samples))
    assert np.all(np.abs(sums.mean(axis=0) - weight @ rows.X) < 4 * spread)


def test_a_batch_counts_no_more_than_its_share_of_what_was_seen():
    assert natural_rate(0.0, 0.0) == FIRST_RATE
    assert natural_rate(0.0, 8.0) == pytest.approx(1 / 8)
    for seen in (0.0, 8.0):
        rates = [natural_rate(float(step), seen) for step in range(100)]
        assert np.all(np.diff(rates) < 0)


@pytest.mark.parametrize("optimizer", ["lbfgs", None])
def test_where_rows_are_many_most_steps_see_some_and_the_end_is_the_same(monkeypatch, optimizer):
    theta, rows, n_latent = problem("Softmax")
    plain = _fit(theta, rows, n_latent, optimizer=optimizer)
    monkeypatch.setattr("gpclf.inference.drivers.rounds.MANY_ROWS", 24)
    few_first = _fit(theta, rows, n_latent, optimizer=optimizer)
    assert "some rows" in few_first.history["stage"]
    assert "some rows" not in plain.history["stage"]
    np.testing.assert_allclose(few_first.objective, plain.objective, rtol=2e-3)


def test_more_rows_are_learnt_from_where_there_are_many_or_the_points_have_many_numbers():
    def rows(n_inducing, n_features, n_rows=100_000, nodes=1):
        sizes = Sizes(n_rows, 1, n_inducing, n_features, nodes)
        return Natural().plan(sizes, "auto").learning_rows

    assert rows(200, 10) == 8192
    assert rows(400, 60) == 12_000  # half of the numbers
    assert rows(400, 1000) == 20_480
    assert rows(200, 10, n_rows=320_000) == 20_000  # a sixteenth
    assert rows(200, 10, n_rows=10**7) == 32_768
    assert rows(200, 10, nodes=16) == 4096


@pytest.mark.parametrize("evaluations", [1, 6, 12, 13, 60])
@pytest.mark.parametrize(("n_rows", "few"), [(3000, None), (10_000, 2048), (10**6, 4096)])
def test_few_rows_come_first_and_every_evaluation_is_spent(n_rows, few, evaluations):
    plan = Natural().plan(Sizes(n_rows, 1, 200), evaluations)
    rounds = schedule(plan, n_rows, 1)
    assert sum(each.evaluations for each in rounds) == evaluations
    on_few = sum(each.evaluations for each in rounds if each.rows < plan.learning_rows)
    assert on_few == (0 if few is None else min(12, evaluations))
    assert [each.rows for each in rounds] == sorted(each.rows for each in rounds)
    assert rounds[0].rows == (few or plan.learning_rows)
    assert sum(each.look is not None for each in rounds) <= 1


def test_between_two_stages_all_rows_are_seen_unless_steps_are_stochastic(monkeypatch):
    theta, rows, n_latent = problem("Softmax", rows=600)
    stages = {}
    monkeypatch.setattr("gpclf.inference.plan.FEW_ROWS", 50)
    monkeypatch.setattr("gpclf.inference.plan.ON_FEW", 6)
    sizes = {"chunk_rows": 50, "learning_rows": 200}
    for batch_size in ("auto", 30):
        result = _fit(theta, rows, n_latent, max_epochs=12, plan=sizes, batch_size=batch_size)
        changes = itertools.groupby(result.history["stage"])
        stages[batch_size] = [stage for stage, _ in changes]
    learning = ["posterior", "hyper-parameters"]
    assert stages["auto"] == [*learning, "all rows", *learning, "all rows"]
    assert stages[30] == [*learning, *learning, "epochs"]


@pytest.mark.parametrize("optimizer", ["lbfgs", "adam", None])
def test_the_loop_raises_the_bound_and_says_why_it_stopped(optimizer):
    theta, rows, n_latent = problem("Softmax", dtype=np.float32)
    shares = []
    settings = Settings(1e-6, np.dtype(np.float32))
    result = _fit(
        theta, rows, n_latent, max_epochs=5, settings=settings, optimizer=optimizer,
        report=lambda line: shares.append(line.share),
    )  # fmt: skip
    elbo = result.history["elbo"]
    assert elbo[-1] > elbo[0]
    assert np.all(np.diff(result.history["seconds"]) >= 0)
    assert np.all(np.diff(shares) >= 0)
    assert len(set(shares[-3:])) == 3  # the bar goes on to the end
    moved = {"lbfgs": "evaluation limit", "adam": "epoch limit", None: "fixed"}
    assert result.stopped.startswith(f"hyper-parameters: {moved[optimizer]}; posterior: ")


def test_numbers_that_are_no_numbers_end_in_one_sentence():
    theta, rows, n_latent = problem("Logit")
    theta = Theta(theta.model, theta.Z.at[0, 0].set(jnp.nan))
    with pytest.raises(FitError, match="kernel matrix of the inducing points is no number"):
        _fit(theta, rows, n_latent, max_epochs=3, optimizer=None)


@pytest.mark.parametrize("batch_size", ["auto", 20])
def test_a_row_that_makes_a_number_not_finite_is_named(batch_size):
    """Not only that there is one."""
    theta, rows, n_latent = problem("Logit")
    X = rows.X.copy()
    X[[17, 31], 1] = np.nan
    broken = ArrayRows(X, rows.y, rows.weight)
    with pytest.raises(FitError, match="in 2 of 36 rows, first row 17"):
        _fit(theta, broken, n_latent, max_epochs=3, optimizer=None, batch_size=batch_size)


def waves(rows, n_classes):
    """Classes by the largest of functions that a Gaussian process could have drawn."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-2.5, 2.5, (rows, 2))
    phases = rng.uniform(0, 2 * np.pi, 200)
    functions = np.cos(X @ rng.normal(size=(2, 200)) + phases) @ rng.normal(size=(200, n_classes))
    return X + 0.1 * rng.normal(size=X.shape), functions.argmax(axis=1)


def test_a_bound_with_many_optima_learns_no_worse_a_kernel_than_an_easier_one():
    X, y = waves(400, 3)
    common = {"n_inducing": 40, "random_state": 0}
    easy = GPClassifier("softmax", kernel="rbf", inference="natural", **common)
    kernel = easy.fit(X, y).kernel_
    held = GPClassifier(
        "robust-max", kernel=kernel, inference=Natural(optimizer=None), **common
    ).fit(X, y)
    learned = GPClassifier("robust-max", kernel="rbf", inference="natural", **common).fit(X, y)
    assert learned.elbo_ > held.elbo_
    assert {"hyper-parameters", "softmax: hyper-parameters"} < set(learned.history_["stage"])
    assert isinstance(learned.likelihood_, type(held.likelihood_))


def test_an_easier_likelihood_leaves_the_size_of_errors_alone():
    theta, rows, n_latent = problem("RobustMax")
    inputs = Latent(jnp.log(jnp.array(0.3)), count=4)
    sizes = {"softmax: hyper-parameters": set(), "hyper-parameters": set()}

    def report(line):
        if line.stage in sizes:
            sizes[line.stage].add(float(line.theta.model.inputs.log_std))

    model = replace(theta.model, inputs=inputs)
    _fit(Theta(model, theta.Z), rows, n_latent, max_epochs=24, report=report)
    assert sizes["softmax: hyper-parameters"] == {float(inputs.log_std)}
    assert len(sizes["hyper-parameters"]) > 1


def test_a_scope_is_part_of_the_work_and_may_not_be_judged():
    theta, _, n_latent = problem("RobustMax")
    q, scored, told = NaturalForm.standard(n_latent, POINTS), [], []
    log = History(lambda line: told.append(line), 0.0, lambda line: scored.append(line) or 0.0)
    for scope in (
        log.scope(0.0, 0.25, named="before: ", judged=False),
        log.scope(0.25, 1.0),
    ):
        with scope:
            for share in (0.0, 0.5, 1.0):
                log.note("stage", 0.0, share, theta, q)
                log.score(theta, q)
    assert [line.share for line in told] == [0.0, 0.125, 0.25, 0.25, 0.625, 1.0]
    assert [line.stage for line in told] == ["before: stage"] * 3 + ["stage"] * 3
    assert [line.stage for line in scored] == ["stage"] * 3
