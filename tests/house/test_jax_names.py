"""What we use of JAX that JAX does not promise to keep: each with a reason, and with a test."""

import ast
import importlib
import re
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.experimental.compilation_cache.compilation_cache import reset_cache

import gpclf
from gpclf.compilation.calls import FOLDER, SHORTEST

SOURCE = Path(gpclf.__file__).parent

# Every name that JAX does not promise to keep, and why there is no other way.
UNPROMISED = {
    "_cache_size": "how many programs a function has; nothing public counts them",
    "jax.experimental.compilation_cache.compilation_cache.reset_cache": (
        "JAX looks at the folder of its cache once in a process, and again only after this"
    ),
}
OF_TUPLES = {"_replace", "_asdict", "_fields"}  # of typing.NamedTuple, and documented


def private_names(tree: ast.Module) -> set[str]:
    """Attributes with an underscore of anything but `self`, and imports JAX does not promise."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and re.match("_[a-z]", node.attr):
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            found |= {node.attr} if owner not in ("self", "cls") else set()
        if isinstance(node, ast.ImportFrom) and re.match(
            r"jaxlib|jax\.(_|experimental|interpreters|extend|lib\b)", node.module or ""
        ):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        if isinstance(node, ast.Import):
            found |= {a.name for a in node.names if re.match(r"jaxlib|jax\._|jax\.exp", a.name)}
    return found


def test_every_private_name_of_jax_that_we_use_is_listed():
    # scikit-learn's own private names are the business of estimators and engines
    trees = [
        ast.parse(path.read_text())
        for path in SOURCE.rglob("*.py")
        if path.parent.name not in ("estimators", "engines")
    ]
    ours = {
        node.attr
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self"
    } | {
        node.name
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }
    used = set().union(*map(private_names, trees)) - ours - OF_TUPLES
    assert used == set(UNPROMISED)


def test_every_private_name_of_jax_that_we_use_is_there():
    jitted: Any = jax.jit(lambda x: 2 * x)
    jitted(1.0)
    jitted(np.ones(2))
    assert jitted._cache_size() == 2
    jitted.clear_cache()
    assert jitted._cache_size() == 0
    for name in UNPROMISED:
        module, _, last = name.rpartition(".")
        assert callable(getattr(importlib.import_module(module) if module else jitted, last))


def test_jax_looks_at_another_folder_only_after_its_cache_is_reset(tmp_path):
    """Why `reset_cache` is needed: once this fails, do without."""
    reset_cache()
    before = {name: getattr(jax.config, name) for name in (FOLDER, SHORTEST)}
    try:
        jax.config.update(SHORTEST, 0.0)
        for count, place in enumerate(("first", "second", "second"), start=2):
            if count == 4:
                reset_cache()
            jax.config.update(FOLDER, str(tmp_path / place))
            jax.jit(lambda x, count=count: x**count)(2.0)
            assert (tmp_path / "second").is_dir() == (count == 4)
        assert list((tmp_path / "first").iterdir())
    finally:
        for name, value in before.items():
            jax.config.update(name, value)
        reset_cache()
