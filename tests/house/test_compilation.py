"""Programs kept on disk: for our own calls, in the user's own folder, or not at all."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import jax
import numpy as np
import pytest

from gpclf import GPClassifier, compilation

# One fit in a new process; prints the programs it found on disk, and the settings afterwards.
FIT = """
import gc, sys
collects = "collecting" in sys.argv
gc.enable() if collects else gc.disable()
import jax, numpy as np, gpclf
assert collects or gc.get_count()[0] < 700, "imports left garbage to look for"
hits = []
jax.monitoring.register_event_listener(
    lambda event, **_: hits.append(event) if event.endswith("cache_hits") else None)
before = (collects, gc.get_freeze_count(), jax.config.jax_compilation_cache_dir,
          jax.config.jax_persistent_cache_min_compile_time_secs)
clf = gpclf.GPClassifier(n_inducing=4, max_epochs=2, random_state=0)  # the same shapes
clf.fit(np.eye(8), np.arange(8) % 2)
jax.jit(lambda x: x @ x + 1)(np.eye(300)).block_until_ready()  # the user's own
after = (gc.isenabled(), gc.get_freeze_count(), jax.config.jax_compilation_cache_dir,
         jax.config.jax_persistent_cache_min_compile_time_secs)
print(len(hits), before == after, before[2])
"""


def in_new_process(collecting=True, **environment):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", FIT, *["collecting"] * collecting],
        env={**kept, **environment},
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    hits, unchanged, folder = done.stdout.split()
    assert unchanged == "True"
    return int(hits), folder


def programs(folder: Path) -> set[str]:
    return {path.name.split("-")[0] for path in folder.rglob("*") if path.is_file()}


def test_a_second_process_finds_the_programs_of_the_first(tmp_path):
    assert in_new_process(GPCLF_CACHE=str(tmp_path)) == (0, "None")
    ours = programs(tmp_path)
    assert "jit__survey" in ours
    assert "jit__lambda" not in ours  # what the user compiles is not ours to keep
    hits, _ = in_new_process(collecting=False, GPCLF_CACHE=str(tmp_path))
    assert hits >= len(ours)


def test_a_program_is_passed_on_whole_or_not_at_all(tmp_path, monkeypatch):
    monkeypatch.setenv("GPCLF_CACHE", str(tmp_path))
    own = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", None)
    try:

        @compilation.compiled_once
        def compiling():
            written = Path(jax.config.jax_compilation_cache_dir or "") / "program"
            with written.open("wb") as file:
                file.write(b"half")
                file.flush()
                assert not list(tmp_path.glob("*/program"))
                file.write(b" and half")

        compiling()
        (passed_on,) = tmp_path.glob("*/program")
        assert passed_on.read_bytes() == b"half and half"
        compilation.folder.cache_clear()  # as another process
        other = compilation.folder(str(tmp_path))
        assert (other / "program").read_bytes() == b"half and half"
    finally:
        jax.config.update("jax_compilation_cache_dir", own)
        compilation.folder.cache_clear()


def test_nothing_is_passed_on_while_a_thread_compiles(tmp_path):
    own, done = tmp_path / "process-own", threading.Event()
    own.mkdir()
    (own / "program").write_bytes(b"half")
    thread = compilation.beside(done.wait)
    compilation._pass_on(own)
    assert not (tmp_path / "program").exists()
    done.set()
    thread.join()
    compilation._remove(own, os.getpid())  # at the end of the process
    assert (tmp_path / "program").exists()
    assert not own.exists()


def test_what_crashes_left_behind_goes_after_a_while(tmp_path):
    made = compilation.folder(str(tmp_path)).parent
    old, new = made / "process-old", made / "process-new"
    for path in (old, new):
        path.mkdir()
        (path / "program").touch()
    os.utime(old, (0, 0))
    compilation._make_room(made)
    assert not old.exists()
    assert new.exists()


def test_a_process_that_ends_meanwhile_is_no_trouble(tmp_path, monkeypatch):
    made = compilation.folder(str(tmp_path)).parent
    gone = made / "process-gone"
    listed = [*made.iterdir(), gone]  # as it was when another process had its folder still
    monkeypatch.setattr(Path, "iterdir", lambda path: iter(listed))
    compilation._make_room(made)
    assert listed[0].is_dir()


def test_a_disk_that_is_full_loses_no_result(tmp_path, monkeypatch):
    own = tmp_path / "process-own"
    own.mkdir()
    (own / "program").touch()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "link", full)
    with pytest.warns(UserWarning, match="not kept for later: .*No space left"):
        compilation._pass_on(own)
    assert not (tmp_path / "program").exists()


def test_a_cache_of_the_users_is_used_instead(tmp_path):
    own, ours = tmp_path / "own", tmp_path / "ours"
    _, folder = in_new_process(
        GPCLF_CACHE=str(ours),
        JAX_COMPILATION_CACHE_DIR=str(own),
        JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0",
    )
    assert folder == str(own)
    assert "jit__survey" in programs(own)
    assert not programs(ours)


def test_off_keeps_nothing(tmp_path):
    in_new_process(GPCLF_CACHE="off", XDG_CACHE_HOME=str(tmp_path), HOME=str(tmp_path))
    assert not programs(tmp_path)


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.warns(UserWarning, match="GPCLF_CACHE=.*file cannot be used"):
        assert compilation.folder(str(tmp_path / "file")) is None


def test_old_programs_make_room(tmp_path, monkeypatch):
    monkeypatch.setattr(compilation, "MOST_BYTES", 250)
    made = compilation.folder(str(tmp_path)).parent
    for age, name in enumerate("abcd"):
        path = made / name
        path.write_bytes(bytes(100))
        os.utime(path, (age, age))
    compilation._make_room(made)
    assert sorted(path.name for path in made.iterdir() if path.is_file()) == ["c", "d"]


def test_settings_come_back_only_when_the_last_thread_leaves(tmp_path, monkeypatch):
    monkeypatch.setenv("GPCLF_CACHE", str(tmp_path))
    own = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", None)
    try:
        meet, seen = threading.Barrier(2, timeout=30), []

        @compilation.compiled_once
        def first():
            meet.wait()  # both are inside
            meet.wait()  # the other has left
            seen.append(jax.config.jax_compilation_cache_dir)

        @compilation.compiled_once
        def second():
            meet.wait()

        thread = threading.Thread(target=first)
        thread.start()
        second()
        meet.wait()
        thread.join()
        assert seen == [str(compilation.folder(str(tmp_path)))]
        assert jax.config.jax_compilation_cache_dir is None
    finally:
        jax.config.update("jax_compilation_cache_dir", own)


STOPPED = """
import numpy as np, gpclf
def stop(snapshot):
    raise RuntimeError("enough")
X = np.random.default_rng(0).normal(size=(200, 5))
gpclf.GPClassifier("robust-max", n_inducing=20, callback=stop).fit(X, np.arange(200) % 10)
"""


def test_a_fit_that_is_stopped_while_programs_are_compiled_beside_it_ends_in_peace():
    done = subprocess.run(
        [sys.executable, "-c", STOPPED],
        env={**os.environ, "GPCLF_CACHE": "off"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stderr  # a crash has a signal's number
    assert done.stderr.endswith("RuntimeError: enough\n")


def test_programs_in_memory_are_given_back_before_there_are_too_many(monkeypatch):
    monkeypatch.setattr(compilation, "MOST_PROGRAMS", 25)
    random, seen = np.random.default_rng(0), []
    for rows in range(70, 76):  # six shapes
        X = random.normal(size=(rows, 2))
        clf = GPClassifier(n_inducing=5, max_epochs=2, random_state=0).fit(X, np.arange(rows) % 2)
        before = clf.predict_proba(X)
        seen.append(compilation.in_memory())
        np.testing.assert_array_equal(clf.predict_proba(X), before)
    assert max(seen) < 50
    assert np.any(np.diff(seen) < 0)  # else the test says nothing
