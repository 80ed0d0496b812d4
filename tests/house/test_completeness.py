"""Every exported class has a row in cases.py, every public name a docstring, no file two ideas."""

import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest

import cases
import gpclf
from gpclf import kernels, likelihoods
from gpclf.inference import engines


def _classes(module, base):
    """The names of what is exported and can be made; what is abstract has no law to keep."""
    named = ((name, getattr(module, name)) for name in module.__all__)
    classes = ((name, c) for name, c in named if inspect.isclass(c) and issubclass(c, base))
    return {name for name, c in classes if not inspect.isabstract(c)}


def test_every_kernel_has_a_case():
    assert _classes(kernels, kernels.Kernel) == {case.split()[0] for case in cases.KERNELS}


def _covered():
    return {case.split()[0] for case in cases.LIKELIHOODS}


def test_every_likelihood_has_a_case():
    assert _classes(likelihoods, likelihoods.Likelihood) == _covered()


def test_every_likelihood_has_a_name():
    named = {type(make()).__name__ for make in likelihoods.NAMES.values()}
    assert named == _covered()


def test_every_engine_has_a_case():
    assert _classes(engines, engines.Engine) == {case.split()[0] for case in cases.ENGINES}
    for case, (engine, _) in cases.ENGINES.items():
        assert type(engine).__name__ == case.split()[0]


def test_every_engine_has_a_name():
    named = engines.KINDS
    assert {kind.__name__ for kind in named.values()} == _classes(engines, engines.Engine)
    assert all(kind.name == name for name, kind in named.items())


MODULES = [m.name for m in pkgutil.walk_packages(gpclf.__path__, "gpclf.")]


@pytest.mark.parametrize("name", MODULES)
def test_public_names_are_documented(name):
    module = importlib.import_module(name)
    assert module.__doc__
    for attribute, value in vars(module).items():
        own = getattr(value, "__module__", None) == name
        if own and not attribute.startswith("_") and (inspect.isclass(value) or callable(value)):
            assert inspect.getdoc(value), f"{name}.{attribute} has no docstring"


def test_no_source_file_is_longer_than_400_lines():
    root = Path(gpclf.__path__[0])
    long = {p.name: n for p in root.rglob("*.py") if (n := len(p.read_text().splitlines())) > 400}
    assert not long
