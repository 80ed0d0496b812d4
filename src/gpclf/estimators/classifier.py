"""GPClassifier: Gaussian process classification behind scikit-learn's interface."""

import time
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils._param_validation import Interval, StrOptions

from gpclf.data import encode, refuse_missing
from gpclf.data.sources import Table
from gpclf.estimators.callbacks import CallbackSupportMixin, with_callbacks
from gpclf.estimators.checkpoints import Checkpoint
from gpclf.estimators.fitted import FittedClassifier
from gpclf.estimators.learning import learn, learn_more
from gpclf.estimators.measurement_error import KINDS, LEARNED, RESAMPLE, errors_of, refuse_pieces
from gpclf.estimators.notebook import Shown
from gpclf.estimators.parameters import check_points
from gpclf.estimators.tables import labelled_table, more_of_table, streamed_table
from gpclf.estimators.weights import weighed
from gpclf.inference.engines import NAMES as ENGINES
from gpclf.inference.engines import Engine, engine_from
from gpclf.inputs import Noisy

COUNT = Interval(Integral, 1, None, closed="left")


class GPClassifier(CallbackSupportMixin, FittedClassifier, Shown, ClassifierMixin, BaseEstimator):
    """Gaussian process classifier with inducing points, for two or many classes.

    Inputs are scaled inside, so their units never matter. Most users change nothing. X may
    have gaps: a number is inferred from the others of its row, a missing category is one more.

    Parameters
    ----------
    likelihood : str or Likelihood, default="auto"
        "auto": "logit" for two classes, "softmax" for more. Names for two classes: "logit",
        "logit-pg", "probit". For any number: "softmax", "softmax-gumbel", "logistic-softmax",
        "logistic-softmax-augmented", "step", "noisy-probit", "noisy-logit", "robust-max".
    kernel : str, Kernel or None, default=None
        None: Matérn-5/2, a lengthscale per feature; where rows are few, a prior keeps these alike.
        With `inference="auto"` rows left out may choose a smoother or rougher one: RBF, Matérn-3/2
        or -1/2, or the Laplace kernel, rough along each feature on its own as trees are.
        Names combine with + and *: "rbf + matern52".
    n_inducing : "auto", int, None or array (M, D), default="auto"
        Inducing points. "auto": min(N, 400, 50·D, 20 + 4√N), times √(10/C) above 10 classes; from
        eight classes on with `inference="auto"` at most 200 are learned, others come beside them,
        min(N/2, 1,000) in all, and functions end with one covariance in common.
        None: every row, the full Gaussian process, of up to 5,000 rows. Points, rows like X: where
        they start; `Natural(learn_inducing=False)` keeps them there.
    inference : str or Engine, default="auto"
        How the posterior is found: "auto" (closed-form natural-gradient steps; then rows left out
        choose how rough and how sure the kernel is), "natural" (the same without that choice),
        "gradient" (the same bound by ordinary gradients), "decoupled" (more points for the mean
        alone), "power-ep" (expectation propagation), "mean-field" (a baseline for "probit"). An
        object of `gpclf.inference.engines` has options: `PowerEP(alpha=0.5)`,
        `Natural(batch_size=1024)`.
    input_noise : None, str or Noisy, default=None
        What to do about errors of the inputs. None: nothing, unless `fit` is given `X_std`, then
        "latent" with at most 32 nodes a row, for speed. "latent": the true input of each row is
        unknown and has a law of its own, found on up to 128 nodes. "amortised": a network learns
        that law from the row and its class. "parametric": the law is a Gaussian, learned for each
        row on batches. "first-order": the slope of the function there adds to its variance. To
        compare with, two usual remedies: "augment" repeats rows with errors added, "resample" adds
        errors to each batch of stochastic steps anew. An object
        of `gpclf.inputs` has options: `Latent(count=32)`, `Amortised(count=1, hidden=64)`.
    class_weight : None, dict or "balanced", default=None
        Weights of the classes, multiplied with `sample_weight`.
    random_state : None, int or RandomState, default=None
        Seeds the choice of inducing points, subsets and batches; the same seed gives the same
        result on the same machine.
    verbose : int, default=0
        1 shows a progress bar that vanishes, 2 one that stays.
    max_epochs : "auto" or int, default="auto"
        At most so many evaluations of the bound for hyper-parameters and passes for the posterior.
    max_seconds : None or float, default=None
        The fit ends about then with the best it has, and `stopped_` says so: hyper-parameters as
        far as they were learned, and at least the first steps of the posterior. Compiling counts,
        and cannot be interrupted, nor can a pass over the rows; the time of a `callback` does not
        count. Pieces after the first that `partial_fit` takes in are not limited.
    warm_start : bool, default=False
        Go on from the last fit's parameters instead of from new start values.
    share : "both", "kernel", "points" or "none", default="both"
        What the functions of all classes have in common: the kernel, the inducing points, or both;
        of what they do not share each has its own.
    precision : "auto", "mixed" or "double", default="auto"
        "mixed": float32 for work on rows and float64 for matrices. "double": float64 throughout.
        "auto": double up to 1,000 rows, mixed above.
    tol : float, default=1e-4
        Stop when a step gains less than this, in nats per row. Epochs of batches are as many as
        planned.
    callback : None or callable, default=None
        Called at every step with a snapshot that has `stage`, `seconds`, `elbo` (per row), `share`
        (of the work planned, done) and `predict_log_proba`; its time does not count.
    categorical_features : "from_dtype", None or list, default="from_dtype"
        Columns that hold categories instead of numbers: in a frame those of category, string and
        boolean type; or none; or indices, names or a mask. From three to 1,000 become one column
        each, of variance 1 together. An unseen category is encoded as the average of those seen.
    early_stopping : bool or float, default=False
        Keep a share of the rows apart (True: 0.1), and stop learning the kernel when the
        log-probabilities of their labels no longer rise.
    input_noise_std : None, "learn" or "learn-one", default=None
        None: the errors are those of `X_std`. Else their size is learned, one for each feature or
        one for all standardised features.
    noisy_features : None or list, default=None
        The features that have errors to be learned: indices, names or a mask. None: all of them.
    scaling : "robust", "standard" or None, default="robust"
        What becomes of numbers. "standard": mean 0 and standard deviation 1. "robust": their tails
        are bent before, so that a few values far out do not set the scale: with z the distance from
        the median in robust standard deviations, z / √(1 + z²/9). Where a fit is told of errors,
        nothing is bent. None: as they are, for lengthscales in units of your own; levels are
        scaled.

    Attributes
    ----------
    classes_ : array (C,)
        The class labels, sorted.
    elbo_ : float
        The evidence lower bound of the training rows at the end, on fresh nodes where inputs have
        errors; after `partial_fit` the sum over all pieces, each given those before it. With
        "power-ep" its energy, which is no bound.
    loo_score_ : None or float
        The mean log-probability of each training row under the posterior without it, where that is
        known in closed form, of 32,768 rows where there are more; None after other engines, where
        inputs have errors, and where `max_seconds` ended the posterior's steps.
    loo_log_proba_ : None or array (N, C)
        The same for every class, row by row: of the rows that were learned from, those of weight 0
        or kept apart left out. None also where there are more than 32,768 rows or four million
        numbers, and in a model from a file.
    loo_unsure_ : None or float
        The share of rows that are nearly all that is known of their surroundings: where it is above
        a hundredth, `loo_score_` is not to be trusted.
    selection_ : None or list of dicts
        The kernels that rows left out were asked about, as learned first: "kernel", the factors
        "lengthscale" and "variance", "score" (mean log-probability of a row left out), "gain" over
        the kernel as learned, and its standard "error".
    history_ : dict of arrays
        "stage", "seconds" and "elbo" (per row), one entry a step.
    kernel_, likelihood_ : Kernel, Likelihood
        As fitted, in units of the standardised inputs.
    inducing_points_ : array (M, D), or (C, M, D) if each function has its own
        In the units of X; a feature of more than two levels has a column for each. Those for the
        mean alone come last.
    relevance_ : array (D,)
        How much each feature matters, from the lengthscales: sums to one, 0 if constant.
    n_samples_seen_ : int
        The number of training rows, of all pieces together.
    training_summary_ : Summary
        What the training rows were like, column by column: quantiles, shares of levels, of missing
        entries and of classes. `report` compares other tables with it; that of the first piece
        where rows come in several.
    input_noise_std_ : None or array (D,)
        The standard deviation of the errors in the units of X, as learned or the median of those
        given, which is used at prediction where `X_std` is not given. None without errors.
    stopped_ : str
        Why the fit ended.
    jitter_ : float
        What was added to the diagonal of k(Z, Z), relative to its mean.
    notes_ : None or dict
        Of a model that was loaded: what `save` was told to keep with it.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "likelihood": "no_validation",  # likelihood_from has a word on it, and kernel_from
        "kernel": "no_validation",
        "n_inducing": [StrOptions({"auto"}), None, COUNT, "array-like"],
        "inference": [StrOptions(set(ENGINES)), Engine],
        "input_noise": [None, StrOptions({*KINDS, RESAMPLE}), Noisy],
        "class_weight": [None, dict, StrOptions({"balanced"})],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "max_epochs": [StrOptions({"auto"}), COUNT],
        "max_seconds": [None, Interval(Real, 0, None, closed="neither")],
        "warm_start": ["boolean"],
        "share": [StrOptions({"both", "kernel", "points", "none"})],
        "precision": [StrOptions({"auto", "mixed", "double"})],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "callback": [None, callable],
        "categorical_features": "no_validation",  # it depends on the table
        "early_stopping": ["boolean", Interval(Real, 0, 1, closed="neither")],
        "input_noise_std": [None, StrOptions(set(LEARNED))],
        "noisy_features": [None, "array-like"],
        "scaling": [StrOptions({"robust", "standard"}), None],
    }

    def __init__(
        self,
        likelihood: Any = "auto",
        kernel: Any = None,
        n_inducing: Any = "auto",
        *,
        inference: Any = "auto",
        input_noise: Any = None,
        class_weight: Any = None,
        random_state: Any = None,
        verbose: Any = 0,
        max_epochs: Any = "auto",
        max_seconds: Any = None,
        warm_start: Any = False,
        share: Any = "both",
        precision: Any = "auto",
        tol: Any = 1e-4,
        callback: Any = None,
        categorical_features: Any = "from_dtype",
        early_stopping: Any = False,
        input_noise_std: Any = None,
        noisy_features: Any = None,
        scaling: Any = "robust",
    ):
        self.likelihood = likelihood
        self.kernel = kernel
        self.n_inducing = n_inducing
        self.inference = inference
        self.input_noise = input_noise
        self.class_weight = class_weight
        self.random_state = random_state
        self.verbose = verbose
        self.max_epochs = max_epochs
        self.max_seconds = max_seconds
        self.warm_start = warm_start
        self.share = share
        self.precision = precision
        self.tol = tol
        self.callback = callback
        self.categorical_features = categorical_features
        self.early_stopping = early_stopping
        self.input_noise_std = input_noise_std
        self.noisy_features = noisy_features
        self.scaling = scaling

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        X_std: Any = None,
        *,
        checkpoint: Any = None,
        resume: bool = False,
    ) -> "GPClassifier":
        """Learn from rows X (N, D) and labels y (N,); `sample_weight` counts rows.

        X may be a table on disk, `ParquetTable` or `ArrowTable`, which names the columns of labels,
        weights and errors itself; it is then all that is given.

        `X_std` has the standard deviations of the errors of X, in its units: an array like X with 0
        where it is exact, one value per feature, or a number. The entries of an array count as 0
        where X has a gap.

        `checkpoint` names a file that the fit is kept in, when a stage has ended and at least every
        minute. With `resume` it goes on from that file, if it is there, and ends with the same bits
        as if it had never stopped; from one of other data, parameters or versions it refuses to.

        Ctrl-C ends it and what called it, and leaves the last good model fitted, with a warning.
        """
        began = time.perf_counter()
        self._check_parameters()
        place = Checkpoint.of(checkpoint, resume)
        if isinstance(X, Table):
            given = {"y": y, "sample_weight": sample_weight, "X_std": X_std}
            learn(self, *streamed_table(self, X, given), began, place)
            return self
        refuse_missing(y)
        X, y, columns = labelled_table(self, X, y, self.categorical_features)
        std = errors_of(X_std, X, columns, getattr(self, "feature_names_in_", None))
        classes, index = encode(y)
        training = weighed(
            X, y, index, std, sample_weight=sample_weight, class_weight=self.class_weight
        )
        empty = np.setdiff1d(np.arange(len(classes)), training.y)
        if len(empty):
            name = classes[empty[0]]
            raise ValueError(f"Every row of class {name} has weight 0: drop the class from y.")
        learn(self, training, columns, classes, began, place)
        return self

    @with_callbacks
    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
        X_std: Any = None,
    ) -> "GPClassifier":
        """Take in a piece of the data, whose rows are then no longer needed.

        The first call is a fit: it chooses kernel, inducing points, scaling and levels, so let its
        rows be a fair sample; `classes` lists all labels that will come. Later calls keep those,
        and take the new rows in by natural steps. When `n_inducing` is "auto" and its rule asks
        for half as many points again, they are added from the new rows, where the others say least.
        """
        began = time.perf_counter()
        self._check_parameters()
        refuse_pieces(self.input_noise)
        first = not hasattr(self, "posterior_")
        if first and classes is None:
            raise ValueError("The first call of partial_fit needs classes: all labels to come.")
        if (
            not first
            and classes is not None
            and not np.array_equal(np.unique(classes), self.classes_)
        ):
            raise ValueError("classes differ from those of the first call of partial_fit.")
        refuse_missing(y)
        if first:
            X, y, columns = labelled_table(self, X, y, self.categorical_features)
        else:
            X, y, columns = *more_of_table(self, X, y, self._columns), self._columns
        known, index = encode(y, classes if first else self.classes_)
        std = errors_of(X_std, X, columns, getattr(self, "feature_names_in_", None))
        training = weighed(
            X, y, index, std, sample_weight=sample_weight, class_weight=self.class_weight
        )
        if first:
            learn(self, training, columns, known, began)
        elif len(training.y):
            learn_more(self, training)
        return self

    def __sklearn_tags__(self) -> Any:
        """Missing values are taken."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _check_parameters(self) -> None:
        """One sentence about a parameter that makes no sense, before any work is done."""
        self._validate_params()
        check_points(self.n_inducing)
        engine_from(self.inference).validate()
