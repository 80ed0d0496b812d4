"""GPClassifier with its defaults and a given number of inducing points: one racer of race.py."""

import argparse
import time

_import_start = time.perf_counter()

import jax  # noqa: E402

import gpclf  # noqa: E402

IMPORT_SECONDS = time.perf_counter() - _import_start

from racer import Race, RaceOver, add_race_options  # noqa: E402


def run(race: Race) -> None:
    steps = 0

    def callback(snapshot) -> None:
        nonlocal steps
        steps += 1
        # JAX answers before it has finished: work still under way belongs to the fit.
        jax.block_until_ready(jax.live_arrays())
        race.test(steps, snapshot.predict_log_proba)

    options = race.options
    classifier = gpclf.GPClassifier(
        n_inducing=options.n_inducing, random_state=options.seed, callback=callback
    ).fit(race.X_train, race.y_train)
    race.test(steps, classifier.predict_log_proba)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_race_options(parser)
    race = Race(parser.parse_args())
    race.start(f"gpclf {gpclf.__version__}", IMPORT_SECONDS)
    try:
        run(race)
        race.end("finished its fit")
    except RaceOver as ending:
        race.end(str(ending))
    except ArithmeticError as error:
        race.end(f"blew up: {error}")


if __name__ == "__main__":
    main()
