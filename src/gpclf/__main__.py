"""`python -m gpclf`."""

from gpclf.cli import app

if __name__ == "__main__":
    app(prog_name="gpclf")
