"""Power-EP as a rule: sites from the moments of tilted cavities, and the energy that they serve.

q ∝ N(v; 0, I) Π tₙ, each tₙ so that α of it in the place of α of its row's likelihood leaves q's
moments as they are. α = 1 is EP, with inducing points EP-FITC; α → 0 is variational inference (Bui,
Yan & Turner 2017). The energy, an approximate log-evidence, is

    Σ w { 1/α log E_q (p̃ₙ/tₙ)^α + E_q log tₙ } − KL(q ‖ N(0, I)),   p̃ₙ^α = E p(y | f)^α given ω,

stationary in the sites at their fixed point: for θ they are held, as in the dual bound.
"""

from collections.abc import Callable, Sequence

import numpy as np

from gpclf.data import Chunk, Kept, Rows
from gpclf.gaussian import Natural, moments
from gpclf.inference.power_passes import Fraction, Swept, cavity_pass, energy_pass
from gpclf.inference.rules import Rule, Seen, Verdict, nothing_said, slope
from gpclf.likelihoods import Sites
from gpclf.model import Prepared

WORSE = 4.0  # a step after which sites would move so many times as far is taken back
SHARE = 0.1  # of the tolerance: how far q may be from its sites' target


class PowerRule(Rule):
    """EP climbs nothing: what tells whether a rate is too large is the gap to the fresh sites.

    A step after which it is much wider, or q no Gaussian, is taken back at half the rate; where it
    is a little wider, the next one is shorter.
    """

    needs_sites = True

    def __init__(self, fraction: Fraction):
        self.fraction = fraction

    def look(
        self,
        prepared: Prepared,
        q: Natural,
        rows: Rows,
        held: Kept[Sites] | None = None,
        *,
        keep_features: bool = False,
    ) -> Seen:
        """The energy, and where all fresh sites together would bring q."""
        assert held is not None
        m, kl = moments(q)
        if not np.isfinite(kl):
            return Seen(np.nan, m)

        fraction = self.fraction

        def found(chunk: Chunk, own: Sites) -> tuple[Swept, Sites]:
            one = cavity_pass(prepared, m, chunk, own, fraction)
            assert one.sites is not None
            return one._replace(sites=None), Sites(*map(np.asarray, one.sites))

        sums, fresh = rows.sum_and_keep(found, held)
        if sums.not_finite:
            return Seen(np.nan, m)
        target, objective = sums.target(), float(sums.bound) - kl
        gap, kept = slope(q, m, target), int(sums.kept)
        return Seen(objective, m, target, fresh, gap=gap, improper=kept)

    def objective(self, prepared: Prepared, q: Natural, rows: Rows, held: Kept[Sites]) -> Seen:
        """The energy of held sites, with its gradients."""
        m, kl = moments(q)
        if not np.isfinite(kl):
            return Seen(np.nan, m)

        fraction = self.fraction

        def found(chunk: Chunk, own: Sites) -> tuple[tuple, object]:
            one, improper = energy_pass(prepared, m, chunk, own, fraction)
            return (one.sums(), improper), one.by_features

        (sums, improper), by_features = rows.sum_and_keep(found, held)
        if sums.not_finite:
            return Seen(np.nan, m)
        objective, count = float(sums.bound) - kl, int(improper)
        return Seen(objective, m, sums=sums, by_features=by_features, improper=count)

    def judge(self, rise: float, here: Seen, there: Seen, rate: float, slack: float) -> Verdict:
        """By the gaps."""
        if not (np.isfinite(there.objective) and there.gap <= WORSE * here.gap):
            return Verdict(False, rate / 2)
        return Verdict(True, min(1.0, 1.5 * rate) if there.gap < here.gap else 0.5 * rate)

    def converged(self, before: Seen, here: Seen, rate: float, tolerance: float) -> bool:
        """Asked before the next step."""
        return False

    def arrived(self, here: Seen, tolerance: float) -> bool:
        """Whether the sites stay where they are."""
        return here.gap <= SHARE * tolerance

    @property
    def key(self) -> object:
        """α is part of a program."""
        return self.fraction

    def programs(
        self, prepared: Prepared, chunk: Chunk, prior: Natural
    ) -> Sequence[Callable[[], object]]:
        """The two passes, one after the other: JAX cannot trace a likelihood in two threads."""
        m, _ = moments(prior)
        row = (prepared, m, chunk, nothing_said(prepared, chunk, prior), self.fraction)
        return [lambda: (cavity_pass(*row), energy_pass(*row))]
