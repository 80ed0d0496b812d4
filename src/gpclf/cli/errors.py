"""What went wrong, in one sentence and an exit code; the traceback only for those who ask.

0: done. 1: a condition of `--fail-if` holds. 2: a mistake in what was asked or given. 3: an error
of gpclf itself. 130: stopped by Ctrl-C.
"""

import errno
import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperGroup

from gpclf.estimators import FitInterrupted

MISTAKE, OWN_ERROR, STOPPED = 2, 3, 130
DEBUG = "gpclf.debug"  # in the context's `meta`: whether a traceback is wanted
OF_OTHERS = (ValueError, OSError, ImportError, MemoryError)  # that speak of what was given
OF_CLICK: Any = typer.BadParameter.__mro__[
    2
]  # its ClickException, be click Typer's own or beside it


class Mistake(Exception):
    """One sentence for the user: what is wrong, where, and what to do."""


class Commands(TyperGroup):
    """The subcommands, whose errors end here."""

    def invoke(self, ctx: Any) -> object:
        """Run one, and turn what it raises into a sentence and an exit code."""
        try:
            with _warnings_as_lines():
                return super().invoke(ctx)
        except OF_CLICK as error:
            _say(f"Error: {_of_options(error)}", ctx)
            raise typer.Exit(error.exit_code) from None
        except (typer.Exit, typer.Abort):
            raise
        except KeyboardInterrupt as stopped:
            _say(f"Stopped: {str(stopped) or 'nothing was written.'}", ctx)
            raise typer.Exit(STOPPED) from None
        except BrokenPipeError:  # as `head` leaves one behind
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(1) from None
        except (Mistake, *OF_OTHERS) as error:
            _say(f"Error: {sentence(error)}", ctx)
            raise typer.Exit(MISTAKE) from None
        except Exception as error:
            name = type(error).__name__
            _say(f"Error: gpclf failed ({name}: {error}): --debug shows where.", ctx)
            raise typer.Exit(OWN_ERROR) from None


def sentence(error: BaseException) -> str:
    """What to tell the user of it."""
    if isinstance(error, OSError) and error.strerror is not None:
        place = "" if error.filename is None else f" {os.fsdecode(error.filename)}"
        reasons = {
            errno.ENOENT: f"There is no file{place}.",
            errno.EACCES: f"There is no permission to open{place}.",
            errno.EPERM: f"There is no permission to write{place}.",
            errno.EROFS: f"{place.strip()} is on a file system that is read-only.",
            errno.ENOSPC: f"No space is left on the disk of{place}: nothing was written.",
            errno.EFBIG: f"{place.strip()} would be larger than is allowed: nothing was written.",
            errno.EDQUOT: f"The quota of the disk is used up for{place}: nothing was written.",
        }
        plain = f"{error.strerror}:{place}." if place else f"{error.strerror}."
        return reasons.get(error.errno or 0, plain)
    if isinstance(error, MemoryError):
        return f"Memory does not suffice for this table ({error or 'no more is to be had'})."
    return " ".join(str(error).split()) or type(error).__name__


def _of_options(error: Any) -> str:
    """What is wrong with the words of a command, in one sentence as well."""
    text = " ".join(error.format_message().split()).rstrip(".?")
    asked: Any = getattr(error, "ctx", None)
    path = "gpclf"
    if asked is not None and asked.parent is not None:
        path = f"gpclf {asked.info_name}"
    return f"{text} (see {path} --help)."


def _say(text: str, ctx: Any) -> None:
    if ctx.meta.get(DEBUG):
        traceback.print_exc()
    typer.echo(text, err=True)


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """A warning of any library is one line on standard error, and said once."""
    said: set[str] = set()

    def show(message: Warning | str, *_: object, **__: object) -> None:
        text = " ".join(str(message).split())
        if text not in said:
            said.add(text)
            typer.echo(f"Note: {text}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", FitInterrupted)  # the command ends, too
        warnings.filterwarnings("ignore", "Error (reading|writing) persistent compilation cache")
        warnings.showwarning = show
        yield
