"""Inputs with errors: the laws of each kind, on the engine and on the estimator."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import cases
from gpclf import GPClassifier
from gpclf.data import ArrayRows
from gpclf.gaussian import Natural, moments
from gpclf.inference.hyper import Problem, dual_objective
from gpclf.inference.natural import Limits, Start, less_prior, settle
from gpclf.inference.passes import gradient_pass, step_pass
from gpclf.inference.rules import Held, Variational
from gpclf.inputs import (
    Amortised,
    Augmented,
    Exact,
    FirstOrder,
    Latent,
    Network,
    Parametric,
    auto_places,
    quick_places,
)
from gpclf.inputs.scatter import scattered
from gpclf.kernels import RBF, Polynomial
from gpclf.model import one_per_function, prepare
from gpclf.posterior import thawed
from gpclf.precision import cast
from gpclf.quadrature import normal_nodes
from problems import ROWS, problem, sharing

pytestmark = pytest.mark.usefixtures("x64")

SAME_FOR_ALL = ("latent", "amortised", "first-order", "augment")  # no parameters of rows
KINDS = (*SAME_FOR_ALL, "parametric")
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)
ONE_PLACE = "amortised, one place"
EVERY_FORM = pytest.mark.parametrize("kind", [*KINDS, ONE_PLACE])
SOME = pytest.mark.parametrize("name", ["Logit", "Softmax 2", "RobustMax 2"])


def inputs_of(kind, n_classes, *, learned=False):
    """Inputs of a kind for rows of three features; the last has no error where it is learned."""
    given = {"log_std": np.log([0.3, 0.2, 0.4]), "known": (False, False, True)} if learned else {}
    if kind in ("amortised", ONE_PLACE):
        last = 0.3 * np.random.default_rng(1).normal(size=(6, 32))
        network = replace(Network.start(3, n_classes), last=last)
        return Amortised(**given, count=1 if kind == ONE_PLACE else 4, network=network)
    if kind == "first-order":
        return FirstOrder(**given)
    if kind == "parametric":
        shift, log_variance = 0.5 * np.random.default_rng(1).normal(size=(2, ROWS, 3))
        return Parametric(**given, count=4, shift=shift, log_variance=log_variance)
    return {"latent": Latent, "augment": Augmented}[kind](**given, count=4)


def noisy_problem(name, kind, std, *, learned=False, share="both"):
    """A small problem with errors: θ, rows, and the number of functions."""
    theta, rows, n_latent = problem(name, share=share)
    inputs = inputs_of(kind, cases.LIKELIHOODS[name][1], learned=learned)
    inputs = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), inputs)
    theta = theta._replace(model=replace(theta.model, inputs=inputs))
    std = None if learned else np.broadcast_to(np.asarray(std, float), rows.X.shape)
    return theta, ArrayRows(rows.X, rows.y, rows.weight, std=std), n_latent


def whole(rows):
    """All rows as one chunk."""
    return next(rows.chunks())


def some_q(n_latent, size, seed=0):
    """A Gaussian that is not the prior."""
    rng = np.random.default_rng(seed)
    roots = 0.3 * rng.normal(size=(n_latent, size, size))
    return Natural(rng.normal(size=(n_latent, size)), np.eye(size) + roots @ roots.swapaxes(1, 2))


@EVERY_FORM
@SOME
def test_without_an_error_every_kind_is_the_exact_model(name, kind):
    theta, rows, n_latent = noisy_problem(name, kind, 0.0)
    exact = replace(theta.model, inputs=Exact())
    prepared, _ = prepare(*theta, 1e-9)
    plain, _ = prepare(exact, theta.Z, 1e-9)
    m, _ = moments(some_q(n_latent, theta.Z.shape[0]))
    chunk = whole(rows)
    ours, theirs = (
        gradient_pass(prepared, m, chunk),
        gradient_pass(plain, m, replace(chunk, std=None)),
    )
    np.testing.assert_allclose(ours.bound, theirs.bound, rtol=1e-12)
    for part in ("linear", "precision"):
        a, b = (getattr(seen.statistics(m), part) for seen in (ours, theirs))
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("kind", [*SAME_FOR_ALL, ONE_PLACE])
@SOME
def test_rows_may_change_places_with_their_errors(name, kind):
    rng = np.random.default_rng(5)
    std = rng.uniform(0, 0.5, (ROWS, 3))
    theta, rows, n_latent = noisy_problem(name, kind, std)
    order = rng.permutation(ROWS)
    moved = rows.X[order], rows.y[order], rows.weight[order]
    prepared, _ = prepare(*theta, 1e-9)
    m, _ = moments(some_q(n_latent, theta.Z.shape[0]))
    other, unmoved = (ArrayRows(*moved, std=own) for own in (std[order], std))
    ours, theirs, wrong = (gradient_pass(prepared, m, whole(r)) for r in (rows, other, unmoved))
    np.testing.assert_allclose(ours.bound, theirs.bound, rtol=1e-12)
    assert abs(wrong.bound - ours.bound) > 1e-6 * abs(ours.bound)


@pytest.mark.parametrize("points", [None, 2])
@pytest.mark.parametrize("kernel", [RBF([1.0, 1.5, 2.0], 2.0), Polynomial(3, [2.0, 1.5, 2.0])])
def test_the_extra_variance_is_that_of_a_finite_difference(kernel, points):
    theta, rows, n_latent = noisy_problem("Softmax", "first-order", [0.1, 0.2, 0.3])
    theta = theta._replace(model=replace(theta.model, kernel=kernel), Z=theta.Z[:points])
    prepared, _ = prepare(*theta, 1e-9)
    m, _ = moments(some_q(n_latent, theta.Z.shape[0]))
    X, std = jnp.asarray(rows.X), jnp.asarray(rows.std)

    def mean(X):
        return np.asarray(prepared.marginals(prepared.features(X), m)[0])

    numeric, step = 0.0, 1e-5
    for d in range(3):
        move = step * np.eye(3)[d]
        slope = (mean(X + move) - mean(X - move)) / (2 * step)
        numeric = numeric + (slope * np.asarray(std)[:, d : d + 1]) ** 2
    features = prepared.features(X)
    for errors in (std, std[:1]):  # the same for all rows
        np.testing.assert_allclose(prepared.extra(features, m, X, errors), numeric, rtol=1e-6)


@EVERY_FORM
@SOME
def test_two_ways_to_the_sites_agree(name, kind):
    theta, rows, n_latent = noisy_problem(name, kind, 0.3)
    prepared, _ = prepare(*theta, 1e-9)
    m, _ = moments(some_q(n_latent, theta.Z.shape[0]))
    chunk = whole(rows)
    by_sites, _ = step_pass(prepared, m, chunk)
    by_gradient = gradient_pass(prepared, m, chunk).statistics(m)
    np.testing.assert_allclose(by_gradient.bound, by_sites.bound, rtol=1e-10)
    np.testing.assert_allclose(by_gradient.linear, by_sites.linear, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(by_gradient.precision, by_sites.precision, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    ("learned", "share", "points"),
    [(True, "both", None), (True, "none", 2), (False, "both", 2), (False, "points", None)],
)
def test_the_gradient_for_a_kernel_of_products_equals_finite_differences(learned, share, points):
    """With fewer points than features, and rows with the same errors, by another form."""
    theta, rows, n_latent = noisy_problem("Softmax", "first-order", 0.3, learned=learned)
    kernel = cast(Polynomial(3, [2.0, 1.5, 2.0]), jnp.float64)
    theta = theta._replace(model=replace(theta.model, kernel=kernel), Z=theta.Z[:points])
    if share != "both":
        own = replace(theta.model, kernel=one_per_function(kernel, n_latent), **sharing(share))
        Z = theta.Z if own.shared_points else jnp.stack([theta.Z] * n_latent)
        theta = theta._replace(model=own, Z=Z)
    alike = rows if learned else ArrayRows(rows.X, rows.y, rows.weight, std=rows.std[:1])
    check_gradient(theta, alike, n_latent)
    if not learned and points is not None:
        m, _ = moments(some_q(n_latent, theta.Z.shape[-2]))
        prepared, _ = prepare(*theta, 1e-9)
        short, long = (gradient_pass(prepared, m, whole(r)).bound for r in (alike, rows))
        np.testing.assert_allclose(short, long, rtol=1e-10)


@EVERY_FORM
@pytest.mark.parametrize(("learned", "share"), [(True, "kernel"), (False, "none")])
def test_the_gradient_of_the_dual_bound_equals_finite_differences(kind, learned, share):
    check_gradient(*noisy_problem("Softmax 2", kind, 0.3, learned=learned, share=share))


def check_gradient(theta, rows, n_latent):
    """In a random direction of all parameters."""
    prepared, _ = prepare(*theta, 1e-9)
    q = some_q(n_latent, theta.Z.shape[-2])
    m, _ = moments(q)
    sites = rows.keep(lambda chunk: gradient_pass(prepared, m, chunk).sites)
    held = Problem(Variational(), rows, Held(sites, less_prior(q)), 1e-9)
    gradient = dual_objective(held, theta).by_theta
    leaves, structure = jax.tree.flatten(theta)
    rng = np.random.default_rng(3)
    directions = [rng.normal(size=leaf.shape) for leaf in leaves]

    def value(step):
        moved = [leaf + step * d for leaf, d in zip(leaves, directions, strict=True)]
        return dual_objective(held, jax.tree.unflatten(structure, moved)).objective

    numeric = (value(1e-5) - value(-1e-5)) / 2e-5
    pairs = zip(jax.tree.leaves(gradient), directions, strict=True)
    along = sum(float(np.sum(g * d)) for g, d in pairs)
    np.testing.assert_allclose(along, numeric, rtol=2e-5)


@EVERY_KIND
@SOME
def test_steps_climb(name, kind):
    theta, rows, n_latent = noisy_problem(name, kind, 0.4)
    prepared, _ = prepare(*theta, 1e-9)
    start, elbos = Start(Natural.standard(n_latent, theta.Z.shape[0])), []
    settle(
        Variational(),
        prepared,
        start,
        rows,
        Limits(8, 1e-9),
        on_step=lambda elbo, q: elbos.append(elbo),
    )
    assert len(elbos) >= 2
    assert np.all(np.diff(elbos) >= 0)


def test_a_law_of_its_own_for_each_row_is_never_worse_than_the_errors():
    """log E exp ℓ, with the best q(x), lies above E ℓ, with q(x) the law of the error."""
    bounds = np.random.default_rng(0).normal(size=40)
    free, fixed = (kind(count=4).joined(jnp.asarray(bounds), None) for kind in (Latent, Augmented))
    assert np.all(np.asarray(free) >= np.asarray(fixed))
    q = np.exp(bounds.reshape(-1, 4))
    q /= q.sum(axis=1, keepdims=True)
    best = np.sum(q * (bounds.reshape(-1, 4) - np.log(4 * q)), axis=1)
    np.testing.assert_allclose(free, best, rtol=1e-12)


@given(
    seed=st.integers(0, 2**31),
    shift=st.lists(st.floats(-6, 6), min_size=3, max_size=3),
    log_variance=st.lists(st.floats(-3, 6), min_size=3, max_size=3),
    std=st.sampled_from([0.0, 0.1, 3.0]),
)
def test_no_network_makes_a_row_more_likely_than_its_best_place(seed, shift, log_variance, std):
    rng = np.random.default_rng(seed)
    network = replace(Network.start(3, 2), last_bias=np.array([*shift, *log_variance]))
    X, bounds = rng.normal(size=(5, 3)), -rng.exponential(size=(5, 8))
    inputs = Amortised(count=8, network=network)
    nodes = inputs.nodes(jnp.asarray(X), jnp.full((1, 3), std), jnp.arange(5) % 2)
    joined = inputs.joined(jnp.asarray(bounds.ravel()), nodes.log_weight)
    assert np.all(np.asarray(joined) <= bounds.max(axis=1) + 1e-12)
    if std == 0.0:
        plain = np.log(np.mean(np.exp(bounds), axis=1))
        np.testing.assert_allclose(joined, plain, rtol=1e-12)


def test_a_network_does_not_learn_by_heart_where_the_places_are():
    rng = np.random.default_rng(0)
    true = rng.uniform(-2, 2, (60, 3))
    X, y = true + 0.5 * rng.normal(size=true.shape), np.sin(2 * true[:, 0]) + true[:, 1] > 0
    parameters = QUICK | {"n_inducing": 20, "max_epochs": 30}
    clf = GPClassifier("robust-max", input_noise=Amortised(count=16), **parameters)
    clf.fit(X, y, X_std=0.5)
    theta, q = thawed(clf.posterior_)
    std = np.full((1, 3), 0.5)
    rows = ArrayRows(X, y.astype(np.int32), np.ones(60), scaling=clf._scaling, std=std)
    own, exact = (
        Variational()
        .look(prepare(replace(theta.model, inputs=inputs), theta.Z, 1e-9)[0], q, rows)
        .objective
        for inputs in (theta.model.inputs, Latent(count=1024))
    )
    assert abs(own - exact) < 0.1 * len(X)  # 1.2 a row without what is expected of weights


@pytest.mark.parametrize("dimensions", [1, 2, 7])
def test_places_have_the_mean_and_the_variance_of_the_error(dimensions):
    rng = np.random.default_rng(0)
    X, std = rng.normal(size=(5, dimensions)), rng.uniform(0.1, 2, (5, dimensions))
    places = np.asarray(scattered(jnp.asarray(X), jnp.asarray(std), 16)).reshape(5, 16, -1)
    np.testing.assert_allclose(places.mean(axis=1), X, atol=1e-9)
    np.testing.assert_allclose(places.std(axis=1), std, rtol=1e-9)
    nodes = normal_nodes(1024, dimensions)
    np.testing.assert_allclose(np.mean(nodes**4, axis=0), 3.0, rtol=0.05)


def overlapping(rows=80):
    """Two classes on a line, symmetric about 0, and their labels."""
    x = np.linspace(-2, 2, rows)
    return x[:, None], (x > 0).astype(int)


QUICK = {"kernel": "rbf", "n_inducing": 12, "max_epochs": 12, "random_state": 0}


@pytest.mark.parametrize("kind", SAME_FOR_ALL)
def test_the_classifier_without_errors_is_the_plain_one(kind, few_places):
    X, y = overlapping()
    # few rows, but many places; what is told of errors, be they 0, is not bent
    plain = GPClassifier(inference="natural", scaling="standard", **QUICK).fit(X, y)
    noisy = GPClassifier(input_noise=kind, precision="double", **QUICK).fit(X, y, X_std=0)
    grid = np.linspace(-3, 3, 50)[:, None]
    np.testing.assert_allclose(noisy.predict_proba(grid), plain.predict_proba(grid), atol=1e-5)


@pytest.mark.parametrize("kind", KINDS[:3])
def test_more_noise_never_sharpens_a_probability_near_a_boundary(kind, few_places):
    X, y = overlapping()
    near = np.linspace(-0.5, 0.5, 11)[:, None]
    last = np.full(11, 0.5)
    for std in (0.0, 0.2, 0.5):
        fitted = GPClassifier(input_noise=kind, **QUICK).fit(X, y, X_std=std)
        p = fitted.predict_proba(near)[:, 1]
        np.testing.assert_allclose(p + p[::-1], 1.0, atol=0.03)
        sharpness = np.abs(p - 0.5)
        assert np.all(sharpness <= last + 0.003)  # at the boundary itself it is 0 but for the fit
        assert np.mean(sharpness) <= np.mean(last)
        last = sharpness


def test_rows_have_as_many_places_as_there_is_time_for():
    places = [auto_places(rows) for rows in (1, 512, 513, 1024, 1025, 2048, 2049, 10**7)]
    assert places == [128, 128, 64, 64, 32, 32, 16, 16]
    assert [quick_places(rows) for rows in (1, 2048, 2049, 10**7)] == [32, 32, 16, 16]


def test_by_default_there_are_fewer_nodes_than_by_name():
    X, y = overlapping()
    default, made, named = (
        GPClassifier(input_noise=kind, **QUICK).fit(X, y, X_std=0.2)
        for kind in (None, Latent(count=32), "latent")
    )
    places = [clf.posterior_.prepared.model.inputs.places for clf in (default, made, named)]
    assert places == [32, 32, 128]
    np.testing.assert_array_equal(default.predict_proba(X), made.predict_proba(X))
    alone = [default.predict_proba(row[None], X_std=0.2)[0] for row in X[:3]]
    together = default.predict_proba(X, X_std=0.2)[:3]
    np.testing.assert_allclose(alone, together, rtol=1e-6)


@pytest.mark.filterwarnings("error")
def test_many_places_are_as_many_rows_and_rounding_does_not_matter():
    X, y = overlapping(40)
    fitted = [
        GPClassifier(input_noise=Latent(count=count), precision=precision, **QUICK)
        .fit(X, y, X_std=0.3)
        for count, precision in ((16, "auto"), (64, "auto"), (64, "double"))
    ]  # fmt: skip
    assert [clf.posterior_.row_dtype for clf in fitted] == ["float64", "float32", "float64"]
    single, double = (clf.predict_proba(X) for clf in fitted[1:])
    np.testing.assert_allclose(single, double, atol=1e-3)


def test_a_first_look_has_fewer_places_never_more():
    counts = [Latent(count=count).coarser().count for count in (128, 64, 32, 20, 16, 4, 1)]
    assert counts == [32, 16, 16, 16, 16, 4, 1]
    assert Exact().coarser() == Exact()
    network = Network.start(2, 3)
    assert Amortised(count=64, network=network).coarser().network is network


def test_a_kind_may_be_an_object_with_options(tmp_path):
    X, y = overlapping()
    parameters = {"input_noise": Amortised(count=1, hidden=5), **QUICK}
    fitted = clone(GPClassifier(**parameters)).fit(X, y, X_std=0.2)
    inputs = fitted.posterior_.prepared.model.inputs
    assert inputs.places == 1
    assert inputs.network.first.shape == (5, 3)
    fitted.save(tmp_path / "model")
    assert GPClassifier.load(tmp_path / "model").input_noise.hidden == 5
    named, made = (
        GPClassifier(input_noise=k, **QUICK) for k in ("latent", Latent(count=auto_places(len(X))))
    )
    a, b = (each.fit(X, y, X_std=0.2).predict_proba(X) for each in (named, made))
    np.testing.assert_array_equal(a, b)
    with pytest.raises(ValueError, match="count must be a whole number of at least 1"):
        Latent(count=0)


@pytest.mark.parametrize("kind", ["latent", "amortised", "parametric"])
def test_a_learned_error_comes_back_from_a_file(kind, tmp_path):
    X, y = overlapping()
    X = np.column_stack([X, np.sin(5 * X)])
    fitted = GPClassifier(
        input_noise=kind, input_noise_std="learn", noisy_features=[0], **QUICK
    ).fit(X, y)
    assert fitted.input_noise_std_[0] > 0
    assert fitted.input_noise_std_[1] == 0
    fitted.save(tmp_path / "model")
    loaded = GPClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.input_noise_std_, fitted.input_noise_std_)
    np.testing.assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))


def test_a_kind_that_cannot_tell_the_size_of_errors_says_so():
    X, y = overlapping(40)
    with pytest.warns(UserWarning, match='To learn their size use "latent"'):
        GPClassifier(input_noise="first-order", input_noise_std="learn", **QUICK).fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "std", "sentence"),
    [
        ({}, [1.0, 2.0], "X_std must be a number, one value per feature"),
        ({}, -0.1, "X_std must be finite and not negative"),
        ({}, np.nan, "X_std must be finite"),
        ({}, "much", "X_std must hold numbers"),
        ({"input_noise": "latent"}, None, "needs to know how large the errors are"),
        ({"input_noise_std": "learn"}, 0.1, "has nothing to learn"),
        ({"input_noise": "augment", "input_noise_std": "learn"}, None, "cannot learn"),
        ({"input_noise_std": "learn", "noisy_features": [3]}, None, "features names column 3"),
        ({"input_noise": "some"}, None, "The 'input_noise' parameter of GPClassifier must be"),
    ],
)
def test_errors_that_make_no_sense_are_refused(parameters, std, sentence):
    X, y = overlapping(20)
    with pytest.raises(ValueError, match=sentence):
        GPClassifier(**parameters, **QUICK).fit(X, y, X_std=std)
