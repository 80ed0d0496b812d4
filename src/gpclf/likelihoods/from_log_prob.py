"""A likelihood of which only log p(y | f) is known: all the rest is found by quadrature."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from gpclf.likelihoods.base import Label, Latent, Likelihood, Scalar
from gpclf.likelihoods.power import Power, log_mean_power
from gpclf.quadrature import graded, normal_nodes

HALF = 256  # nodes for several functions, and as many on the other side


class FromLogProb(Likelihood):
    """Gives the bound, the sites and the class probabilities of any smooth `log_prob`.

    With one function ℓ = E log p(y | f) by 64 nodes, to about 1e-6 where log p bends near 0 and
    grows like a polynomial. With several by 512 nodes, the same for all rows: ℓ is then an estimate
    of E log p, the same whenever it is asked for, and its gradient is exactly its own. `log_prob`
    needs two derivatives: a step has a bound of its own to be written.

    One function stands for two classes (derive from `TwoClass` as well), else there is one a class.
    """

    def bound(self, y: Label, mu: Latent, nu: Latent) -> Scalar:
        """E log p(y | f), by quadrature."""
        if mu.shape[0] == 1:
            return _expected_log_prob(self, y, mu[0], nu[0])
        nodes = jnp.asarray(balanced_nodes(mu.shape[0]), mu.dtype)
        return jnp.mean(jax.vmap(lambda f: self.log_prob(y, f))(mu + jnp.sqrt(nu) * nodes))

    def log_probabilities(self, mu: Latent, nu: Latent) -> Float[Array, "K"]:
        """log E p(k | f), for each class by nodes that lie where p(k | f) weighs most."""
        classes = jnp.arange(max(2, mu.shape[0]))
        logs = jax.vmap(lambda k: self.log_evidence(k, mu, nu, 1.0))(classes)
        return jax.nn.log_softmax(logs)  # each has an error of its own

    def log_evidence(self, y: Label, mu: Latent, nu: Latent, alpha: Power) -> Scalar:
        """log E p(y | f)^α, by quadrature."""
        return log_mean_power(lambda f: self.log_prob(y, f), mu, nu, alpha)


@cache
def balanced_nodes(n_latent: int) -> Float[np.ndarray, "S C"]:
    """Places of N(0, I) with its moments up to the third: each with its opposite, decorrelated.

    So the bound of a polynomial of the third degree is exact, and the gradient by a variance does
    not drown in what larger ones beside it leave, up to ten thousand times as large.
    """
    count = max(HALF, 2 ** (8 * n_latent - 1).bit_length())
    half = normal_nodes(count, n_latent)
    factor = np.linalg.cholesky(half.T @ half / count)
    half = np.linalg.solve(factor, half.T).T
    return np.concatenate([half, -half])


@jax.custom_jvp
def _expected_log_prob(likelihood: Likelihood, y: Label, mean: Scalar, variance: Scalar) -> Scalar:
    """E log p(y | f), f ~ N(mean, variance); its derivatives are expectations too (Bonnet, Price).

    Differences of nodes that are close together would lose them to rounding.
    """
    nodes, weights = graded(mean, variance)
    return weights @ jax.vmap(lambda f: likelihood.log_prob(y, f[None]))(nodes)


@_expected_log_prob.defjvp
def _expected_log_prob_jvp(primals, tangents):
    likelihood, y, mean, variance = primals
    along_likelihood, _, along_mean, along_variance = tangents
    nodes, weights = graded(mean, variance)

    def log_prob(own, f):
        return own.log_prob(y, f[None])

    slope = jax.grad(log_prob, argnums=1)
    bend = jax.grad(slope, argnums=1)
    value, along = jax.jvp(
        lambda own: weights @ jax.vmap(log_prob, (None, 0))(own, nodes),
        (likelihood,),
        (along_likelihood,),
    )
    by_mean = weights @ jax.vmap(slope, (None, 0))(likelihood, nodes)
    by_variance = 0.5 * weights @ jax.vmap(bend, (None, 0))(likelihood, nodes)
    return value, along + by_mean * along_mean + by_variance * along_variance
