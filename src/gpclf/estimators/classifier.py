"""GPClassifier: Gaussian process classification behind scikit-learn's interface."""

import time
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state

from gpclf import inducing
from gpclf.compilation import compiled_once
from gpclf.data import ArrayStream, Scaling, blocks, encode, refuse_missing
from gpclf.estimators.callbacks import (
    CallbackSupportMixin,
    Snapshot,
    callbacks_of,
    judging,
    kept_apart,
    with_callbacks,
)
from gpclf.estimators.engines import engine_for
from gpclf.estimators.fitted import FittedClassifier
from gpclf.estimators.noise import (
    RESAMPLE,
    errors_for,
    errors_of,
    inputs_for,
    mask_of,
    rows_of,
    typical,
)
from gpclf.estimators.points import how_many, points_given
from gpclf.estimators.progress import shown
from gpclf.estimators.tables import labelled_table, more_of_table
from gpclf.estimators.validation import check_full, check_parameters, drawn_classes, is_auto
from gpclf.estimators.weights import weighed
from gpclf.inference.fresh_bound import fresh_bound
from gpclf.inference.journal import Progress
from gpclf.inference.loop import compile_ahead, fit
from gpclf.inference.online import absorb, grown
from gpclf.inference.plan import CHUNK_ROWS, Plan, make_plan
from gpclf.kernels import kernel_from
from gpclf.likelihoods import likelihood_from
from gpclf.linalg import one_thread
from gpclf.model import Model, one_per_function, prepare
from gpclf.posterior import Posterior, coupled, freeze, thawed
from gpclf.precision import cast, double_precision, row_dtype

DEFAULT_KERNEL = "matern52"
CANDIDATES = 2000  # rows of a piece that may become inducing points


class GPClassifier(CallbackSupportMixin, FittedClassifier, ClassifierMixin, BaseEstimator):
    """Gaussian process classifier with inducing points, for two or many classes.

    Inputs are standardised inside, so their units never matter. Most users change nothing.

    Parameters
    ----------
    likelihood : "auto", a name or a Likelihood
        "auto": "logit" for two classes, "softmax" for more. Names for two classes: "logit",
        "logit-pg", "probit". For any number: "softmax", "softmax-gumbel", "logistic-softmax",
        "logistic-softmax-augmented", "step", "noisy-probit", "noisy-logit", "robust-max".
    kernel : None, a name or a Kernel
        None: Matérn-5/2, a lengthscale per feature; where rows are few, a prior keeps these alike.
        Names combine with + and *: "rbf + matern52".
    n_inducing : "auto", int, None or points (M, D)
        Inducing points. "auto": min(N, 400, 50·D, 20 + 4√N), times √(10/C) above 10 classes.
        None: all rows, the full process, of up to 5,000. Points, rows like X: where they start.
    inference : "auto" or a name
        "natural", which "auto" means: closed-form natural-gradient steps; "gradient": the same
        bound by ordinary gradients; "decoupled": more points for the mean alone; "power-ep":
        expectation propagation; "mean-field" and "mean-field-plug-in": baselines for "probit".
    input_noise : None, "latent", "amortised", "first-order", "augment", "resample" or Noisy
        What to do about errors of the inputs. None: nothing, unless `fit` is given `X_std`, then
        "latent": the true input of each row is unknown and has a law of its own. "amortised": a
        network learns that law from the row and its class. "first-order": the slope of the function
        there adds to its variance. To compare with, two usual remedies: "augment" repeats rows
        with errors added, "resample" adds errors to each batch of stochastic steps anew. An object
        of `gpclf.inputs` has options: `Latent(count=32)`, `Amortised(count=1, hidden=64)`.
    max_epochs : "auto" or int
        At most so many evaluations of the bound for hyper-parameters and passes for the posterior.
    batch_size : "auto" or int
        Rows in a stochastic step. "auto": no stochastic steps but all rows at once, in chunks;
        with `optimizer="adam"` 1,024.
    class_weight : None, dict or "balanced"
        Weights of the classes, multiplied with `sample_weight`.
    warm_start : bool
        Go on from the last fit's parameters instead of from new start values.
    random_state : None, int or RandomState
        Seeds the choice of inducing points, subsets and batches; the same seed gives the same
        result on the same machine.
    verbose : int
        1 shows a progress bar that vanishes, 2 one that stays.
    optimizer : "auto", "lbfgs", "adam", "adadelta" or None
        For hyper-parameters: L-BFGS on the dual bound (of at most 8,192 rows, up to 32,768 where
        rows are many or inducing points have many numbers), Adam beside stochastic steps, or None
        to keep the kernel and inducing points as they start. With `inference="gradient"` it moves
        the posterior, too: L-BFGS-B on all rows ("auto": up to 5,000), Adam or Adadelta on batches.
    share_kernel : bool
        One kernel and one set of inducing points for all classes, or one of each per class.
    precision : "auto", "mixed" or "double"
        "mixed": float32 for work on rows and float64 for matrices. "double": float64 throughout.
        "auto": double up to 1,000 rows, mixed above.
    tol : float
        Stop when a step gains less than this, in nats per row.
    callback : None or callable
        Called at every step with a snapshot that has `stage`, `seconds`, `elbo` (per row) and
        `predict_log_proba`; its time does not count.
    learning_rate : "auto" or float
        Rate of stochastic natural-gradient steps, above 0 and at most 1. "auto": one half at
        first, falling as the 0.6th power of their number. Full-batch steps find their own. With
        `inference="gradient"` the first rate of Adam ("auto": 0.05) or Adadelta (1), falling to 0.
    class_subset : None or int
        Classes drawn at random for each stochastic step, so that its cost does not grow with their
        number: for "logistic-softmax" and "logistic-softmax-augmented" with many classes, and rows
        without errors or of one node ("first-order", "resample"). None: all of them.
    categorical_features : "from_dtype", None or a list
        Columns that hold categories instead of numbers: in a frame those of category, string and
        boolean type; or none; or indices, names or a mask. From three to 1,000 become one column
        each, of variance 1 together. An unseen category is encoded as the average of those seen.
    early_stopping : bool
        Keep a share of the rows apart, and stop learning the kernel when the log-probabilities of
        their labels no longer rise.
    validation_fraction : float
        That share.
    input_noise_std : None, "learn" or "learn-one"
        None: the errors are those of `X_std`. Else their size is learned, one for each feature or
        one for all standardised features.
    noisy_features : None or a list
        The features that have errors to be learned: indices, names or a mask. None: all of them.
    n_mean_inducing : "auto" or int
        More points for the mean alone, with `inference="decoupled"`. "auto": twice `n_inducing`.
    alpha : float
        The power of "power-ep", above 0 and at most 1: 1 is EP, close to 0 variational inference.

    Attributes
    ----------
    classes_ : array (C,)
        The class labels, sorted.
    elbo_ : float
        The evidence lower bound of the training rows at the end, on fresh nodes where inputs have
        errors; after `partial_fit` the sum over
        all pieces, each given those before it. With "power-ep" its energy, which is no bound.
    history_ : dict of arrays
        "stage", "seconds" and "elbo" (per row), one entry a step.
    kernel_, likelihood_ : Kernel, Likelihood
        As fitted, in units of the standardised inputs.
    inducing_points_ : array (M, D), or (C, M, D) if not shared
        In the units of X; a feature of more than two levels has a column for each. Those for the
        mean alone come last.
    relevance_ : array (D,)
        How much each feature matters, from the lengthscales: sums to one, 0 if constant.
    n_samples_seen_ : int
        The number of training rows, of all pieces together.
    input_noise_std_ : None or array (D,)
        The standard deviation of the errors in the units of X, as learned or the median of those
        given, which is used at prediction where `X_std` is not given. None without errors.
    stopped_ : str
        Why the fit ended.
    jitter_ : float
        What was added to the diagonal of k(Z, Z), relative to its mean.
    """

    def __init__(
        self,
        likelihood: Any = "auto",
        kernel: Any = None,
        n_inducing: Any = "auto",
        inference: Any = "auto",
        input_noise: Any = None,
        max_epochs: Any = "auto",
        batch_size: Any = "auto",
        class_weight: Any = None,
        warm_start: Any = False,
        random_state: Any = None,
        verbose: Any = 0,
        optimizer: Any = "auto",
        share_kernel: Any = True,
        precision: Any = "auto",
        tol: Any = 1e-4,
        callback: Any = None,
        learning_rate: Any = "auto",
        class_subset: Any = None,
        categorical_features: Any = "from_dtype",
        early_stopping: Any = False,
        validation_fraction: Any = 0.1,
        input_noise_std: Any = None,
        noisy_features: Any = None,
        n_mean_inducing: Any = "auto",
        alpha: Any = 1.0,
    ):
        self.likelihood = likelihood
        self.kernel = kernel
        self.n_inducing = n_inducing
        self.inference = inference
        self.input_noise = input_noise
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.optimizer = optimizer
        self.share_kernel = share_kernel
        self.precision = precision
        self.tol = tol
        self.callback = callback
        self.learning_rate = learning_rate
        self.class_subset = class_subset
        self.categorical_features = categorical_features
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.input_noise_std = input_noise_std
        self.noisy_features = noisy_features
        self.n_mean_inducing = n_mean_inducing
        self.alpha = alpha

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, X_std: Any = None) -> "GPClassifier":
        """Learn from rows X (N, D) and labels y (N,); `sample_weight` counts rows.

        `X_std` has the standard deviations of the errors of X, in its units: an array like X with 0
        where it is exact, one value per feature, or a number.
        """
        began = time.perf_counter()
        check_parameters(self.get_params(deep=False))
        refuse_missing(y)
        X, y, columns = labelled_table(self, X, y, self.categorical_features)
        std = errors_of(X_std, X, columns, getattr(self, "feature_names_in_", None))
        classes, index = encode(y)
        X, index, weight, std = weighed(
            X, y, index, std, sample_weight=sample_weight, class_weight=self.class_weight
        )
        empty = np.setdiff1d(np.arange(len(classes)), index)
        if len(empty):
            name = classes[empty[0]]
            raise ValueError(f"Every row of class {name} has weight 0: drop the class from y.")
        self._learn(X, index, weight, std, columns, classes, began)
        return self

    @with_callbacks
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, X_std: Any = None
    ) -> "GPClassifier":
        """Take in a piece of the data, whose rows are then no longer needed.

        The first call is a fit: it chooses kernel, inducing points, scaling and levels, so let its
        rows be a fair sample; `classes` lists all labels that will come. Later calls keep those,
        and take the new rows in by natural steps. When `n_inducing` is "auto" and its rule asks
        for half as many points again, they are added from the new rows, where the others say least.
        """
        began = time.perf_counter()
        check_parameters(self.get_params(deep=False))
        first = not hasattr(self, "posterior_")
        if first and classes is None:
            raise ValueError("The first call of partial_fit needs classes: all labels to come.")
        if not (first or classes is None or np.array_equal(np.unique(classes), self.classes_)):
            raise ValueError("classes differ from those of the first call of partial_fit.")
        refuse_missing(y)
        if first:
            X, y, columns = labelled_table(self, X, y, self.categorical_features)
        else:
            X, y, columns = *more_of_table(self, X, y, self._columns), self._columns
        known, index = encode(y, classes if first else self.classes_)
        std = errors_of(X_std, X, columns, getattr(self, "feature_names_in_", None))
        X, index, weight, std = weighed(
            X, y, index, std, sample_weight=sample_weight, class_weight=self.class_weight
        )
        if first:
            self._learn(X, index, weight, std, columns, known, began)
        elif len(X):
            self._learn_more(X, index, weight, std)
        return self

    @compiled_once
    @double_precision
    def _learn(self, X, index, weight, std, columns, classes, began) -> None:
        """Build model, inducing points and plan; run the loop; keep what it found."""
        check_full(self.n_inducing, len(X))
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        likelihood = likelihood_from(self.likelihood, len(classes))
        n_latent = likelihood.n_latent(len(classes))
        apart = None
        if self.early_stopping:
            parts = kept_apart(self.validation_fraction, X, index, weight, std, rng)
            (X, index, weight, std), apart = parts
        again = self.warm_start and self._fits_on(columns, classes, likelihood)
        scaling = self._scaling if again else Scaling.of(X, weight, columns.counts)
        names = getattr(self, "feature_names_in_", None)
        exact = mask_of(self.noisy_features, len(columns.counts), names)
        inputs = inputs_for(
            self.input_noise, self.input_noise_std, std, exact, scaling, len(classes), len(X)
        )
        engine = engine_for(self.get_params(deep=False), likelihood, inputs, weight)
        redraw = self.input_noise == RESAMPLE
        dtype = row_dtype(self.precision, len(X) * inputs.places)
        stream = ArrayStream(X, index, weight, scaling, dtype, std, redraw)
        drawn = drawn_classes(
            self.class_subset, likelihood, inputs, len(classes), self.share_kernel
        )

        def plan_for(n_inducing: int) -> Plan:
            return make_plan(
                len(X),
                n_latent,
                n_inducing,
                optimizer="adam" if redraw and self.optimizer == "auto" else self.optimizer,
                max_epochs=self.max_epochs,
                batch_size=self.batch_size,
                tolerance=self.tol,
                dtype=dtype,
                n_features=scaling.width,
                move_points=self.n_inducing is not None,
                rate=self.learning_rate,
                drawn_classes=drawn,
                places=inputs.places,
                inference=engine,
                mean_points=self.n_mean_inducing,
                alpha=float(self.alpha),
            )

        def model_for(distance: float) -> Model:
            kernel = kernel_from(DEFAULT_KERNEL if self.kernel is None else self.kernel)
            kernel = kernel.started(distance, scaling.width)
            if not self.share_kernel:
                kernel = one_per_function(kernel, n_latent)
            return cast(Model(kernel, likelihood, inputs, shared=self.share_kernel), jnp.float64)

        if again:
            theta, start = thawed(coupled(self.posterior_))
        else:
            given = points_given(self, self.n_inducing, columns, scaling)
            count = how_many(self.n_inducing, given, len(X), scaling.width, len(classes))
            with one_thread():  # XLA compiles on another core
                if given is not None or (count is not None and count < len(X)):  # else not known
                    compile_ahead(model_for(1.0), count, stream, n_latent, plan_for(count))
                Z = inducing.choose(X, count, rng, scaling.forward) if given is None else given
                model = model_for(inducing.median_distance(X, rng, scaling.forward))
            theta, start = (model, Z if model.shared else np.stack([Z] * n_latent)), None
        plan = plan_for(theta[1].shape[-2])
        self._columns, self._scaling = columns, scaling

        def stopped_at(line: Progress) -> Posterior:
            return freeze(line.theta, line.q, plan.jitter, dtype)

        def usual(line: Progress) -> np.ndarray | None:
            return typical(line.theta.model.inputs, std, scaling)

        def attributes(line: Progress) -> dict[str, Any]:
            found = {"posterior_": stopped_at(line), "classes_": classes}
            return found | {"input_noise_std_": usual(line)}

        judge = None if apart is None else judging(*apart, scaling, stopped_at, usual)

        with shown(self.verbose) as draw, callbacks_of(self, attributes) as tell:

            def report(line: Progress) -> bool:
                draw(line)
                if self.callback is not None:
                    self.callback(Snapshot(line, partial(self._seen, usual(line)), stopped_at))
                return tell(line)

            result = fit(*theta, stream, n_latent, plan, rng, report, start, began, judge)
        self.classes_, self.n_samples_seen_ = classes, len(X)
        self.history_, self.stopped_, self.jitter_ = result.history, result.stopped, result.jitter
        self.input_noise_std_ = typical(result.theta.model.inputs, std, scaling)
        self._keep(freeze(result.theta, result.q, result.jitter, dtype))
        end = self.posterior_.prepared, self.posterior_.q, stream.whole(plan.chunk_rows)
        self.elbo_ = result.elbo if not inputs.estimated else fresh_bound(*end)

    @compiled_once
    @double_precision
    def _learn_more(self, X, index, weight, std) -> None:
        """Take rows in under the kernel and by the side of the rows before."""
        std = errors_for(self.posterior_.prepared.model.inputs, std, X, self.input_noise_std_)
        dtype = np.dtype(self.posterior_.row_dtype)
        self.n_samples_seen_ += len(X)
        theta, q = thawed(self.posterior_)
        with one_thread():
            if is_auto(self.n_inducing):
                wanted = inducing.auto_count(
                    self.n_samples_seen_, self._scaling.width, len(self.classes_)
                )
                candidates = self._scaling.forward(X[:CANDIDATES])
                theta, q = grown(theta, q, candidates, wanted, self.jitter_)
            prepared, self.jitter_ = prepare(*theta, self.jitter_)
            for part in blocks(len(X)):
                stream = ArrayStream(
                    X[part], index[part], weight[part], self._scaling, dtype, rows_of(std, part)
                )
                rows = min(CHUNK_ROWS, 2 ** int(np.ceil(np.log2(stream.n_rows))))  # few lengths
                tolerance = self.tol * float(stream.weight.sum())
                q, bound = absorb(prepared, q, list(stream.whole(rows)), tolerance)
                self.elbo_ += bound
        self._keep(freeze(theta, q, self.jitter_, dtype))
