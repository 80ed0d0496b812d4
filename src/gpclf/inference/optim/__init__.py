"""Optimisers of plain numbers: L-BFGS with a lasting memory, and Optax's on batches."""
