"""The walls of the house: small functions, one sum over rows, and no engine known by its name."""

import ast
import re
from pathlib import Path

from gpclf.inference.engines import KINDS

SOURCE = Path(__file__).parents[2] / "src" / "gpclf"
FILES = {str(path.relative_to(SOURCE)): path for path in sorted(SOURCE.rglob("*.py"))}
TREES = {name: ast.parse(path.read_text()) for name, path in FILES.items()}
LINES, PARAMETERS = 60, 8
ENGINES_HOUSE, ROWS_HOUSE = "inference/engines/__init__.py", "data/rows.py"
ELSEWHERE = "data/sources/dask_rows.py"  # on other machines, of the sums of `ROWS_HOUSE` there


def functions(tree):
    """Every function of a file, with the class that it is a method of."""
    owners = {
        child: node
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for child in node.body
    }
    found = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [(function, owners.get(function)) for function in found]


def keeps_options(function, owner):
    """Whether it is the constructor of an estimator or engine, which has its options."""
    if function.name != "__init__" or owner is None:
        return False
    return "_parameter_constraints" in {
        node.target.id
        for node in owner.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }


def parameters(function, owner):
    """Their names, without the object or class itself."""
    of = function.args
    names = [a.arg for a in (*of.posonlyargs, *of.args, of.vararg, *of.kwonlyargs, of.kwarg) if a]
    static = any(
        isinstance(d, ast.Name) and d.id == "staticmethod" for d in function.decorator_list
    )
    return names if owner is None or static else names[1:]


def test_functions_are_short():
    long = [
        (name, function.name, function.end_lineno - function.lineno + 1)
        for name, tree in TREES.items()
        for function, _ in functions(tree)
        if function.end_lineno - function.lineno >= LINES
    ]
    assert long == []


def test_functions_have_few_parameters():
    many = [
        (name, function.name, len(parameters(function, owner)))
        for name, tree in TREES.items()
        for function, owner in functions(tree)
        if len(parameters(function, owner)) > PARAMETERS and not keeps_options(function, owner)
    ]
    assert many == []


def test_constructors_that_keep_options_are_those_of_the_estimator_and_the_engines():
    owners = {
        owner.name
        for tree in TREES.values()
        for function, owner in functions(tree)
        if keeps_options(function, owner)
    }
    assert owners == {"GPClassifier", *(kind.__name__ for kind in KINDS.values())}


def test_nobody_asks_for_the_name_of_an_engine():
    """A comparison with one, or of the name of an engine with anything."""
    words = set(KINDS)
    asked = [
        (name, ast.unparse(node))
        for name, node in comparisons()
        if any(isinstance(p, ast.Constant) and p.value in words for p in ast.walk(node))
        or re.search(r"\bengine\.name\b", ast.unparse(node))
    ]
    assert [found for found in asked if found[0] != ENGINES_HOUSE] == []


def comparisons():
    """All of the library."""
    for name, tree in TREES.items():
        yield from ((name, node) for node in ast.walk(tree) if isinstance(node, ast.Compare))


def test_inference_knows_neither_streams_nor_the_kinds_of_inputs():
    words = re.compile(r"\bstream\.|\.places\b|\.bends\b")
    inside = {name: path for name, path in FILES.items() if name.startswith("inference/")}
    assert inside
    assert [name for name, path in inside.items() if words.search(path.read_text())] == []


def test_there_is_one_sum_over_rows():
    sums = [
        name
        for name, tree in TREES.items()
        for function, owner in functions(tree)
        if function.name == "sum" and owner is not None
    ]
    assert sums == [ROWS_HOUSE, ELSEWHERE]


def test_nobody_else_goes_from_chunk_to_chunk():
    who = {
        name
        for name, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "chunks"
    }
    assert who == {ROWS_HOUSE}
