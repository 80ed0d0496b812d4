"""Seconds from the start of a process to the end of its first fit: wine, 178 rows, 13 lengthscales.

gpclf twice with an empty cache of compiled programs before the first, then scikit-learn, GPflow
and GPyTorch, each in a new process, as their documentation fits a classifier: GPflow's sparse
model by L-BFGS (100 iterations), GPyTorch's by Adam (50 steps at rate 0.1), all rows in a batch.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FITTED = "fitted"
DATA = """
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler
X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
"""
PROGRAMS = {
    "gpclf": DATA + """
from gpclf import GPClassifier
from gpclf.kernels import RBF
GPClassifier(kernel=RBF(ard=True), random_state=0).fit(X, y)
""",
    "scikit-learn": DATA + """
import numpy as np
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
GaussianProcessClassifier(ConstantKernel() * RBF(np.full(13, 5.0)), random_state=0).fit(X, y)
""",
    "GPflow": DATA + """
import gpflow, numpy as np
model = gpflow.models.SVGP(
    gpflow.kernels.RBF(lengthscales=np.full(13, 5.0)), gpflow.likelihoods.Softmax(3),
    X[::3].copy(), num_latent_gps=3, num_data=len(X))
gpflow.optimizers.Scipy().minimize(
    model.training_loss_closure((X, y[:, None])), model.trainable_variables,
    options={"maxiter": 100})
""",
    "GPyTorch": DATA + """
import gpytorch, torch
from gpytorch import variational
X, y = torch.tensor(X).float(), torch.tensor(y)
class Model(gpytorch.models.ApproximateGP):
    def __init__(self):
        q = variational.CholeskyVariationalDistribution(60, batch_shape=torch.Size([3]))
        one = variational.VariationalStrategy(self, X[::3], q, learn_inducing_locations=True)
        super().__init__(variational.IndependentMultitaskVariationalStrategy(one, 3))
        self.mean = gpytorch.means.ZeroMean()
        self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=13))
    def forward(self, X):
        return gpytorch.distributions.MultivariateNormal(self.mean(X), self.kernel(X))
model = Model()
likelihood = gpytorch.likelihoods.SoftmaxLikelihood(num_classes=3, mixing_weights=False)
bound = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(X))
adam = torch.optim.Adam(model.parameters(), lr=0.1)
for _ in range(50):
    adam.zero_grad()
    loss = -bound(model(X), y)
    loss.backward()
    adam.step()
""",
}  # fmt: skip


def seconds(python: str, name: str, **environment: str) -> float:
    """From the start of a process to the end of its fit."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("JAX_")}
    if python != sys.executable:
        kept.pop("PYTHONPATH", None)
    kept |= {"TF_CPP_MIN_LOG_LEVEL": "3", "OMP_WAIT_POLICY": "PASSIVE", **environment}
    command = [python, "-W", "ignore", "-c", PROGRAMS[name] + f"\nprint({FITTED!r}, flush=True)\n"]
    start, fitted = time.perf_counter(), None
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            command, env=kept, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            if line.strip() == FITTED:
                fitted = time.perf_counter() - start
        if process.wait() or fitted is None:
            errors.seek(0)
            lines = [line for line in errors.read().splitlines() if line.strip()] or ["no message"]
            raise SystemExit(f"{name} failed: {lines[-1].strip()}")
    return fitted


def main() -> int:
    here = Path(__file__).parent.parent
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for library in ("gpflow", "gpytorch"):
        default = here / f".venv-{library}" / "bin" / "python"
        parser.add_argument(f"--{library}-python", default=str(default))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        first = seconds(sys.executable, "gpclf", GPCLF_CACHE=cache)
        second = seconds(sys.executable, "gpclf", GPCLF_CACHE=cache)
    rivals = {
        "scikit-learn": seconds(sys.executable, "scikit-learn"),
        "GPflow": seconds(options.gpflow_python, "GPflow"),
        "GPyTorch": seconds(options.gpytorch_python, "GPyTorch"),
    }
    print(f"gpclf, first process  {first:6.2f} s\ngpclf, second process {second:6.2f} s")
    for name, value in rivals.items():
        print(f"{name:<21} {value:6.2f} s")
    lines = {
        "faster than GPflow": first < rivals["GPflow"],
        "faster than GPyTorch": first < rivals["GPyTorch"],
        "twice as fast as scikit-learn": 2 * first <= rivals["scikit-learn"],
        "the second process twice as fast as the first": 2 * second <= first,
    }
    for line, holds in lines.items():
        print(f"{line}: {'met' if holds else 'not met'}")
    return int(not all(lines.values()))


if __name__ == "__main__":
    sys.exit(main())
