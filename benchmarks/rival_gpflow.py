"""GPflow's sparse variational GP with Adam, as its documentation has it: one racer of race.py.

Run by the Python of an environment that holds gpflow, tensorflow-cpu, tf-keras, scikit-learn.
"""

import argparse
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
_import_start = time.perf_counter()

import gpflow  # noqa: E402
import tensorflow as tf  # noqa: E402
from gpflow.keras import tf_keras  # noqa: E402
from sklearn.cluster import MiniBatchKMeans  # noqa: E402

IMPORT_SECONDS = time.perf_counter() - _import_start

import numpy as np  # noqa: E402

from racer import Race, RaceOver, add_race_options  # noqa: E402

LEARNING_RATE = 0.01
BATCH = 1024
FIRST_VARIANCE = 4.0
STEPS_PER_TEST = 20


def median_distance(X: np.ndarray, random: np.random.Generator, pairs: int = 5000) -> float:
    left, right = random.integers(len(X), size=(2, pairs))
    distance = np.linalg.norm(X[left] - X[right], axis=1)
    return float(np.median(distance[distance > 0]))


def make_model(race: Race, random: np.random.Generator) -> gpflow.models.SVGP:
    """One RBF kernel with a lengthscale per input, shared by the classes; free inducing points."""
    X, M = race.X_train, race.options.n_inducing
    lengthscales = np.full(X.shape[1], median_distance(X, random))
    # k-means++ refined by mini-batch k-means, as in gpclf
    means = MiniBatchKMeans(
        M, init="k-means++", n_init=1, max_iter=3, batch_size=2048, random_state=race.options.seed
    ).fit(X)
    two_classes = race.n_classes == 2
    return gpflow.models.SVGP(
        kernel=gpflow.kernels.RBF(variance=FIRST_VARIANCE, lengthscales=lengthscales),
        likelihood=gpflow.likelihoods.Bernoulli(invlink=tf.sigmoid)
        if two_classes
        else gpflow.likelihoods.Softmax(race.n_classes),
        inducing_variable=means.cluster_centers_,
        num_latent_gps=1 if two_classes else race.n_classes,
        num_data=len(X),
        whiten=True,
        q_diag=False,
    )


def make_log_probabilities(model: gpflow.models.SVGP, n_classes: int):
    """X to log-probabilities of the classes; GPflow's mean of y is p(y = 1), or all classes' p."""
    mean_of_y = tf.function(lambda X: model.predict_y(X)[0])

    def log_probabilities(X: np.ndarray) -> np.ndarray:
        p = mean_of_y(tf.constant(X)).numpy()
        with np.errstate(divide="ignore"):
            return np.log(np.hstack([1 - p, p]) if n_classes == 2 else p)

    return log_probabilities


def run(race: Race) -> None:
    random = np.random.default_rng(race.options.seed)
    model = make_model(race, random)
    X, y = tf.constant(race.X_train), tf.constant(race.y_train[:, None])
    if race.n_classes == 2:
        y = tf.cast(y, tf.float64)
    adam = tf_keras.optimizers.Adam(LEARNING_RATE)

    @tf.function
    def step(rows: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = model.training_loss((tf.gather(X, rows), tf.gather(y, rows)))
        variables = model.trainable_variables
        adam.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    log_probabilities = make_log_probabilities(model, race.n_classes)
    batch, steps = min(BATCH, len(race.X_train)), 0
    while True:
        order = random.permutation(len(race.X_train))
        for first in range(0, len(order) - batch + 1, batch):
            loss = step(tf.constant(order[first : first + batch]))
            steps += 1
            if not np.isfinite(loss):
                raise RaceOver(f"blew up: the loss is not finite at step {steps}")
            if steps % STEPS_PER_TEST == 0:
                race.test(steps, log_probabilities)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_race_options(parser)
    race = Race(parser.parse_args())
    tf.random.set_seed(race.options.seed)
    race.start(f"GPflow {gpflow.__version__}", IMPORT_SECONDS)
    try:
        run(race)
    except RaceOver as ending:
        race.end(str(ending))
    except tf.errors.InvalidArgumentError as error:
        race.end(f"blew up: {error.message.splitlines()[0]}")


if __name__ == "__main__":
    main()
