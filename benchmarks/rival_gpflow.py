"""GPflow's sparse variational GP: one racer of race.py.

`--method adam`: Adam for everything. `--method natural`: natural-gradient steps for q and Adam for
kernel and inducing points, in turn on every batch. Run by the Python of an environment that holds
gpflow, tensorflow-cpu, tf-keras, scikit-learn.
"""

import os
import time
from collections.abc import Callable

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
_import_start = time.perf_counter()

import gpflow  # noqa: E402
import tensorflow as tf  # noqa: E402
from gpflow.keras import tf_keras  # noqa: E402

import svgp  # noqa: E402

IMPORT_SECONDS = time.perf_counter() - _import_start

import numpy as np  # noqa: E402

from racer import Predict, Race, compete  # noqa: E402


def make_model(race: Race) -> gpflow.models.SVGP:
    """One RBF kernel with a lengthscale per input, shared by the classes; free inducing points."""
    start = svgp.start(race.X_train, race.options.n_inducing, race.options.seed)
    two_classes = race.n_classes == 2
    return gpflow.models.SVGP(
        kernel=gpflow.kernels.RBF(variance=svgp.FIRST_VARIANCE, lengthscales=start.lengthscales),
        likelihood=gpflow.likelihoods.Bernoulli(invlink=tf.sigmoid)
        if two_classes
        else gpflow.likelihoods.Softmax(race.n_classes),
        inducing_variable=start.Z,
        num_latent_gps=1 if two_classes else race.n_classes,
        num_data=len(race.X_train),
        whiten=True,
        q_diag=False,
    )


def make_step(race: Race, model: gpflow.models.SVGP) -> Callable[[tf.Tensor], tf.Tensor]:
    """A function of row numbers that does one step on them and returns the loss before Adam's."""
    X, y = tf.constant(race.X_train), tf.constant(race.y_train[:, None])
    if race.n_classes == 2:
        y = tf.cast(y, tf.float64)
    adam = tf_keras.optimizers.Adam(svgp.ADAM_RATE)
    natural = None
    if race.options.method == "natural":
        natural = gpflow.optimizers.NaturalGradient(gamma=svgp.NATURAL_RATE)
        gpflow.set_trainable(model.q_mu, False)
        gpflow.set_trainable(model.q_sqrt, False)

    @tf.function
    def step(rows: tf.Tensor) -> tf.Tensor:
        batch = (tf.gather(X, rows), tf.gather(y, rows))
        if natural is not None:
            natural.minimize(lambda: model.training_loss(batch), [(model.q_mu, model.q_sqrt)])
        with tf.GradientTape() as tape:
            loss = model.training_loss(batch)
        variables = model.trainable_variables
        adam.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    return step


def make_log_probabilities(model: gpflow.models.SVGP, n_classes: int) -> Predict:
    """X to log-probabilities of the classes; GPflow's mean of y is p(y = 1), or all classes' p."""
    mean_of_y = tf.function(lambda X: model.predict_y(X)[0])

    def log_probabilities(X: np.ndarray) -> np.ndarray:
        p = mean_of_y(tf.constant(X)).numpy()
        with np.errstate(divide="ignore"):
            return np.log(np.hstack([1 - p, p]) if n_classes == 2 else p)

    return log_probabilities


def run(race: Race) -> None:
    tf.random.set_seed(race.options.seed)
    model = make_model(race)
    step, log_probabilities = make_step(race, model), make_log_probabilities(model, race.n_classes)
    for rows in svgp.batches(len(race.X_train), race.options.seed):
        race.stepped(float(step(tf.constant(rows))), log_probabilities)


if __name__ == "__main__":
    compete(
        __doc__,
        f"GPflow {gpflow.__version__}",
        IMPORT_SECONDS,
        run,
        methods=("adam", "natural"),
        blow_ups=(tf.errors.InvalidArgumentError,),
    )
