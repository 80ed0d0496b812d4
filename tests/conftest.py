import jax
import pytest
from hypothesis import settings

settings.register_profile("laws", max_examples=30, deadline=None, derandomize=True)
settings.load_profile("laws")


@pytest.fixture
def x64():
    """JAX's 64-bit mode for the length of one test."""
    with jax.enable_x64(True):
        yield
