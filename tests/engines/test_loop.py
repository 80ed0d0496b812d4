"""The loop: what a fit does when, and why it stops."""

import itertools
from contextlib import nullcontext
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from gpclf import GPClassifier
from gpclf.data import ArrayStream
from gpclf.gaussian import Natural
from gpclf.inference import FitError, fit, make_plan
from gpclf.inference.hyper import Theta
from gpclf.inference.journal import Journal
from gpclf.inference.loop import _rounds
from gpclf.inference.stochastic import FIRST_RATE, natural_rate
from gpclf.inputs import Latent
from problems import POINTS, ROWS, problem


@pytest.fixture(autouse=True)
def _x64():
    with jax.enable_x64(True):
        yield


def test_a_sample_stands_for_all_rows():
    """Its weights add up to all rows', and its sums are theirs on average."""
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.5, 2.0, 400)
    stream = ArrayStream(rng.normal(size=(400, 2)), np.zeros(400, int), weight)
    assert stream.sample(400, rng) is stream
    samples = [stream.sample(100, rng) for _ in range(400)]
    for sample in samples:
        assert sample.n_rows == 100
        np.testing.assert_allclose(sample.weight.sum(), weight.sum())
    sums = np.array([sample.weight @ sample.X for sample in samples])
    spread = sums.std(axis=0) / np.sqrt(len(samples))
    assert np.all(np.abs(sums.mean(axis=0) - weight @ stream.X) < 4 * spread)


def test_a_batch_counts_no_more_than_its_share_of_what_was_seen():
    assert natural_rate(0.0, 0.0) == FIRST_RATE
    assert natural_rate(0.0, 8.0) == pytest.approx(1 / 8)
    for seen in (0.0, 8.0):
        rates = [natural_rate(float(step), seen) for step in range(100)]
        assert np.all(np.diff(rates) < 0)


@pytest.mark.parametrize("optimizer", ["lbfgs", None])
def test_where_rows_are_many_most_steps_see_some_and_the_end_is_the_same(monkeypatch, optimizer):
    theta, stream, n_latent = problem("Softmax")
    plan = make_plan(
        ROWS, n_latent, POINTS, optimizer=optimizer, max_epochs="auto", batch_size="auto",
        tolerance=1e-9, dtype=np.dtype(np.float64),
    )  # fmt: skip
    plain = fit(*theta, stream, n_latent, plan, np.random.default_rng(0))
    monkeypatch.setattr("gpclf.inference.loop.MANY_ROWS", 40)
    few_first = fit(*theta, stream, n_latent, plan, np.random.default_rng(0))
    assert "some rows" in few_first.history["stage"]
    assert "some rows" not in plain.history["stage"]
    np.testing.assert_allclose(few_first.elbo, plain.elbo, rtol=1e-3)


def test_more_rows_are_learnt_from_where_there_are_many_or_the_points_have_many_numbers():
    def rows(n_inducing, n_features, n_rows=100_000, places=1):
        plan = make_plan(
            n_rows, 1, n_inducing, optimizer="auto", max_epochs="auto", batch_size="auto",
            tolerance=1e-4, dtype=np.dtype(np.float32), n_features=n_features, places=places,
        )  # fmt: skip
        return plan.learning_rows

    assert rows(200, 10) == 8192
    assert rows(400, 60) == 12_000  # half of the numbers
    assert rows(400, 1000) == 20_480
    assert rows(200, 10, n_rows=320_000) == 20_000  # a sixteenth
    assert rows(200, 10, n_rows=10**7) == 32_768
    assert rows(200, 10, places=16) == 4096


@pytest.mark.parametrize("evaluations", [1, 6, 12, 13, 60])
@pytest.mark.parametrize(("n_rows", "few"), [(3000, None), (10_000, 2048), (10**6, 4096)])
def test_few_rows_come_first_and_every_evaluation_is_spent(n_rows, few, evaluations):
    plan = make_plan(
        n_rows, 1, 200, optimizer="lbfgs", max_epochs=evaluations, batch_size="auto",
        tolerance=1e-6, dtype=np.dtype(np.float32),
    )  # fmt: skip
    rounds = list(_rounds(plan, n_rows, 1))
    assert sum(count for _, count, _ in rounds) == evaluations
    on_few = sum(count for rows, count, _ in rounds if rows < plan.learning_rows)
    assert on_few == (0 if few is None else min(12, evaluations))
    assert [rows for rows, _, _ in rounds] == sorted(rows for rows, _, _ in rounds)
    assert rounds[0][0] == (few or plan.learning_rows)


def test_between_two_stages_all_rows_are_seen_unless_steps_are_stochastic(monkeypatch):
    theta, stream, n_latent = problem("Softmax", rows=600)
    stages = {}
    for batch_size in ("auto", 30):
        plan = make_plan(
            600, n_latent, POINTS, optimizer="lbfgs", max_epochs=12, batch_size=batch_size,
            tolerance=1e-9, dtype=np.dtype(np.float64),
        )  # fmt: skip
        monkeypatch.setattr("gpclf.inference.loop.FEW_ROWS", 50)
        monkeypatch.setattr("gpclf.inference.loop.ON_FEW", 6)
        plan = plan._replace(chunk_rows=50, learning_rows=200)
        result = fit(*theta, stream, n_latent, plan, np.random.default_rng(0))
        changes = itertools.groupby(result.history["stage"])
        stages[batch_size] = [stage for stage, _ in changes]
    learning = ["posterior", "hyper-parameters"]
    assert stages["auto"] == [*learning, "all rows", *learning, "all rows"]
    assert stages[30] == [*learning, *learning, "epochs"]


@pytest.mark.parametrize("optimizer", ["lbfgs", "adam", None])
def test_the_loop_raises_the_bound_and_says_why_it_stopped(optimizer):
    theta, stream, n_latent = problem("Softmax", dtype=np.float32)
    plan = make_plan(
        ROWS, n_latent, POINTS, optimizer=optimizer, max_epochs=5, batch_size="auto",
        tolerance=1e-6, dtype=np.dtype(np.float32),
    )  # fmt: skip
    result = fit(*theta, stream, n_latent, plan, np.random.default_rng(0))
    elbo = result.history["elbo"]
    assert elbo[-1] > elbo[0]
    assert np.all(np.diff(result.history["seconds"]) >= 0)
    assert "hyper-parameters: " in result.stopped
    assert "posterior: " in result.stopped


def test_numbers_that_are_no_numbers_end_in_one_sentence():
    theta, stream, n_latent = problem("Logit")
    theta = Theta(theta.model, theta.Z.at[0, 0].set(jnp.nan))
    plan = make_plan(
        ROWS, n_latent, POINTS, optimizer=None, max_epochs=3, batch_size="auto",
        tolerance=1e-6, dtype=np.dtype(np.float64),
    )  # fmt: skip
    with pytest.raises(FitError, match="not a number"):
        fit(*theta, stream, n_latent, plan, np.random.default_rng(0))


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
    kernel = GPClassifier("softmax", kernel="rbf", **common).fit(X, y).kernel_
    held = GPClassifier("robust-max", kernel=kernel, optimizer=None, **common).fit(X, y)
    learned = GPClassifier("robust-max", kernel="rbf", **common).fit(X, y)
    assert learned.elbo_ > held.elbo_
    assert {"hyper-parameters", "softmax: hyper-parameters"} < set(learned.history_["stage"])
    assert isinstance(learned.likelihood_, type(held.likelihood_))


def test_an_easier_likelihood_leaves_the_size_of_errors_alone():
    theta, stream, n_latent = problem("RobustMax")
    inputs = Latent(jnp.log(jnp.array(0.3)), count=4)
    sizes = {"softmax: hyper-parameters": set(), "hyper-parameters": set()}

    def report(line):
        if line.stage in sizes:
            sizes[line.stage].add(float(line.theta.model.inputs.log_std))

    plan = make_plan(
        ROWS, n_latent, POINTS, optimizer="lbfgs", max_epochs=24, batch_size="auto",
        tolerance=1e-9, dtype=np.dtype(np.float64), places=4,
    )  # fmt: skip
    model = replace(theta.model, inputs=inputs)
    fit(model, theta.Z, stream, n_latent, plan, np.random.default_rng(0), report=report)
    assert sizes["softmax: hyper-parameters"] == {float(inputs.log_std)}
    assert len(sizes["hyper-parameters"]) > 1


def test_a_preface_is_part_of_the_work_and_is_not_judged():
    theta, _, n_latent = problem("RobustMax")
    q, scored, told = Natural.standard(n_latent, POINTS), [], []
    log = Journal(lambda line: told.append(line), 0.0, lambda line: scored.append(line) or 0.0)
    for scope in (log.preface("before", 0.25), nullcontext()):
        with scope:
            for share in (0.0, 0.5, 1.0):
                log.note("stage", 0.0, share, theta, q)
                log.score(theta, q)
    assert [line.share for line in told] == [0.0, 0.125, 0.25, 0.25, 0.625, 1.0]
    assert [line.stage for line in told] == ["before: stage"] * 3 + ["stage"] * 3
    assert [line.stage for line in scored] == ["stage"] * 3
