import gc
import operator
import os
import subprocess
import sys
from pathlib import Path

# What one worker or run has compiled, others need not. JAX reads these when it is imported.
_CACHE = Path(__file__).parent.parent / ".pytest_cache" / "jax"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(_CACHE))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.05")
# Most of the time goes into compiling programs that run once, so they are compiled with little
# optimisation, as in JAX's own tests; `make test-slow` and the benchmarks have all of it.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "true")
_FLAGS = (
    "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"  # a third off
)
if "XLA_FLAGS" not in os.environ:  # workers have it from the process that starts them
    _probe = "import jax; jax.devices()"  # XLA ends a process that has a flag it does not know
    _tried = subprocess.run(
        [sys.executable, "-c", _probe], env=os.environ | {"XLA_FLAGS": _FLAGS}, capture_output=True
    )
    os.environ["XLA_FLAGS"] = _FLAGS if _tried.returncode == 0 else ""
os.environ.setdefault("SCIPY_ARRAY_API", "1")  # else scikit-learn leaves out one of its checks

import jax  # noqa: E402
import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402

settings.register_profile("laws", max_examples=30, deadline=None, derandomize=True)
settings.load_profile("laws")


gc.set_threshold(50_000, 20, 50)  # or the collector looks at all of JAX's programs all the time


@pytest.fixture(scope="module", autouse=True)
def programs_of_one_file():
    """Give back what a file has compiled: gigabytes, of which other files need next to nothing."""
    yield
    from gpclf import compilation  # not above: first the hook that checks shapes

    jax.clear_caches()
    compilation.clear_programs()


@pytest.fixture
def few_places(monkeypatch):
    """Sixteen nodes a row with errors, however few rows there are."""
    from gpclf.inputs import latent

    monkeypatch.setattr(latent, "MOST_PLACES", latent.PLACES)


@pytest.fixture
def x64():
    """JAX's 64-bit mode for the length of one test."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="module")
def sent_unchecked():
    """Functions travel without the checks of shapes that tests put around them."""
    from gpclf.data.sources import parcels

    whole = parcels.Packer.reducer_override

    def reduced(self, obj):
        inner = obj
        while any(name in str(_source(inner)) for name in ("jaxtyping", "beartype")):
            inner = inner.__wrapped__
        if inner is not obj and "<locals>" in obj.__qualname__:
            return operator.itemgetter(0), ((inner,),)
        return whole(self, obj)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parcels.Packer, "reducer_override", reduced)
        yield


def _source(function):
    return getattr(getattr(function, "__code__", None), "co_filename", "")


@pytest.fixture
def traces():
    """The names of what JAX traces during a test; clear it where the part begins that counts."""
    from gpclf import compilation
    from gpclf.compilation import programs

    if compilation.in_memory() > programs.MOST_PROGRAMS // 2:  # or they go in mid-test
        compilation.clear_programs()
    seen = []

    def listener(event, duration, fun_name="", **_):
        if "trace" in event:
            seen.append(fun_name)

    jax.monitoring.register_event_duration_secs_listener(listener)
    yield seen
    jax.monitoring.clear_event_listeners()
