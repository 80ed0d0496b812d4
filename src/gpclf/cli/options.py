"""Options as a frozen dataclass: a command takes one object, and all read tables alike."""

import csv
import inspect
import tomllib
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_type_hints

import typer

from gpclf.cli.console import Voice
from gpclf.cli.errors import DEBUG, Mistake
from gpclf.names import unknown

MOST_SEEDS = 2**32
PANEL = "_panel"  # of a class of options: the heading of these in the help


def taking(kind: type, *examples: str) -> Callable[[Callable[[Any], None]], Any]:
    """A command for Typer whose options are the fields of `kind`; `examples` end its help.

    `command.of(kind(…))` calls it from Python.
    """

    def wrap(function: Callable[[Any], None]) -> Any:
        def call(**given: Any) -> None:
            function(kind(**given))

        command: Any = call

        hints = get_type_hints(kind, include_extras=True)
        for base in reversed(kind.__mro__):
            for name in vars(base).get("__annotations__", {}):
                if name != PANEL:
                    _dress(name, hints[name], vars(base).get(PANEL))
        own = vars(kind).get("__annotations__", {})
        ordered = sorted(fields(kind), key=lambda field: field.name not in own)
        parameters = [
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                annotation=hints[field.name],
                default=inspect.Parameter.empty if field.default is MISSING else field.default,
            )
            for field in ordered
        ]
        command.__name__, command.__doc__ = function.__name__, _unwrapped(function.__doc__)
        command.__annotations__ = {field.name: hints[field.name] for field in fields(kind)}
        command.__signature__ = inspect.Signature(parameters)
        command.examples = examples
        command.of = function
        return command

    return wrap


def _dress(name: str, hint: Any, panel: str | None) -> None:
    """How the help shows it: an argument in capitals, a switch without a type, and where."""
    shown = hint.__metadata__[0]
    if isinstance(shown, typer.models.ArgumentInfo):
        shown.metavar = name.upper()
        return
    shown.rich_help_panel = panel or shown.rich_help_panel
    if hint.__origin__ is bool:
        shown.metavar = ""


def _unwrapped(text: str | None) -> str:
    """A line for each paragraph, which the help breaks as its width asks for."""
    return "\n\n".join(" ".join(part.split()) for part in (text or "").split("\n\n"))


def _check_seed(value: int) -> int:
    if not 0 <= value < MOST_SEEDS:
        raise typer.BadParameter(f"{value} is not between 0 and {MOST_SEEDS - 1}.")
    return value


def seed_option(text: str) -> Any:
    """An option for what is random; NumPy takes seeds of 32 bits."""
    return typer.Option(callback=_check_seed, help=text)


def _want_debug(ctx: Any, wanted: bool) -> bool:
    ctx.meta[DEBUG] = wanted
    return wanted


@dataclass(frozen=True, kw_only=True)
class Common:
    """What every command takes."""

    _panel: ClassVar[str] = "What is said"

    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Say nothing but results and mistakes.")
    ] = False
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say more.")] = False
    debug: Annotated[
        bool,
        typer.Option(
            "--debug", callback=_want_debug, is_eager=True, help="Show the traceback of an error."
        ),
    ] = False

    @property
    def voice(self) -> Voice:
        """How much is said."""
        return Voice(self.quiet, self.verbose)


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How a table is read."""

    _panel: ClassVar[str] = "How the table is read"

    format: Annotated[
        str | None,
        typer.Option(help="csv, tsv, jsonl, parquet, arrow or excel; else by the file's name."),
    ] = None
    encoding: Annotated[str, typer.Option(help="Of text files.")] = "utf-8"
    delimiter: Annotated[
        str | None, typer.Option(help="Between the columns of CSV; else by its first line.")
    ] = None
    decimal: Annotated[
        str, typer.Option(help="What stands before a fraction: . or , (text files).")
    ] = "."
    missing: Annotated[
        str, typer.Option(help="More words for a missing value, beside NA, NaN, null, ? and such.")
    ] = ""


def names(text: str | None) -> list[str]:
    """A list with commas between; a name that has one itself stands in quotation marks."""
    parts = [] if text is None else next(csv.reader([text], skipinitialspace=True), [])
    return [part.strip() for part in parts if part.strip()]


def pairs(text: str | None, option: str) -> dict[str, str]:
    """A list such as `flux=flux_err,index=index_err`."""
    found: dict[str, str] = {}
    for part in names(text):
        name, equals, other = (each.strip() for each in part.partition("="))
        if not (name and equals and other):
            raise Mistake(
                f"{option} must be a list such as 'flux=flux_err,index=index_err', got {part!r}."
            )
        if name in found:
            raise Mistake(f"{option} names {name!r} twice.")
        found[name] = other
    return found


def read_config(ctx: Any, path: Path | None) -> Path | None:
    """Options from a TOML file, where the command line does not say otherwise."""
    if path is None:
        return None
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Mistake(f"{path} is no TOML file: {error}.") from None
    known = {each.name: each for each in ctx.command.params if each.name not in ("config", "help")}
    defaults = {}
    for name, value in content.items():
        plain = name.replace("-", "_")
        if plain not in known:
            raise Mistake(
                f"{path}: {unknown('option', name, [each.replace('_', '-') for each in known])}"
            )
        defaults[plain] = _plain(value)
        _check(ctx, known[plain], defaults[plain], f"{path}: {name}")
    ctx.default_map = {**(ctx.default_map or {}), **defaults}
    return path


def _check(ctx: Any, option: Any, value: Any, where: str) -> None:
    """One sentence that names the file, where a value is none of its option."""
    if getattr(option, "multiple", False) or isinstance(value, bool):
        return
    try:
        option.process_value(ctx, value)
    except typer.BadParameter as error:
        raise Mistake(f"{where} is {value!r}: {error.message.rstrip('.')}.") from None


def _plain(value: Any) -> Any:
    """Lists and tables as the command line has them."""
    if isinstance(value, list):
        return ",".join(f'"{each}"' if "," in str(each) else str(each) for each in value)
    if isinstance(value, dict):
        return ",".join(f"{name}={each}" for name, each in value.items())
    return value if isinstance(value, bool) else str(value)
