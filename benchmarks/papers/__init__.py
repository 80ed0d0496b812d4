"""The papers' tables and figures, made anew: run from `benchmarks` as `python -m papers.NAME`."""
