"""The network of amortised inputs: its layers, and what of it comes back from a file."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from gpclf import GPClassifier
from gpclf.inputs import Amortised, Network

pytestmark = pytest.mark.usefixtures("x64")


@pytest.mark.parametrize("hidden", [5, (5,), (6, 4), (6, 4, 3)])
def test_a_network_of_any_depth_starts_at_the_law_of_the_error_and_is_what_its_layers_say(hidden):
    network = Network.start(3, 2, hidden)
    rng = np.random.default_rng(1)
    seen = jnp.asarray(rng.normal(size=(7, 5)))
    shift, log_variance = network(seen)
    np.testing.assert_array_equal(shift, np.zeros((7, 3)))
    np.testing.assert_allclose(log_variance, np.zeros((7, 3)), atol=1e-12)
    network = replace(network, last=rng.normal(size=network.last.shape))
    widths = hidden if isinstance(hidden, tuple) else (hidden,)
    bend = np.tanh if isinstance(hidden, int) else lambda z: np.maximum(z, 0.0)
    layer = np.asarray(seen)
    layers = [(network.first, network.first_bias), *network.middle]
    assert tuple(len(bias) for _, bias in layers) == widths
    for weights, bias in layers:
        layer = bend(layer @ weights.T + bias)
    np.testing.assert_allclose(network(seen)[0], (layer @ network.last.T)[:, :3], atol=1e-12)


def test_several_layers_are_learned_and_come_back_from_a_file(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = (X[:, 0] > 0).astype(int)
    parameters = {"kernel": "rbf", "n_inducing": 8, "max_epochs": 6, "random_state": 0}
    clf = GPClassifier("robust-max", input_noise=Amortised(count=4, hidden=(6, 4)), **parameters)
    clf.fit(X + 0.4 * rng.normal(size=X.shape), y, X_std=0.4)
    network, first = clf.posterior_.prepared.model.inputs.network, Network.start(2, 2, (6, 4))
    assert np.abs(network.middle[0][0] - first.middle[0][0]).max() > 0
    clf.save(tmp_path / "model")
    loaded = GPClassifier.load(tmp_path / "model")
    assert loaded.input_noise.hidden == (6, 4)
    again = loaded.posterior_.prepared.model.inputs.network
    np.testing.assert_array_equal(again.middle[0][0], network.middle[0][0])
    np.testing.assert_array_equal(loaded.predict_proba(X), clf.predict_proba(X))


@pytest.mark.parametrize("hidden", [0, (), (3, 0), 2.5, [4, 4], "much"])
def test_layers_that_make_no_sense_get_one_sentence(hidden):
    with pytest.raises(ValueError, match="hidden must be a whole number of at least 1 or a tuple"):
        Amortised(hidden=hidden)
