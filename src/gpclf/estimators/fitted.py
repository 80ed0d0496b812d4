"""What a fitted classifier can tell: predictions, what it does not know, pictures, a file."""

import os
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from gpclf.data import Columns, Scaling, Summary, encode, refuse_missing
from gpclf.estimators import persistence, pictures, scored
from gpclf.estimators.measurement_error import as_the_kernel_sees, errors_for, errors_of
from gpclf.estimators.parameters import check_count, check_joint
from gpclf.estimators.progress import stages
from gpclf.estimators.reporting import subject_of, table_of
from gpclf.estimators.tables import more_of_table, table
from gpclf.estimators.uncertainty import (
    Uncertainty,
    log_probabilities_and_uncertainty,
    most,
    scores,
    uncertainty_of,
)
from gpclf.gaussian import divergence
from gpclf.posterior import Posterior, draws, joint, row_bounds
from gpclf.prediction import latent_marginals, log_probabilities, spread
from gpclf.report import Report, make_report


class FittedClassifier:
    """The part of `GPClassifier` that needs its posterior and no rows."""

    verbose: Any
    posterior_: Posterior
    classes_: np.ndarray
    history_: dict[str, np.ndarray]
    input_noise_std_: np.ndarray | None
    training_summary_: Summary
    _columns: Columns
    _scaling: Scaling

    @property
    def categories_(self) -> list[np.ndarray | None]:
        """The sorted categories of each feature; None where it holds numbers."""
        check_is_fitted(self, "posterior_")
        return list(self._columns.levels)

    def _keep(self, posterior: Posterior) -> None:
        self.posterior_ = posterior
        self.kernel_ = posterior.prepared.model.kernel
        self.likelihood_ = posterior.likelihood
        self.inducing_points_ = self._scaling.backward(np.asarray(posterior.prepared.Z))
        self.relevance_ = self._relevance()

    def _relevance(self) -> np.ndarray:
        kernel, n_features = self.kernel_, self._scaling.width
        if self.posterior_.prepared.model.shared_kernel:
            raw = kernel.relevance(n_features)
        else:
            count = self.posterior_.n_latent
            own = (jax.tree.map(lambda leaf, c=c: leaf[c], kernel) for c in range(count))
            raw = np.mean([each.relevance(n_features) for each in own], axis=0)
        raw = self._scaling.by_feature(raw)
        return raw / raw.sum() if raw.sum() > 0 else raw

    def _fits_on(self, columns: Columns, classes: np.ndarray, likelihood: Any) -> bool:
        """Whether the last fit can be gone on from."""
        return (
            hasattr(self, "posterior_")
            and self._columns.same(columns)
            and np.array_equal(self.classes_, classes)
            and type(self.likelihood_) is type(likelihood)
        )

    def _rows(self, X: Any, dtype: Any = np.float64) -> np.ndarray:
        """X as the kernel sees it."""
        return self._scaling.forward(table(self, X, self._columns), dtype)

    def _checked(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "posterior_")
        return self._rows(X, self.posterior_.row_dtype)

    def _seen(
        self, usual: np.ndarray | None, X: Any, X_std: Any, dtype: Any = np.float64
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Rows and their errors as the kernel sees them; the `usual` ones if none are given."""
        numbers, names = table(self, X, self._columns), getattr(self, "feature_names_in_", None)
        std = errors_of(usual if X_std is None else X_std, numbers, self._columns, names)
        rows = self._scaling.forward(numbers, dtype)
        return rows, as_the_kernel_sees(std, numbers, self._scaling)

    def _rows_and_errors(self, X: Any, X_std: Any) -> tuple[np.ndarray, np.ndarray | None]:
        """The same of a fitted classifier."""
        check_is_fitted(self, "posterior_")
        return self._seen(self.input_noise_std_, X, X_std, self.posterior_.row_dtype)

    def predict_log_proba(self, X: Any, X_std: Any = None) -> np.ndarray:
        """Logarithms of the class probabilities, accurate where these are tiny: (N, C)."""
        rows, std = self._rows_and_errors(X, X_std)
        return log_probabilities(self.posterior_, rows, std)

    def predict_proba(self, X: Any, return_std: bool = False, X_std: Any = None) -> Any:
        """Class probabilities (N, C) in the order of `classes_`, latent variance integrated out.

        With errors `X_std` of the rows (as for `fit`) the places where they may be are integrated
        out, too. Where it is not given, the errors are `input_noise_std_`; 0 says that there are
        none. With `return_std` also the standard deviations of the probabilities (N, C): how far
        each probability itself is unknown, for want of rows nearby; with errors the root of the
        mean variance over where the row may be.
        """
        probabilities = np.exp(self.predict_log_proba(X, X_std))
        if not return_std:
            return probabilities
        return probabilities, spread(self.posterior_, *self._rows_and_errors(X, X_std)).std

    def predict(self, X: Any, X_std: Any = None) -> np.ndarray:
        """The most probable class of each row."""
        likeliest = np.argmax(self.predict_log_proba(X, X_std), axis=1)
        return self.classes_[likeliest]

    def predict_to(
        self,
        table: Any,
        path: str | os.PathLike,
        *,
        keep: Sequence[str] = (),
        uncertainty: bool = False,
    ) -> int:
        """Score a table on disk into a new file, in constant memory; how many rows it has.

        `table`: a `ParquetTable` or `ArrowTable`, or paths, of files that have the columns which
        were learned from. The file has a column `class`, `p_NAME` for each class and, if wanted,
        the `uncertainty` as `uncertainty_total`, `_data` and `_model`; before them the columns to
        `keep`. Its name ends in .parquet, .arrow, .feather, .csv, .tsv or .jsonl. It is written
        under another name first: it is there completely or not at all.
        """
        check_is_fitted(self, "posterior_")
        return scored.predict_to(self, table, path, keep, uncertainty)

    def score(self, X: Any, y: Any, sample_weight: Any = None, X_std: Any = None) -> float:
        """The share of rows whose most probable class is theirs, by their weights."""
        from sklearn.metrics import accuracy_score  # slow to import

        return float(accuracy_score(y, self.predict(X, X_std), sample_weight=sample_weight))

    def latent_mean_and_variance(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the latent functions: (N,) with one function, else (N, C).

        They are those at X as measured, whatever its errors are.
        """
        rows = self._checked(X)
        mean, variance = latent_marginals(self.posterior_, rows)
        return (mean[:, 0], variance[:, 0]) if mean.shape[1] == 1 else (mean, variance)

    def _joint_rows(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "posterior_")
        rows = self._rows(X)
        check_joint(len(rows), self.posterior_.n_latent)
        return rows

    def latent_covariance(self, X: Any) -> np.ndarray:
        """Covariance of the latent functions between rows: (N, N), with several (C, N, N).

        Functions are independent of each other. Rows count as exact.
        """
        rows = self._joint_rows(X)
        _, covariance = joint(self.posterior_, rows)
        return covariance[0] if len(covariance) == 1 else covariance

    def sample_latent(self, X: Any, n: Any = 1, random_state: Any = None) -> np.ndarray:
        """n joint samples of the latent functions at rows X: (n, N), with several (n, N, C)."""
        check_count("n", n)
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
        rows = self._joint_rows(X)
        samples = draws(self.posterior_, rows, int(n), rng)
        return samples[:, :, 0] if samples.shape[2] == 1 else samples

    def expected_log_likelihood(self, X: Any, y: Any, X_std: Any = None) -> np.ndarray:
        """The bound ℓ ≤ E log p(y | f) of each row under the posterior, in nats: (N,).

        Of any rows, also such as the fit has not seen. The sum over the training rows, each times
        its weight, less `kl_divergence()` is `elbo_`, but for engines whose `elbo_` is an energy of
        their own and after `partial_fit`. Errors `X_std` count as they did in `fit`, on its nodes;
        where a row has several of them, `elbo_` is on others, and about the same; "parametric"
        keeps nothing of its rows, and takes the law of the error for theirs.
        """
        check_is_fitted(self, "posterior_")
        refuse_missing(y)
        numbers, y = more_of_table(self, X, y, self._columns)
        _, index = encode(y, self.classes_)
        std = errors_of(X_std, numbers, self._columns, getattr(self, "feature_names_in_", None))
        inputs = self.posterior_.prepared.model.inputs
        std = errors_for(inputs, std, numbers, self.input_noise_std_)
        rows = self._scaling.forward(numbers)
        if std is not None:
            std = np.broadcast_to(self._scaling.errors(std, numbers), rows.shape)
        return row_bounds(self.posterior_, rows, index, std)

    def kl_divergence(self) -> float:
        """KL of the posterior from the prior, of all latent functions at the inducing points."""
        check_is_fitted(self, "posterior_")
        return divergence(self.posterior_.q)

    def uncertainty(self, X: Any, X_std: Any = None) -> Uncertainty:
        """The entropy of each row's class and its two parts, `data` and `model`, in nats.

        Errors of the rows count as in `predict_proba`; what they leave open belongs to `data`.
        """
        rows, std = self._rows_and_errors(X, X_std)
        return uncertainty_of(self.posterior_, rows, std)

    def predict_log_proba_and_uncertainty(
        self, X: Any, X_std: Any = None
    ) -> tuple[np.ndarray, Uncertainty]:
        """`predict_log_proba` and `uncertainty` at once: sooner than one after the other."""
        rows, std = self._rows_and_errors(X, X_std)
        return log_probabilities_and_uncertainty(self.posterior_, rows, std)

    def most_uncertain(self, X: Any, k: Any, by: str = "entropy", X_std: Any = None) -> np.ndarray:
        """The indices of the k most uncertain rows, the most uncertain first.

        By the "entropy" of the predicted class, by what its label would tell about the functions
        ("bald"), or by the smallest "margin" between the two most probable classes. Errors of the
        rows count as in `predict_proba`.
        """
        rows, std = self._rows_and_errors(X, X_std)
        return most(scores(self.posterior_, rows, by, std), k)

    def plot_history(self, axes: Any = None) -> Any:
        """Draw the bound of the last fit against time; returns the axes."""
        check_is_fitted(self, "posterior_")
        return pictures.plot_history(self.history_, axes)

    def plot_relevance(self, axes: Any = None) -> Any:
        """Draw how much each feature matters; returns the axes."""
        check_is_fitted(self, "posterior_")
        names = getattr(self, "feature_names_in_", None)
        return pictures.plot_relevance(self.relevance_, names, axes)

    def report(
        self,
        X: Any,
        y: Any = None,
        X_std: Any = None,
        path: str | os.PathLike | None = None,
        *,
        title: str | None = None,
        date: str | None = None,
        seed: int = 0,
        progress: Callable[[str, float], None] | None = None,
    ) -> Report:
        """A page about this classifier and these rows, for people who pass it on.

        With labels y: scores with intervals, reliability, confusion, curves by class. Always: what
        each feature matters and how, where the model does not know, how far the rows are from
        those of the training, and a model card. `path` writes the page, one HTML file. The same
        `seed` gives the same page; a `date` is in it if you give one. `progress` is told each
        stage, and which share of the work is done; without it `verbose` shows a bar. Errors of the
        rows count as in `predict_proba`.
        """
        check_is_fitted(self, "posterior_")
        table = table_of(self, X, y, X_std)
        with stages(self.verbose, progress) as tell:
            made = make_report(subject_of(self), table, title, date, seed, tell)
        if path is not None:
            made.save(path)
        return made

    def save(self, path: str | os.PathLike, notes: dict[str, Any] | None = None) -> None:
        """Write the fitted classifier as one file, without pickle: safe to open from a stranger.

        `notes` is what you want to know of it later, as JSON can hold it; `load` gives it back as
        `notes_`. None: those that it was loaded with, if there were some.
        """
        check_is_fitted(self, "posterior_")
        persistence.save(self, path, getattr(self, "notes_", None) if notes is None else notes)

    @classmethod
    def load(cls, path: str | os.PathLike) -> Any:
        """Read what `save` wrote."""
        return persistence.load(cls, path)
