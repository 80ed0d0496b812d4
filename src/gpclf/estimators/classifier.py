"""GPClassifier: Gaussian process classification behind scikit-learn's interface."""

import os
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state, compute_sample_weight
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from gpclf import inducing
from gpclf.compilation import compiled_once
from gpclf.data import ArrayStream, Scaling, encode, refuse_missing
from gpclf.estimators import storage
from gpclf.estimators.progress import shown
from gpclf.estimators.validation import check_finite, check_parameters, drawn_classes
from gpclf.inference.loop import Progress, Result, compile_ahead, fit
from gpclf.inference.plan import Plan, make_plan
from gpclf.inputs import Exact
from gpclf.kernels import kernel_from
from gpclf.likelihoods import likelihood_from
from gpclf.linalg import one_thread
from gpclf.model import Model, one_per_function
from gpclf.posterior import freeze
from gpclf.precision import cast, double_precision, row_dtype
from gpclf.prediction import latent_marginals, log_probabilities

DEFAULT_KERNEL = "matern52"
FLOATS = (np.float64, np.float32)  # rows of other types become the first


class Snapshot:
    """A fit in progress, as a `callback` sees it."""

    def __init__(self, line: Progress, classifier: "GPClassifier", jitter: float):
        self.stage = line.stage
        self.seconds = line.seconds
        self.elbo = line.elbo
        self._line = line
        self._classifier = classifier
        self._jitter = jitter

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """What the classifier would predict if it stopped here."""
        dtype = row_dtype(self._classifier.precision)
        posterior = freeze(self._line.theta, self._line.q, self._jitter, dtype)
        return log_probabilities(posterior, self._classifier._scaling.forward(np.asarray(X)))


class GPClassifier(ClassifierMixin, BaseEstimator):
    """Gaussian process classifier with inducing points, for two or many classes.

    Inputs are standardised inside (mean 0, standard deviation 1 per column), so their units never
    matter. Most users change nothing.

    Parameters
    ----------
    likelihood : "auto", a name or a Likelihood
        "auto": "logit" for two classes, "softmax" for more. Names for two classes: "logit",
        "logit-pg", "probit". For any number: "softmax", "softmax-gumbel", "logistic-softmax",
        "logistic-softmax-augmented", "step", "noisy-probit", "noisy-logit", "robust-max".
    kernel : None, a name or a Kernel
        None: Matérn-5/2, a lengthscale per feature; where rows are few, a prior keeps these alike.
        Names combine with + and *: "rbf + matern52".
    n_inducing : "auto", int or None
        Inducing points. "auto": min(N, 400, 50·D, 20 + 4√N), times √(10/C) above 10 classes.
        None: every row, the full Gaussian process.
    inference : "auto" or "natural"
        How the posterior is found: closed-form natural-gradient steps.
    input_noise : None
        Reserved for inputs with measurement error.
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
    optimizer : "auto", "lbfgs", "adam" or None
        For hyper-parameters: L-BFGS on the dual bound (of at most 8,192 rows), Adam beside
        stochastic steps, or None to keep the kernel and inducing points as they start.
    share_kernel : bool
        One kernel and one set of inducing points for all classes, or one of each per class.
    precision : "mixed" or "double"
        float32 for work on rows and float64 for matrices, or float64 throughout.
    tol : float
        Stop when a step gains less than this, in nats per row.
    callback : None or callable
        Called at every step with a snapshot that has `stage`, `seconds`, `elbo` (per row) and
        `predict_log_proba`; its time does not count.
    learning_rate : "auto" or float
        Rate of stochastic natural-gradient steps, above 0 and at most 1. "auto": one half at
        first, falling as the 0.6th power of their number. Full-batch steps find their own.
    class_subset : None or int
        Classes drawn at random for each stochastic step, so that its cost does not grow with their
        number: for "logistic-softmax" and "logistic-softmax-augmented" with many classes. None:
        all of them.

    Attributes
    ----------
    classes_ : the class labels, sorted.
    elbo_ : the evidence lower bound of the training rows at the end.
    history_ : dict of arrays "stage", "seconds", "elbo" (per row), one entry a step.
    kernel_, likelihood_ : as fitted, in units of the standardised inputs.
    inducing_points_ : (M, D), or (C, M, D) if not shared, in the units of X.
    relevance_ : how much each feature matters, from the lengthscales; sums to one.
    stopped_ : why the fit ended.
    jitter_ : what was added to the diagonal of k(Z, Z), relative to its mean.
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
        precision: Any = "mixed",
        tol: Any = 1e-4,
        callback: Any = None,
        learning_rate: Any = "auto",
        class_subset: Any = None,
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None, X_std: Any = None) -> "GPClassifier":
        """Learn from rows X (N, D) and labels y (N,); `sample_weight` counts rows."""
        began = time.perf_counter()
        check_parameters(self.get_params(deep=False))
        if X_std is not None:
            raise ValueError("X_std is not available yet: leave it out.")
        refuse_missing(y)
        X, y = validate_data(
            self, X, y, dtype=FLOATS, ensure_all_finite=False, ensure_min_samples=2
        )
        check_finite(X, getattr(self, "feature_names_in_", None))
        classes, index = encode(y)
        likelihood = likelihood_from(self.likelihood, len(classes))
        weight = np.broadcast_to(np.float64(1), len(index))  # takes no memory
        if sample_weight is not None or self.class_weight is not None:
            weight = _check_sample_weight(
                sample_weight, X, dtype=np.float64, ensure_non_negative=True, copy=True
            )
        if self.class_weight is not None:
            weight *= compute_sample_weight(self.class_weight, y)
        if not np.all(weight > 0):
            used = weight > 0
            X, index, weight = X[used], index[used], weight[used]
            empty = np.setdiff1d(np.arange(len(classes)), index)
            if len(empty):
                name = classes[empty[0]]
                raise ValueError(f"Every row of class {name} has weight 0: drop the class from y.")

        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        self._learn(X, index, weight, classes, likelihood, rng, began)
        return self

    @compiled_once
    @double_precision
    def _learn(self, X, index, weight, classes, likelihood, rng, began) -> None:
        """Build model, inducing points and plan; run the loop; keep what it found."""
        dtype = row_dtype(self.precision)
        n_latent = likelihood.n_latent(len(classes))
        again = self.warm_start and self._fits_on(X, classes, likelihood)
        scaling = self._scaling if again else Scaling.of(X, weight)
        stream = ArrayStream(X, index, weight, scaling, dtype)
        drawn = drawn_classes(self.class_subset, likelihood, len(classes), self.share_kernel)

        def plan_for(n_inducing: int) -> Plan:
            return make_plan(
                len(X),
                n_latent,
                n_inducing,
                optimizer=self.optimizer,
                max_epochs=self.max_epochs,
                batch_size=self.batch_size,
                tolerance=self.tol,
                dtype=dtype,
                move_points=self.n_inducing is not None,
                rate=self.learning_rate,
                drawn_classes=drawn,
            )

        def model_for(distance: float) -> Model:
            kernel = kernel_from(DEFAULT_KERNEL if self.kernel is None else self.kernel)
            kernel = kernel.started(distance, X.shape[1])
            if not self.share_kernel:
                kernel = one_per_function(kernel, n_latent)
            return cast(Model(kernel, likelihood, Exact(), shared=self.share_kernel), jnp.float64)

        if again:
            theta, start = self._theta, self._q
        else:
            count: Any = self.n_inducing
            if count == "auto":
                count = inducing.auto_count(len(X), X.shape[1], len(classes))
            with one_thread():  # XLA compiles on another core
                if count is not None and count < len(X):  # else Z is still to be counted
                    compile_ahead(model_for(1.0), count, stream, n_latent, plan_for(count))
                Z = inducing.choose(X, count, rng, scaling.forward)
                model = model_for(inducing.median_distance(X, rng, scaling.forward))
            theta, start = (model, Z if model.shared else np.stack([Z] * n_latent)), None
        plan = plan_for(theta[1].shape[-2])
        self._scaling = scaling
        with shown(self.verbose) as draw:

            def report(line: Progress) -> None:
                draw(line)
                if self.callback is not None:
                    self.callback(Snapshot(line, self, plan.jitter))

            result = fit(*theta, stream, n_latent, plan, rng, report, start, began)
        self._keep(result, classes, dtype)

    def _fits_on(self, X, classes, likelihood) -> bool:
        """Whether the last fit can be gone on from."""
        return (
            hasattr(self, "_theta")
            and len(self._scaling.centre) == X.shape[1]
            and np.array_equal(self.classes_, classes)
            and type(self.likelihood_) is type(likelihood)
        )

    def _keep(self, result: Result, classes: np.ndarray, dtype: np.dtype) -> None:
        posterior = freeze(result.theta, result.q, result.jitter, dtype)
        self._theta, self._q = result.theta, result.q
        self.posterior_ = posterior
        self.classes_ = classes
        self.elbo_ = result.elbo
        self.history_ = result.history
        self.stopped_ = result.stopped
        self.jitter_ = result.jitter
        self.kernel_ = posterior.prepared.model.kernel
        self.likelihood_ = posterior.likelihood
        self.inducing_points_ = self._scaling.backward(np.asarray(posterior.prepared.Z))
        self.relevance_ = self._relevance()

    def _relevance(self) -> np.ndarray:
        kernel, n_features = self.kernel_, len(self._scaling.centre)
        if self.share_kernel:
            raw = kernel.relevance(n_features)
        else:
            count = self.posterior_.n_latent
            own = (jax.tree.map(lambda leaf, c=c: leaf[c], kernel) for c in range(count))
            raw = np.mean([each.relevance(n_features) for each in own], axis=0)
        return raw / raw.sum() if raw.sum() > 0 else raw

    def _rows(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "posterior_")
        X = validate_data(self, X, dtype=FLOATS, ensure_all_finite=False, reset=False)
        check_finite(X, getattr(self, "feature_names_in_", None))
        return self._scaling.forward(X)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the class probabilities, accurate where these are tiny: (N, C)."""
        return log_probabilities(self.posterior_, self._rows(X))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities (N, C) in the order of `classes_`, latent variance integrated out."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row."""
        return self.classes_[np.argmax(self.predict_log_proba(X), axis=1)]

    def latent_mean_and_variance(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the latent functions: (N,) with one function, else (N, C)."""
        mean, variance = latent_marginals(self.posterior_, self._rows(X))
        return (mean[:, 0], variance[:, 0]) if mean.shape[1] == 1 else (mean, variance)

    def save(self, path: str | os.PathLike) -> None:
        """Write the fitted classifier as one file, without pickle: safe to open from a stranger."""
        check_is_fitted(self, "posterior_")
        storage.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike) -> "GPClassifier":
        """Read what `save` wrote."""
        return storage.load(cls, path)
