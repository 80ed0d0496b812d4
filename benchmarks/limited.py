"""Calls in a process of their own, which is ended when one of them takes too long."""

import multiprocessing
from collections.abc import Callable
from typing import Any

WIDTH = 200  # characters of another library's message that are kept


class Limited:
    """`function(*arguments)`, which returns a dictionary; {"failed": why} where there is none.

    The process stays for the calls that follow, with what it has compiled and read, until one is
    cut. `function` is of the top level of a module.
    """

    def __init__(self, function: Callable[..., dict]):
        self.function = function
        self.process: Any = None

    def __call__(self, *arguments: Any, limit: float | None) -> dict:
        if self.process is None:
            context = multiprocessing.get_context("spawn")
            self.pipe, theirs = context.Pipe()
            self.process = context.Process(target=_work, args=(theirs, self.function), daemon=True)
            self.process.start()
            theirs.close()
        self.pipe.send(arguments)
        try:
            if self.pipe.poll(limit):
                return self.pipe.recv()
            self.end()
            return {"failed": f"cut after {limit:g} s"}
        except EOFError:
            self.process.join()
            code = self.process.exitcode
            self.end()
            return {"failed": f"its process ended with code {code}"}

    def end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.pipe.close()
            self.process = None


def _work(pipe: Any, function: Callable[..., dict]) -> None:
    while True:
        try:
            arguments = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(function(*arguments))
        except Exception as error:
            pipe.send({"failed": sentence(error)})


def sentence(error: Exception) -> str:
    """Kind and first line of an exception, not too long."""
    message = (str(error).strip() or "no message").splitlines()[0]
    return f"{type(error).__name__}: {message}"[:WIDTH]
