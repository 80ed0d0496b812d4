"""The command `gpclf`: one file per subcommand."""

from typing import Annotated, Any

import typer

from gpclf import __version__
from gpclf.cli import compare, demo, evaluate, fit, info, predict, report
from gpclf.cli.errors import Commands

__all__ = ["app"]

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _add(command: Any) -> None:
    """A subcommand whose help ends with its examples, one a line."""
    app.command(epilog="\n\n".join(("Examples:", *command.examples)))(command)


COMMANDS = (
    fit.fit,
    evaluate.evaluate,
    report.report,
    predict.predict,
    info.info,
    compare.compare,
    demo.demo,
)
for command in COMMANDS:
    _add(command)


def _print_version(wanted: bool) -> bool:
    if wanted:
        typer.echo(f"gpclf {__version__}")
        raise typer.Exit()
    return wanted


@app.callback()
def main(
    show_version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            metavar="",
            help="Print the version and stop.",
        ),
    ] = False,
) -> None:
    """Gaussian process classification with calibrated probabilities."""
