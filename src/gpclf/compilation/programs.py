"""Functions that are compiled when they are first called, and given back when there are many.

In memory JAX keeps every program for ever. Each takes some 35 memory maps, of which Linux grants a
process 65,530: after some 200 fits of different shapes none would be left, and XLA would crash. So
ours are given back when there are many.
"""

import sys
from collections.abc import Callable
from functools import update_wrapper, wraps
from importlib import import_module
from typing import Any, Generic, NamedTuple, TypeVar

import jax

from gpclf.compilation.state import PROCESS

R = TypeVar("R")

MOST_PROGRAMS = 500
# XLA's newer generator of code for fused loops takes half as long again. Steps are mostly products
# and hardly faster for it; predictions are, and rows of many places.
QUICK: dict[str, Any] = {"xla_cpu_use_fusion_emitters": False}
# Not optimised: a quarter of the time; for work that hardly takes any.
PLAIN: dict[str, Any] = {**QUICK, "xla_backend_optimization_level": 0}


class _Compiled(NamedTuple):
    """What `jax.jit` made, and of which options."""

    jitted: Any
    options: dict[str, Any]


class Program(Generic[R]):
    """`jax.jit`, with those options that XLA has.

    They were chosen on processors, and only there are they asked for. Whether XLA has them shows
    in the first compilation: where it does, to find out costs nothing.
    """

    def __init__(self, function: Callable[..., R], options: dict[str, Any] | None):
        update_wrapper(self, function)
        self._function, self._options = function, options or {}
        self._compiled: _Compiled | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> R:
        compiled = self._compiled or self._build(None)
        try:
            return compiled.jitted(*args, **kwargs)
        except jax.errors.JaxRuntimeError:
            if not _any_refused(compiled.options):
                raise  # a failure of its own
            return self._build(compiled).jitted(*args, **kwargs)

    def _build(self, replaced: _Compiled | None) -> _Compiled:
        """Leave out what XLA has refused; a thread that comes second finds what the first made."""
        with PROCESS.lock:
            if self._compiled is not None and self._compiled is not replaced:
                return self._compiled
            asked = self._options if jax.default_backend() == "cpu" else {}
            options = {name: asked[name] for name in asked if PROCESS.accepted.get(name, True)}
            jitted = jax.jit(self._function, compiler_options=options or None)
            self._compiled = _Compiled(jitted, options)
            return self._compiled

    def __reduce__(self) -> Any:
        """To another process as its place in the library: there it is compiled anew."""
        places = vars(sys.modules[self.__module__]).items()
        return _program_at, (self.__module__, next(name for name, at in places if at is self))

    def count(self) -> int:
        """For how many shapes there is a program."""
        return self._compiled.jitted._cache_size() if self._compiled else 0

    def clear(self) -> None:
        """Give all of them back."""
        if self._compiled:
            self._compiled.jitted.clear_cache()


def _program_at(module: str, name: str) -> "Program":
    return getattr(import_module(module), name)


def _any_refused(options: dict[str, Any]) -> bool:
    """Whether XLA lacks any of these: each is tried once in a process, where nothing else fails."""
    with PROCESS.lock:
        for name, value in options.items():
            if name not in PROCESS.accepted:
                PROCESS.accepted[name] = _accepts({name: value})
        return not all(PROCESS.accepted[name] for name in options)


def _accepts(options: dict[str, Any]) -> bool:
    try:
        jax.jit(lambda x: x + 1, compiler_options=options)(0.0)
    except jax.errors.JaxRuntimeError:
        return False
    return True


def program(function: Callable[..., R], options: dict[str, Any] | None = QUICK) -> Program[R]:
    """A function of ours, compiled when it is called, whose programs may be given back.

    One does not call another: JAX has options for whole programs only.
    """
    made = Program(function, options)
    PROCESS.programs.append(made)
    return made


def program_of_two(function: Callable[..., R]) -> Callable[..., R]:
    """A program that is there sooner, and one that is faster: by a first argument, `fast`."""
    sooner, faster = program(function), program(function, None)

    @wraps(function)
    def chosen(fast: bool, *args: Any) -> R:
        return (faster if fast else sooner)(*args)

    return chosen


def cleared_with_programs(notes: dict) -> dict:
    """`notes`, which are emptied whenever programs are given back."""
    PROCESS.notes.append(notes)
    return notes


def in_memory() -> int:
    """How many programs of ours there are."""
    return sum(made.count() for made in PROCESS.programs)


def clear_programs() -> None:
    """Give all programs back, and empty the notes on them; those still wanted come from disk."""
    for made in PROCESS.programs:
        made.clear()
    for notes in PROCESS.notes:
        notes.clear()


def give_back() -> None:
    """Drop all programs where there are too many."""
    if in_memory() > MOST_PROGRAMS:
        clear_programs()
