"""The command `gpclf`: one file per subcommand."""

from typing import Annotated

import typer

from gpclf import __version__
from gpclf.cli import demo

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, add_completion=False)
app.command()(demo.demo)


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
            "--version", callback=_print_version, is_eager=True, help="Print the version and stop."
        ),
    ] = False,
) -> None:
    """Gaussian process classification with calibrated probabilities."""
