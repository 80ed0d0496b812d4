"""GPClassifier, with the rivals' kernel and number of inducing points or all defaults: a racer."""

import time

_import_start = time.perf_counter()

import jax  # noqa: E402

import gpclf  # noqa: E402

IMPORT_SECONDS = time.perf_counter() - _import_start

from racer import Race, compete  # noqa: E402


def run(race: Race) -> None:
    def callback(snapshot) -> None:
        race.steps += 1
        # JAX answers before it has finished: work still under way belongs to the fit.
        jax.block_until_ready(jax.live_arrays())
        race.test(snapshot.predict_log_proba)

    options = race.options
    classifier = gpclf.GPClassifier(
        kernel=None if options.n_inducing == "auto" else "rbf",
        n_inducing=options.n_inducing,
        random_state=options.seed,
        callback=callback,
    ).fit(race.X_train, race.y_train)
    race.test(classifier.predict_log_proba)


if __name__ == "__main__":
    compete(__doc__, f"gpclf {gpclf.__version__}", IMPORT_SECONDS, run)
