"""The gradient engine: the same ELBO, climbed in (m, L), the kernel's parameters and Z together.

Full batch by L-BFGS-B, first with the kernel and Z frozen, then freed (Hensman et al. 2015, §5);
or on batches by Adam or Adadelta.
"""

from gpclf.data import ArrayStream
from gpclf.gaussian import Moments, Natural
from gpclf.inference.adaptive import run_batches
from gpclf.inference.ascent import all_rows, look
from gpclf.inference.factored import Factored, factored, moments
from gpclf.inference.hyper import Theta
from gpclf.inference.journal import Journal
from gpclf.inference.natural import begin_with_some
from gpclf.inference.plan import Plan
from gpclf.inference.quasi_newton import climb_by_lbfgs
from gpclf.inference.work import Work
from gpclf.model import prepare

FROZEN = 0.25  # share of the evaluations, before kernel and Z are freed


def run_gradient(theta: Theta, q: Natural, work: Work) -> tuple[Theta, Moments, float, str]:
    """θ and q where the climb ended, the ELBO of all rows there, and why it ended."""
    stream, plan, rng, log = work
    here = factored(begin_with_some(theta, q, stream, plan, rng)[0])
    if plan.full_batch:
        theta, here, why = _on_all_rows(theta, here, stream, plan, log)
    else:
        theta, here, why = run_batches(theta, here, work)
    theta, m = log.best(theta, moments(here)[0])
    assert isinstance(m, Moments)
    prepared, _ = prepare(*theta, plan.jitter)
    chunks = all_rows(prepared, stream, plan, one_theta=False)
    elbo = look(prepared, factored(m), chunks(), at_theta=False).elbo
    stopped = "fixed" if plan.optimizer is None else why
    return theta, m, elbo, f"hyper-parameters: {stopped}; posterior: {why}"


def _on_all_rows(
    theta: Theta, q: Factored, stream: ArrayStream, plan: Plan, log: Journal
) -> tuple[Theta, Factored, str]:
    """L-BFGS-B with θ frozen, then freed unless the plan keeps it."""
    frozen = 1.0 if plan.optimizer is None else FROZEN
    first = max(1, round(frozen * plan.max_epochs))
    theta, q, why = climb_by_lbfgs(
        theta, q, stream, plan, log, free=False, evaluations=first, share=(0.0, frozen)
    )
    rest = plan.max_epochs - first
    if plan.optimizer is None or rest == 0 or log.enough:
        return theta, q, why
    return climb_by_lbfgs(
        theta, q, stream, plan, log, free=True, evaluations=rest, share=(frozen, 1.0)
    )
