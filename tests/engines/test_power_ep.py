"""Laws of power-EP: of log E p^α on every likelihood, of its fixed point, of its energy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.special import log_expit, log_ndtr
from scipy.stats import norm

import cases
from bad_tables import BAD, WORST
from gpclf import GPClassifier
from gpclf import likelihoods as lik
from gpclf.data import ArrayRows, Kept
from gpclf.gaussian import Natural, moments
from gpclf.inference.engines import PowerEP
from gpclf.inference.hyper import Problem, dual_objective
from gpclf.inference.natural import Limits, Start, initial_posterior, settle
from gpclf.inference.power_passes import Fraction
from gpclf.inference.power_rule import SHARE, PowerRule
from gpclf.inference.rules import Variational
from gpclf.inference.stops import Stop
from gpclf.likelihoods import Sites
from gpclf.model import Theta, prepare
from grid import GRID, compiled, margin, product_rule, row_of
from problems import problem

# one of each kind: a rule for one function, closed forms, an integral over the winner, races
KINDS = pytest.mark.parametrize(
    "name", ["Logit", "Probit", "NoisyProbit 2", "RobustMax", "Softmax 2"]
)
_JITTED: dict = {}


def _evidence(name, alpha):
    """log E p^α, g and h, compiled once for each likelihood."""
    if (name, alpha) not in _JITTED:
        likelihood = cases.LIKELIHOODS[name][0]
        _JITTED[name, alpha] = jax.jit(lambda *row: likelihood.evidence_slopes(*row, alpha))
    return _JITTED[name, alpha]


@pytest.fixture(autouse=True)
def _x64():
    with jax.enable_x64(True):
        yield


@KINDS
@settings(max_examples=15)
@given(draw=GRID)
def test_at_power_one_the_evidence_is_the_predicted_probability(name, draw):
    with jax.enable_x64(True):
        _, y, mu, nu = row_of(name, draw)
        predicted = compiled(name, "log_probabilities")(mu, nu)[y]
        value, *slopes = _evidence(name, 1.0)(y, mu, nu)
        np.testing.assert_allclose(value, predicted, rtol=1e-5, atol=3e-4)
        assert all(np.all(np.isfinite(part)) for part in slopes)


@KINDS
@settings(max_examples=15)
@given(draw=GRID)
def test_at_zero_variance_it_is_the_power_of_the_likelihood(name, draw):
    with jax.enable_x64(True):
        _, y, mu, nu = row_of(name, draw)
        assert all(np.all(np.isfinite(part)) for part in _evidence(name, 0.5)(y, mu, nu))
        if name in cases.NOISY or (name in cases.FLIPPED and margin(y, mu) < 1e-4):
            return  # p(y | g) is still two-valued, g = f + noise; a step has no value at 0
        value, *_ = _evidence(name, 0.5)(y, mu, jnp.full_like(nu, 1e-12))
        exact = 0.5 * compiled(name, "log_prob")(y, mu)
        np.testing.assert_allclose(value, exact, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("name", ["Logit", "Probit"])
@settings(max_examples=40)
@given(draw=GRID)
def test_quadrature_finds_the_weight_wherever_it_is(name, draw):
    with jax.enable_x64(True):
        _, y, mu, nu = row_of(name, draw)
        mean, sd, s = float(mu[0]), float(np.sqrt(nu[0])), 2 * int(y) - 1
        if abs(mean) > 60 or sd > 30:
            return  # the plain rule of the truth ends there
        log_p = {"Logit": log_expit, "Probit": log_ndtr}[name]
        z = np.linspace(-60, 60, 40_001)
        logs = 0.5 * log_p(s * (mean + sd * z)) + norm.logpdf(z) + np.log(z[1] - z[0])
        exact = np.logaddexp.reduce(logs)
        value, *_ = _evidence(name, 0.5)(y, mu, nu)
        np.testing.assert_allclose(value, exact, rtol=1e-4, atol=1e-4)


@KINDS
@pytest.mark.parametrize("alpha", [1.0, 0.5])
def test_the_slopes_are_first_and_second_derivatives_of_the_value(name, alpha):
    _, y, mu, nu = row_of(name, (1, [0.3, -0.5, 1.2, 0.1], [0.5, 1.0, 2.0, 1.5]))
    value, g, h = _evidence(name, alpha)(y, mu, nu)
    for c in range(len(mu)):
        ahead, behind = (
            _evidence(name, alpha)(y, mu.at[c].add(step), nu)[0] for step in (1e-2, -1e-2)
        )
        np.testing.assert_allclose(g[c], (ahead - behind) / 2e-2, atol=5e-3)
        np.testing.assert_allclose(h[c], (ahead + behind - 2 * value) / 1e-4, atol=2e-2)


def test_a_few_nodes_of_several_functions_are_enough_for_powers_below_one():
    name = "Softmax 2"
    likelihood = cases.LIKELIHOODS[name][0]
    for mean, variance in (((0.3, -1.0), (0.5, 2.0)), ((-6.0, 4.0), (9.0, 1.0))):
        mu, nu = jnp.array(mean), jnp.array(variance)
        f, weight = product_rule(mu, nu, 80)
        logs = jax.vmap(lambda f: likelihood.log_prob(jnp.asarray(0), f))(jnp.asarray(f))
        exact = np.logaddexp.reduce(0.5 * np.asarray(logs) + np.log(weight))
        value, *_ = _evidence(name, 0.5)(jnp.asarray(0), mu, nu)
        np.testing.assert_allclose(value, exact, atol=5e-3)


def test_the_probits_closed_form_equals_the_quadrature_it_replaces():
    for mean, variance in ((0.3, 0.5), (-4.0, 2.0), (-20.0, 9.0), (2.0, 400.0)):
        mu, nu = jnp.array([mean]), jnp.array([variance])
        closed = lik.Probit().log_evidence(jnp.asarray(1), mu, nu, 1.0)
        by_rule = lik.Probit().log_evidence(jnp.asarray(1), mu, nu, jnp.asarray(1.0))
        np.testing.assert_allclose(by_rule, closed, rtol=1e-5, atol=1e-5)


def _pairs_by_hand(y, mu, nu):
    rivals = [c for c in range(len(mu)) if c != y]
    return sum(log_ndtr((mu[y] - mu[c]) / np.sqrt(nu[y] + nu[c])) for c in rivals)


def test_the_product_of_pairs_has_the_slopes_of_its_own_logarithm():
    likelihood, y = lik.RobustMax(pairs=True), 1
    mu, nu = np.array([0.3, -0.5, 1.2]), np.array([0.5, 1.0, 2.0])
    value, g, h = likelihood.evidence_slopes(jnp.asarray(y), jnp.asarray(mu), jnp.asarray(nu), 1.0)
    np.testing.assert_allclose(value, _pairs_by_hand(y, mu, nu), rtol=1e-12)
    for c in range(3):
        ahead, behind = (_pairs_by_hand(y, mu + step * np.eye(3)[c], nu) for step in (1e-4, -1e-4))
        np.testing.assert_allclose(g[c], (ahead - behind) / 2e-4, rtol=1e-6)
        np.testing.assert_allclose(h[c], (ahead + behind - 2 * value) / 1e-8, rtol=1e-5)


def _settled(theta, rows, n_latent, fraction, sweeps=100, gap=1e-16):
    prepared, _ = prepare(*theta, 1e-9)
    q, held = initial_posterior(prepared, Natural.standard(n_latent, theta.Z.shape[-2]), rows)
    limits = Limits(sweeps, gap / SHARE)
    return prepared, settle(PowerRule(fraction), prepared, Start(q, held), rows, limits)


def _counting(rows, weight):
    return ArrayRows(rows.X, rows.y, weight)


def _dense_ep(K, y, weight, sweeps=300):
    """EP for the probit on a full process, row by row (Rasmussen & Williams 2006, Alg. 3.5).

    A row of whole weight w stands for w equal ones, whose sites are equal.
    """
    N = len(y)
    tau, lam = np.zeros(N), np.zeros(N)
    S, mu = K.copy(), np.zeros(N)
    for _ in range(sweeps):
        for n in range(N):
            precision = 1 / S[n, n] - tau[n]
            mean, variance = (mu[n] / S[n, n] - lam[n]) / precision, 1 / precision
            z = y[n] * mean / np.sqrt(1 + variance)
            ratio = np.exp(norm.logpdf(z) - log_ndtr(z)) / np.sqrt(1 + variance)
            there = mean + y[n] * variance * ratio
            spread = variance - variance**2 * ratio * (z / np.sqrt(1 + variance) + ratio)
            tau[n], lam[n] = 1 / spread - precision, there / spread - mean * precision
            root = np.sqrt(weight * np.maximum(tau, 0))
            B = np.eye(N) + root[:, None] * K * root
            V = np.linalg.solve(np.linalg.cholesky(B), root[:, None] * K)
            S = K - V.T @ V
            mu = S @ (weight * lam)
    precision = 1 / np.diag(S) - tau
    mean, variance = (mu / np.diag(S) - lam) / precision, 1 / precision
    log_z = log_ndtr(y * mean / np.sqrt(1 + variance))
    gone = 0.5 * (mean**2 / variance - mu**2 / np.diag(S) + np.log(variance / np.diag(S)))
    _, log_det = np.linalg.slogdet(B)
    return weight @ (log_z + gone) + 0.5 * (weight * lam) @ mu - 0.5 * log_det, mu, np.diag(S)


def _full(name, rows=16):
    theta, source, n_latent = problem(name, rows=rows)
    source = _counting(source, np.where(np.arange(rows) % 3 == 0, 2.0, 1.0))
    return Theta(theta.model, jnp.asarray(source.X)), source, n_latent


def test_ep_equals_a_dense_one_row_by_row():
    theta, source, n_latent = _full("Probit")
    prepared, found = _settled(theta, source, n_latent, Fraction(1.0))
    K = np.asarray(theta.model.kernel.matrix(theta.Z, theta.Z)) + 2e-9 * np.eye(16)
    evidence, mean, variance = _dense_ep(K, 2 * source.y - 1, source.weight, sweeps=30)
    assert found.reason == Stop.CONVERGED
    np.testing.assert_allclose(found.objective, evidence, rtol=1e-6)
    m = jax.device_put(moments(found.q)[0])
    mu, nu = prepared.marginals(prepared.features(jnp.asarray(source.X)), m)
    np.testing.assert_allclose(mu[:, 0], mean, atol=1e-6)
    np.testing.assert_allclose(nu[:, 0], variance, atol=1e-6)


def test_fitc_is_dense_ep_under_its_own_prior():
    """Q + diag(K − Q) in the place of K: what points do not explain is each row's own."""
    theta, source, n_latent = problem("Probit", rows=16)
    source = _counting(source, np.ones(16))
    prepared, found = _settled(theta, source, n_latent, Fraction(1.0))
    X = jnp.asarray(source.X)
    features, new = prepared.features(X), prepared.features(X + 0.4)
    A = np.asarray(features.A)
    prior = A @ A.T + np.diag(np.asarray(features.diagonal) - np.sum(A * A, axis=1))
    evidence, mean, _ = _dense_ep(prior, 2 * source.y - 1, np.ones(16), sweeps=30)
    np.testing.assert_allclose(found.objective, evidence, rtol=1e-6)
    mu, _ = prepared.marginals(new, jax.device_put(moments(found.q)[0]))
    at_new = np.asarray(new.A) @ A.T @ np.linalg.solve(prior, mean)
    np.testing.assert_allclose(mu[:, 0], at_new, atol=1e-6)


def test_fitc_with_every_row_in_any_order_is_ep():
    theta, source, n_latent = _full("Logit")
    _, found = _settled(theta, source, n_latent, Fraction(1.0))
    order = np.random.default_rng(0).permutation(16)
    more = Theta(theta.model, jnp.concatenate([theta.Z[order], theta.Z[:1] + 3.0]))
    _, same = _settled(more, source, n_latent, Fraction(1.0))  # one point more says nothing new
    np.testing.assert_allclose(same.objective, found.objective, rtol=1e-6)


@pytest.mark.parametrize("name", ["Logit", "Probit", "RobustMax 2"])
def test_close_to_power_zero_it_is_variational_inference(name):
    theta, source, n_latent = problem(name)
    prepared, found = _settled(theta, source, n_latent, Fraction(1e-3, True), gap=1e-12)
    start, _ = initial_posterior(prepared, Natural.standard(n_latent, 9), source)
    limits = Limits(300, 1e-10, 1e-10)
    climbed = settle(Variational(), prepared, Start(start), source, limits)
    np.testing.assert_allclose(found.objective, climbed.objective, rtol=1e-2)
    own, other = moments(found.q)[0], moments(climbed.q)[0]
    np.testing.assert_allclose(own.mean, other.mean, atol=1e-2)
    np.testing.assert_allclose(own.excess, other.excess, atol=1e-2)


LAWFUL = pytest.mark.parametrize(
    ("name", "alpha", "share"),
    [("Probit", 1.0, "both"), ("Logit", 0.5, "kernel"), ("RobustMax 2", 1.0, "none")],
)


@LAWFUL
def test_at_the_fixed_point_the_energy_is_stationary_in_the_sites(name, alpha, share):
    theta, source, n_latent = problem(name, share=share, rows=30)
    source = _counting(source, np.maximum(source.weight, 1.0))
    fraction = Fraction(alpha)
    prepared, found = _settled(theta, source, n_latent, fraction)
    assert found.reason == Stop.CONVERGED
    rule, rng = PowerRule(fraction), np.random.default_rng(0)
    (sites,) = found.held.sites
    ways = [rng.normal(size=part.shape) for part in sites]

    def moved(step):
        parts = (part + step * way for part, way in zip(sites, ways, strict=True))
        held = found.held._replace(sites=Kept([Sites(*parts)]))
        return dual_objective(Problem(rule, source, held, 1e-9), theta).objective

    np.testing.assert_allclose(moved(0.0), found.objective, rtol=1e-9)
    assert abs(moved(1e-4) - moved(-1e-4)) / 2e-4 < 1e-4
    (fresh,) = rule.look(prepared, found.q, source, found.held.sites).sites
    for new, old in zip(fresh, sites, strict=True):
        np.testing.assert_allclose(new, old, atol=1e-6)


@LAWFUL
def test_the_gradient_of_the_energy_equals_finite_differences(name, alpha, share):
    theta, source, n_latent = problem(name, share=share, rows=30)
    fraction = Fraction(alpha, True)
    _, found = _settled(theta, source, n_latent, fraction, sweeps=3)
    rng = np.random.default_rng(3)
    problem_of_30 = Problem(PowerRule(fraction), source, found.held, 1e-9, most_improper=30)
    leaves, structure = jax.tree.flatten(theta)
    ways = [rng.normal(size=leaf.shape) for leaf in leaves]

    def moved(step):
        there = [leaf + step * way for leaf, way in zip(leaves, ways, strict=True)]
        return dual_objective(problem_of_30, jax.tree.unflatten(structure, there))

    numeric = (moved(1e-5).objective - moved(-1e-5).objective) / 2e-5
    pairs = zip(jax.tree.leaves(moved(0.0).by_theta), ways, strict=True)
    np.testing.assert_allclose(sum(float(np.sum(g * w)) for g, w in pairs), numeric, rtol=1e-4)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = np.array([[0.0, 3.0], [3.0, 0.0], [-3.0, -1.0]])[y] + rng.normal(size=(90, 2))
    return X, np.array(["a", "b", "c"])[y]


def _fitted(X, y, likelihood="robust-max", engine="power-ep", **parameters):
    known = {"n_inducing": 10, "max_epochs": 6, "random_state": 0} | parameters
    clf = GPClassifier(likelihood, inference=engine, **known).fit(X, y)
    assert np.all(np.isfinite(clf.predict_proba(X)))
    assert np.isfinite(clf.elbo_)
    return clf


@pytest.mark.parametrize(
    ("likelihood", "n_classes", "engine", "parameters"),
    [
        (lik.RobustMax(pairs=True), 3, "power-ep", {}),
        ("probit", 2, PowerEP(batch_size=30), {}),
        ("logit", 2, PowerEP(0.5, "adam", batch_size=30), {}),
        ("step", 2, PowerEP(), {"class_weight": {"a": 0.5}, "share": "none"}),
    ],
)
def test_it_learns(likelihood, n_classes, engine, parameters, rows):
    X, y = rows
    known = np.isin(y, list("abc")[:n_classes])
    X, y = X[known], y[known]
    clf = _fitted(X, y, likelihood, engine, **parameters)
    assert clf.score(X, y) > 0.85
    elbo = clf.history_["elbo"]
    assert elbo[-1] > elbo[0]
    assert "hyper-parameters: " in clf.stopped_


def test_hyper_parameters_raise_the_energy_and_a_file_keeps_the_fit(rows, tmp_path):
    X, y = rows
    two = y != "c"
    start = _fitted(X[two], y[two], "probit", PowerEP(optimizer=None))
    clf = _fitted(X[two], y[two], "probit", max_epochs=12)
    assert clf.elbo_ > start.elbo_
    clf.save(tmp_path / "model.gpclf")
    same = GPClassifier.load(tmp_path / "model.gpclf")
    np.testing.assert_allclose(same.predict_proba(X), clf.predict_proba(X), atol=1e-9)
    assert same.inference == "power-ep"


def test_a_row_of_weight_two_is_two_rows(rows):
    theta, source, n_latent = _full("Probit")
    _, once = _settled(theta, source, n_latent, Fraction(1.0))
    again = np.concatenate([np.arange(16), np.flatnonzero(source.weight == 2)])
    twice = ArrayRows(source.X[again], source.y[again], np.ones(len(again)))
    _, same = _settled(theta, twice, n_latent, Fraction(1.0))
    np.testing.assert_allclose(same.objective, once.objective, rtol=1e-9)
    np.testing.assert_allclose(same.q.linear, once.q.linear, atol=1e-6)


@pytest.mark.parametrize(
    ("case", "likelihood"),
    [(case, "probit") for case in WORST]
    + [("one row per class", "robust-max"), ("zeros beside heavy tails", "step")],
)
def test_difficult_data_give_finite_probabilities(case, likelihood):
    X, y = BAD[case]
    y = np.asarray(y) if likelihood == "robust-max" else np.minimum(y, 1)
    clf = _fitted(X, y, likelihood, n_inducing="auto", max_epochs=4)
    np.testing.assert_allclose(clf.predict_proba(X).sum(axis=1), 1.0)


def test_errors_of_inputs_get_one_sentence(rows):
    with pytest.raises(ValueError, match="takes rows as exact"):
        _fitted(*rows, input_noise_std="learn")
