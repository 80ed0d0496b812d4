"""GPyTorch's approximate GP: one racer of race.py.

`--method adam`: Adam for everything. `--method natural`: natural-gradient steps for q and Adam for
kernel and inducing points, from one gradient of every batch. Run by the Python of an environment
that holds torch, gpytorch, scikit-learn.
"""

import os
import time
import warnings
from collections.abc import Callable

warnings.filterwarnings("ignore", category=FutureWarning)  # from inside the libraries
# Threads that spin while they wait make a step far slower beside any other work.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
_import_start = time.perf_counter()

import gpytorch  # noqa: E402
import torch  # noqa: E402
from gpytorch import variational  # noqa: E402
from linear_operator.utils.errors import NanError, NotPSDError  # noqa: E402

import svgp  # noqa: E402

IMPORT_SECONDS = time.perf_counter() - _import_start

import numpy as np  # noqa: E402

from racer import Predict, Race, compete  # noqa: E402

# In float32 the full natural rate blows up at once on many classes: it is warmed up.
FIRST_NATURAL_RATE = 0.01
WARM_UP_STEPS = 20
TEST_SAMPLES = 128
TEST_ROWS = 1024  # predicted at once


class Model(gpytorch.models.ApproximateGP):
    """One RBF kernel with a lengthscale per input, shared by the classes; free inducing points."""

    def __init__(self, start: svgp.Start, n_latent: int, natural: bool):
        family = (
            variational.NaturalVariationalDistribution
            if natural
            else variational.CholeskyVariationalDistribution
        )
        Z = torch.tensor(start.Z, dtype=torch.float32)
        batch_shape = torch.Size([] if n_latent == 1 else [n_latent])
        strategy = variational.VariationalStrategy(
            self, Z, family(len(Z), batch_shape=batch_shape), learn_inducing_locations=True
        )
        if n_latent > 1:
            strategy = variational.IndependentMultitaskVariationalStrategy(strategy, n_latent)
        super().__init__(strategy)
        self.mean = gpytorch.means.ZeroMean()
        rbf = gpytorch.kernels.RBFKernel(ard_num_dims=Z.shape[1])
        rbf.lengthscale = torch.tensor(start.lengthscales, dtype=torch.float32)
        self.kernel = gpytorch.kernels.ScaleKernel(rbf)
        self.kernel.outputscale = svgp.FIRST_VARIANCE

    def forward(self, X: torch.Tensor) -> gpytorch.distributions.MultivariateNormal:
        return gpytorch.distributions.MultivariateNormal(self.mean(X), self.kernel(X))


def make_step(race: Race, model: Model, likelihood) -> Callable[[torch.Tensor], float]:
    """A function of row numbers that does one step on them and returns the loss before it."""
    X = torch.tensor(race.X_train, dtype=torch.float32)
    y = torch.tensor(race.y_train)
    if race.n_classes == 2:
        y = y.float()
    bound = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(X))
    if race.options.method == "natural":
        natural = gpytorch.optim.NGD(model.variational_parameters(), len(X), svgp.NATURAL_RATE)
        schedules = [torch.optim.lr_scheduler.LambdaLR(natural, warm_up)]
        optimizers = [natural, torch.optim.Adam(model.hyperparameters(), lr=svgp.ADAM_RATE)]
    else:
        schedules = []
        optimizers = [torch.optim.Adam(model.parameters(), lr=svgp.ADAM_RATE)]

    def step(rows: torch.Tensor) -> float:
        model.train()
        likelihood.train()
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss = -bound(model(X[rows]), y[rows])
        loss.backward()
        for optimizer in (*optimizers, *schedules):
            optimizer.step()
        return loss.item()

    return step


def warm_up(step: int) -> float:
    """The share of the full natural rate at a step: log-linear, then one."""
    return (FIRST_NATURAL_RATE / svgp.NATURAL_RATE) ** max(0.0, 1 - step / WARM_UP_STEPS)


def make_log_probabilities(race: Race, model: Model) -> Predict:
    """X to log-probabilities of the classes, from the marginals of the latent functions."""

    def of_rows(X: torch.Tensor) -> torch.Tensor:
        latent = model(X)
        mean, variance = latent.mean.double(), latent.variance.double()
        if race.n_classes == 2:
            # BernoulliLikelihood's own formula, in float64 because float32 rounds p to 1
            z = mean / torch.sqrt(1 + variance)
            return torch.stack([torch.special.log_ndtr(-z), torch.special.log_ndtr(z)], dim=1)
        f = mean + variance.sqrt() * torch.randn(TEST_SAMPLES, *mean.shape, dtype=mean.dtype)
        return torch.log_softmax(f, dim=-1).logsumexp(dim=0) - np.log(TEST_SAMPLES)

    def log_probabilities(X: np.ndarray) -> np.ndarray:
        model.eval()
        with torch.no_grad():
            parts = torch.tensor(X, dtype=torch.float32).split(TEST_ROWS)
            return torch.cat([of_rows(part) for part in parts]).numpy()

    return log_probabilities


def run(race: Race) -> None:
    options = race.options
    torch.manual_seed(options.seed)
    start = svgp.start(race.X_train, options.n_inducing, options.seed)
    if race.n_classes == 2:
        n_latent, likelihood = 1, gpytorch.likelihoods.BernoulliLikelihood()
    else:
        n_latent = race.n_classes
        likelihood = gpytorch.likelihoods.SoftmaxLikelihood(
            num_classes=n_latent, mixing_weights=False
        )
    model = Model(start, n_latent, natural=options.method == "natural")
    step = make_step(race, model, likelihood)
    log_probabilities = make_log_probabilities(race, model)
    for rows in svgp.batches(len(race.X_train), options.seed):
        race.stepped(step(torch.from_numpy(rows)), log_probabilities)


if __name__ == "__main__":
    compete(
        __doc__,
        f"GPyTorch {gpytorch.__version__}",
        IMPORT_SECONDS,
        run,
        methods=("adam", "natural"),
        # ValueError is how torch.distributions speaks of a NaN
        blow_ups=(NanError, NotPSDError, torch.linalg.LinAlgError, ValueError),
    )
