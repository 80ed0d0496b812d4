"""Time a natural step against the arithmetic it must do, at the matrix-product speed of this run.

A step on a batch: the moments of q, the features of the rows, their marginals, sites and bound,
the sums over rows, and the new q. Counted are the products of B·M² that it cannot do without:
whitening (triangular), a quadratic form for each of C functions, and for each a symmetric sum;
B·M²·(1 + 2C + C) multiplications and additions. Kernel, likelihood and M³ work is not counted.
"""

import argparse
import itertools
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from gpclf.data import ArrayRows
from gpclf.gaussian import Natural, moments
from gpclf.inference.natural import any_negative, stochastic_step
from gpclf.inference.passes import step_pass
from gpclf.inputs import Exact
from gpclf.kernels import RBF
from gpclf.likelihoods import likelihood_from
from gpclf.linalg import one_thread
from gpclf.model import Model, prepare

BATCHES, INDUCING, CLASSES = (1024, 4096), (100, 200, 500), (1, 6, 26)
TARGETS = {(4096, 500, 6): 0.40, (1024, 200, 1): 0.25}
FEATURES = 16
RESULTS = Path(__file__).parent / "results" / "step.jsonl"


def best(call: Callable[[], object], seconds: float = 1.5) -> float:
    """The shortest of as many calls as fit into some seconds."""
    jax.block_until_ready(call())
    end, shortest = time.perf_counter() + seconds, np.inf
    while time.perf_counter() < end:
        start = time.perf_counter()
        jax.block_until_ready(call())
        shortest = min(shortest, time.perf_counter() - start)
    return shortest


def product_speed() -> float:
    """Operations a second in a product of two 2,000 x 2,000 matrices in float32, by NumPy."""
    a = np.random.default_rng(0).normal(size=(2000, 2000)).astype(np.float32)
    return 2 * 2000**3 / best(lambda: a @ a)


def step_seconds(batch: int, size: int, n_latent: int) -> float:
    """One stochastic natural step on random rows."""
    random = np.random.default_rng(0)
    X = random.normal(size=(batch, FEATURES)).astype(np.float32)
    n_classes = max(n_latent, 2)
    y = random.integers(0, n_classes, batch).astype(np.int32)
    kernel = RBF(lengthscale=np.full(FEATURES, 4.0), variance=4.0)
    model = Model(kernel, likelihood_from("auto", n_classes), Exact())
    model = jax.tree.map(jnp.asarray, model)
    prepared, _ = prepare(model, jnp.asarray(random.normal(size=(size, FEATURES))), 1e-6)
    chunk = next(ArrayRows(X, y, np.ones(batch, np.float32)).chunks())
    q = Natural.standard(n_latent, size)

    def step() -> Natural:
        nonlocal q
        m, _ = moments(q)
        statistics, sites = step_pass(prepared, m, chunk)
        q = stochastic_step(q, statistics.target(), 0.1, any_negative(sites))
        return q

    return best(step)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="only the shapes with a target")
    options = parser.parse_args()
    shapes = list(TARGETS) if options.quick else itertools.product(BATCHES, INDUCING, CLASSES)
    speed = product_speed()
    print(f"matrix product: {speed / 1e9:.0f} Gflop/s\n\n    B    M   C  step ms  Gflop/s  share")
    missed = 0
    RESULTS.parent.mkdir(exist_ok=True)
    with jax.enable_x64(True), one_thread():
        for batch, size, n_latent in shapes:
            seconds = step_seconds(batch, size, n_latent)
            reached = batch * size**2 * (1 + 3 * n_latent) / seconds
            share, target = reached / speed, TARGETS.get((batch, size, n_latent))
            line = f"{batch:>5} {size:>4} {n_latent:>3} {seconds * 1e3:>8.2f} {reached / 1e9:>8.1f}"
            line += f"  {share:>4.0%}"
            if target is not None:
                missed += share < target
                line += f"  {'met' if share >= target else 'not met'}: {target:.0%} asked"
            print(line, flush=True)
            record = {"when": time.strftime("%Y-%m-%dT%H:%M:%S"), "B": batch, "M": size}
            record |= {"C": n_latent, "seconds": seconds, "share": share, "product": speed}
            with RESULTS.open("a") as file:
                file.write(json.dumps(record) + "\n")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
