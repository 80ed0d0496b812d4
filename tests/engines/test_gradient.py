"""Laws of the gradient engine: the same ELBO, the same optimum, another way up."""

import jax
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_classification

from bad_tables import BAD, WORST
from gpclf import GPClassifier
from gpclf.estimators import callbacks, learning
from gpclf.gaussian import Natural
from gpclf.gaussian import moments as natural_moments
from gpclf.inference import Settings, Sizes, engines, fit
from gpclf.inference.ascent import look
from gpclf.inference.engines import Gradient
from gpclf.inference.factored import Factored, factored, factors, moments
from gpclf.kernels import RBF
from gpclf.model import prepare
from problems import POINTS, ROWS, problem

FEW = {"n_inducing": 10, "random_state": 0}
GRADIENT = {"inference": "gradient", **FEW}
SETS = {
    "iris": load_iris,
    "wine": load_wine,
    "breast cancer": load_breast_cancer,
    "made up": lambda return_X_y: make_classification(
        300, 4, n_redundant=0, n_classes=3, n_clusters_per_class=1, flip_y=0.1, random_state=0
    ),
}


def _rows(name, two=False):
    """60 rows of a set and four of its columns, so that all share their compiled programs."""
    X, y = SETS[name](return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(y))[:60]
    y = y[rows] > 0 if two else y[rows]
    return X[rows, :4], y


@pytest.fixture(scope="module")
def two_classes():
    return _rows("made up", two=True)


@pytest.mark.parametrize(
    ("likelihood", "name"),
    [(lik, name) for lik in ("logit", "probit") for name in ("wine", "breast cancer", "made up")]
    + [("softmax", name) for name in ("iris", "wine", "made up")],
)
def test_natural_and_gradient_engines_reach_the_same_elbo(likelihood, name):
    X, y = _rows(name, two=likelihood != "softmax")
    clf = GPClassifier(likelihood, RBF(2.0, 3.0), **FEW, inference=engines.Natural(optimizer=None))
    natural = clone(clf).set_params(tol=1e-7, max_epochs=200).fit(X, y)
    gradient = clf.set_params(inference=Gradient(optimizer=None), tol=1e-6).fit(X, y)
    np.testing.assert_allclose(gradient.elbo_, natural.elbo_, rtol=1e-5)
    np.testing.assert_allclose(gradient.predict_proba(X), natural.predict_proba(X), atol=1e-3)


def _somewhere(n_latent, size, more=0, seed=0):
    rng = np.random.default_rng(seed)
    root = np.tril(0.3 * rng.normal(size=(n_latent, size, size)))
    return Factored(rng.normal(size=(n_latent, size + more)), root)


@pytest.mark.parametrize(
    ("name", "share", "more"),
    [
        ("Logit", "both", 0),
        ("Logit", "both", 4),  # of the points have a mean only
        ("Softmax", "both", 0),
        ("Softmax", "none", 0),
        ("NoisyProbit", "both", 0),
    ],
)
def test_the_gradient_equals_finite_differences(name, share, more, x64):
    theta, source, n_latent = problem(name, share=share)
    place = (_somewhere(n_latent, POINTS - more, more), theta)
    leaves, structure = jax.tree.flatten(place)
    rng = np.random.default_rng(1)
    directions = [rng.normal(size=leaf.shape) for leaf in leaves]
    directions[1] = np.tril(directions[1])

    def at(step):
        moved = [np.asarray(leaf) + step * d for leaf, d in zip(leaves, directions, strict=True)]
        q, theta = jax.tree.unflatten(structure, moved)
        prepared, _ = prepare(*jax.device_put(theta), 1e-9)
        return look(prepared, q, source.in_chunks(16), at_theta=True)

    seen = at(0.0)
    gradient = jax.tree.leaves((seen.by_q, seen.by_theta))
    along = sum(float(np.sum(g * d)) for g, d in zip(gradient, directions, strict=True))
    numeric = (at(1e-5).elbo - at(-1e-5).elbo) / 2e-5
    np.testing.assert_allclose(along, numeric, rtol=1e-5)


def test_any_numbers_are_a_gaussian_and_its_divergence_is_that_of_its_natural_form():
    q = _somewhere(2, 5, seed=3)
    m, kl = moments(q)
    covariance = m.excess + np.eye(5)
    assert np.linalg.eigvalsh(covariance).min() > 0
    precision = np.linalg.inv(covariance)
    natural = Natural(np.einsum("cij,cj->ci", precision, m.mean), precision)
    np.testing.assert_allclose(kl, natural_moments(natural)[1], rtol=1e-10)
    for again in (factored(natural), factored(m)):
        np.testing.assert_allclose(factors(again), factors(q), atol=1e-10)


def test_a_mean_alone_adds_half_its_squared_length_to_the_divergence():
    q = _somewhere(1, 5, more=3)
    short = Factored(q.mean[:, :5], q.root)
    more = 0.5 * np.sum(q.mean[:, 5:] ** 2)
    np.testing.assert_allclose(moments(q)[1], moments(short)[1] + more, rtol=1e-12)


def test_a_freed_kernel_never_ends_below_the_frozen_one(two_classes):
    clf = GPClassifier(**GRADIENT, kernel=RBF(2.0, 3.0), max_epochs=40).fit(*two_classes)
    stages, elbo = clf.history_["stage"], clf.history_["elbo"] * 60
    assert set(stages) == {"posterior", "hyper-parameters"}
    frozen = elbo[stages == "posterior"].max()
    assert clf.elbo_ > frozen + 1.0
    np.testing.assert_allclose(clf.elbo_, elbo.max(), rtol=1e-9)  # one lengthscale has no prior


def test_lbfgs_ends_where_nothing_leads_up(x64):
    theta, source, n_latent = problem("Softmax")
    engine, settings = Gradient(optimizer=None), Settings(tolerance=1e-10)
    plan, rng = engine.plan(Sizes(ROWS, n_latent, POINTS), "auto"), np.random.default_rng(0)
    result = fit(theta, n_latent, source, engine, plan, settings, rng)
    prepared, _ = prepare(*result.theta, settings.jitter)
    seen = look(prepared, factored(result.q), source, at_theta=False)
    assert max(np.abs(leaf).max() for leaf in seen.by_q) < 2e-3
    assert "posterior: converged" in result.stopped


def test_the_stated_rule_chooses_the_optimizer():
    def chosen(rows=ROWS, **options):
        plan = Gradient(**options).plan(Sizes(rows, 1, POINTS), "auto")
        return plan.optimizer, plan.full_batch

    assert chosen(rows=5000) == ("lbfgs", True)
    assert chosen(rows=5001) == ("adam", False)
    assert chosen(batch_size=20) == ("adam", False)
    assert chosen(optimizer=None) == (None, True)
    assert chosen(optimizer=None, batch_size=20) == (None, False)
    assert chosen(optimizer="adadelta") == ("adadelta", False)


@pytest.mark.parametrize("optimizer", ["adam", "adadelta", None])
def test_steps_on_batches_raise_the_elbo_and_are_the_same_again(two_classes, optimizer):
    X, y = two_classes
    engine = Gradient(optimizer, batch_size=20)
    clf = GPClassifier(**FEW, inference=engine, max_epochs=30)
    elbo = clf.fit(X, y).history_["elbo"]
    assert clf.elbo_ / len(y) > elbo[0] + 0.03
    assert np.linalg.eigvalsh(clf.posterior_.q.excess[0] + np.eye(10)).min() > 0
    again = clone(clf).fit(X, y)
    assert np.array_equal(again.predict_proba(X), clf.predict_proba(X))
    moved = repr(clf.kernel_) != repr(clone(clf).set_params(max_epochs=1).fit(X, y).kernel_)
    assert moved == (optimizer is not None)


def test_batches_come_near_the_full_batch(two_classes):
    clf = GPClassifier(**FEW, kernel=RBF(2.0, 3.0), inference=Gradient(optimizer=None))
    full = clone(clf).fit(*two_classes)
    batches = clf.set_params(inference__batch_size=20, max_epochs=100).fit(*two_classes)
    assert full.elbo_ - 0.3 < batches.elbo_ <= full.elbo_ + 1e-6


@pytest.mark.parametrize("optimizer", ["lbfgs", "adam"])
def test_nothing_is_compiled_again(two_classes, traces, optimizer):
    X, y = two_classes
    engine = Gradient(optimizer, batch_size="auto" if optimizer == "lbfgs" else 25)
    own = {**FEW, "n_inducing": 11}  # a shape that no other test has
    clf = GPClassifier(**own, inference=engine, max_epochs=3)
    traces.clear()
    clone(clf).fit(X[:57], y[:57])
    for name in ("_gradient_pass", "_theta_pass" if optimizer == "lbfgs" else "step"):
        assert 1 <= traces.count(name) <= 2, name
    traces.clear()
    clone(clf).set_params(max_epochs=4).fit(X[:57], y[:57])
    assert not traces


def test_points_of_the_full_process_stay_at_the_rows(two_classes):
    X, y = two_classes
    for optimizer in ("lbfgs", "adam"):
        clf = GPClassifier(n_inducing=None, inference=Gradient(optimizer), max_epochs=4)
        np.testing.assert_allclose(clf.fit(X, y).inducing_points_, np.unique(X, axis=0), atol=1e-9)


@pytest.mark.parametrize(
    ("case", "optimizer"),
    [(case, "lbfgs") for case in WORST] + [("wild scales", "adam"), ("huge", "adam")],
)
def test_difficult_data_give_finite_probabilities(case, optimizer):
    X, y = BAD[case]
    clf = GPClassifier(inference=Gradient(optimizer), max_epochs=5, random_state=0)
    assert np.all(np.isfinite(clf.fit(X, y).predict_proba(X)))


def test_separable_rows_and_a_likelihood_that_feels_no_confident_mistake():
    X = np.r_[np.linspace(-3, -2, 30), np.linspace(2, 3, 30)][:, None]
    y = np.arange(60) // 30
    for likelihood in ("probit", "robust-max"):
        clf = GPClassifier(likelihood, **GRADIENT, max_epochs=12).fit(X, y)
        assert np.all(np.isfinite(clf.predict_log_proba(X)))
        assert clf.score(X, y) == 1.0


def test_a_file_and_a_warm_start_go_on_from_it(two_classes, tmp_path):
    X, y = two_classes
    clf = GPClassifier(**GRADIENT, max_epochs=20, warm_start=True).fit(X, y)
    clf.save(tmp_path / "model")
    assert np.array_equal(
        GPClassifier.load(tmp_path / "model").predict_proba(X), clf.predict_proba(X)
    )
    first = clf.elbo_
    assert clf.fit(X, y).elbo_ >= first - 1e-2


@pytest.mark.parametrize("optimizer", ["lbfgs", "adam"])
def test_early_stopping_keeps_the_best(optimizer, monkeypatch):
    """By the rows kept apart, though later steps were worse on these."""
    apart, scores = [], []

    def judging(X, index, *others):
        apart.extend([X, index])
        judge = callbacks.judging(X, index, *others)
        return lambda line: scores.append(judge(line)) or scores[-1]

    monkeypatch.setattr(learning, "judging", judging)
    X, y = make_classification(60, 4, n_redundant=0, flip_y=0.4, random_state=0)
    clf = GPClassifier(**FEW, inference=Gradient(optimizer), early_stopping=0.3, max_epochs=60)
    clf.fit(X, y)
    assert min(scores) < scores[-1]
    logs = clf.predict_log_proba(apart[0])
    np.testing.assert_allclose(-logs[np.arange(len(logs)), apart[1]].sum(), min(scores), rtol=1e-6)


def test_all_rows_at_once_have_no_batches_and_say_so(two_classes):
    with pytest.raises(ValueError, match="sees all rows at once"):
        GPClassifier(inference=Gradient("lbfgs", batch_size=10)).fit(*two_classes)


@pytest.mark.parametrize("optimizer", ["adam", "adadelta"])
def test_the_first_step_is_as_long_as_epsilon_says(two_classes, optimizer):
    """Adadelta's first step is g √ε / √(0.1 g² + ε), Adam's is g / (|g| + ε): both by Optax."""
    short, usual, long = (
        GPClassifier(**FEW, inference=Gradient(optimizer, 60, epsilon=epsilon), max_epochs=1)
        for epsilon in ((1e-8, "auto", 1e-2) if optimizer == "adadelta" else (1e4, "auto", 1e-12))
    )
    lengths = [
        np.linalg.norm(clf.fit(*two_classes).posterior_.q.mean) for clf in (short, usual, long)
    ]
    assert 0 < 10 * lengths[0] < lengths[1]
    if optimizer == "adadelta":
        assert 2.5 * lengths[1] < lengths[2]
    else:
        np.testing.assert_allclose(lengths[2], lengths[1], rtol=1e-3)
