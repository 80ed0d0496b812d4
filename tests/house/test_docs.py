"""The documentation's code runs, its links lead somewhere, and every likelihood has its page."""

import inspect
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from gpclf import GPClassifier
from gpclf.active import Learner
from gpclf.inference import plan, selection
from gpclf.likelihoods import NAMES

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), DOCS.parent / "README.md", DOCS.parent / "CONTRIBUTING.md"])


def _code(page):
    return re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), flags=re.S)


@pytest.mark.parametrize(
    "page",
    [
        "index",
        "install",
        "deployment",
        "uncertainty",
        "noisy-inputs",
        "inference",
        "tables",
        "saving",
        "report",
        "big-data",
        "layers",
        "../README",
    ],
)
def test_the_code_of_a_page_runs(page, monkeypatch, few_places, sent_unchecked):
    """With fewer evaluations and nodes than a reader's: here it is enough that it runs."""
    monkeypatch.setattr(plan, "EVALUATIONS", 6)
    monkeypatch.setattr(selection, "MOST_CHOICES", 3)
    scope: dict = {"__name__": page}
    blocks = _code(f"{page}.md")
    assert blocks
    for block in blocks:
        exec(block, scope)


@pytest.fixture(scope="module")
def guide():
    scope: dict = {"__name__": "guide"}
    for block in _code("add-a-likelihood.md"):
        exec(block, scope)
    return scope


def test_the_guide_adds_a_likelihood_that_learns_in_ten_lines_and_by_hand_in_under_40(guide):
    short, _, by_hand = _code("add-a-likelihood.md")
    assert len(short.strip().splitlines()) <= 11
    assert len(by_hand.strip().splitlines()) < 40
    assert guide["error"] < 0.08


@pytest.mark.parametrize("name", ["Cloglog", "CloglogByHand"])
@pytest.mark.parametrize(("mu", "nu"), [(0.3, 0.5), (-2.0, 1.5), (1.0, 1e-8)])
def test_the_guides_likelihoods_keep_the_laws(guide, name, mu, nu, x64):
    likelihood = guide[name]()
    log_prob_of = jax.jit(lambda y, f: likelihood.log_prob(y, f))
    logs = jax.jit(lambda *law: likelihood.log_probabilities(*law))(
        jnp.array([mu]), jnp.array([nu])
    )
    np.testing.assert_allclose(np.exp(logs).sum(), 1, rtol=1e-9)
    for y in (0, 1):

        def log_prob(f, y=y):
            return float(log_prob_of(jnp.asarray(y), jnp.array([f])))

        law = jnp.asarray(y), jnp.array([mu]), jnp.array([nu])
        bound = jax.jit(lambda *law: likelihood.bound(*law))(*law)
        x, w = np.polynomial.hermite_e.hermegauss(60)
        truth = sum(wi * log_prob(mu + np.sqrt(nu) * xi) for xi, wi in zip(x, w, strict=True))
        np.testing.assert_allclose(bound, truth / w.sum(), atol=1e-6)
        sites = jax.jit(lambda *law: likelihood.sites(*law))(*law)
        assert all(jax.tree.leaves(jax.tree.map(lambda s: bool(np.isfinite(s).all()), sites)))


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_likelihood_has_a_page_with_its_model_bound_use_and_paper(name):
    page = (DOCS / "likelihoods" / f"{name}.md").read_text()
    assert page.startswith(f"# {name}\n")
    for part in ("**Model.**", "**Bound.**", "**When.**", "**Paper.**", "*Corrected*"):
        assert part in page, part
    assert f"({name}.md)" in (DOCS / "likelihoods" / "README.md").read_text()
    assert f"`{name}`" in (DOCS.parent / "README.md").read_text()


@pytest.mark.parametrize("kind", [GPClassifier, Learner])
def test_attributes_have_a_type_and_a_description_that_the_reference_can_read(kind):
    lines = inspect.getdoc(kind).split("Attributes\n----------\n")[1].splitlines()
    heads = [i for i, line in enumerate(lines) if not line.startswith(" ")]
    assert len(heads) > 2
    for i in heads:
        assert re.fullmatch(r"\w+_(, \w+_)* : [^.]+", lines[i]), lines[i]
        assert lines[i + 1].startswith("    "), lines[i]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target
