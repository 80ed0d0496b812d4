"""Programs kept on disk: for our own calls, in the user's own folder, or not at all."""

import ast
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import jax
import numpy as np
import pytest

from gpclf import GPClassifier, compilation
from gpclf.compilation import disk, programs
from gpclf.compilation.state import PROCESS

SOURCE = Path(compilation.__file__).parent.parent

# One fit in a new process; prints the programs it found on disk, and the settings afterwards.
FIT = """
import gc, jax, numpy as np, gpclf
hits = []
jax.monitoring.register_event_listener(
    lambda event, **_: hits.append(event) if event.endswith("cache_hits") else None)
def settings():
    return gc.isenabled(), gc.get_freeze_count(), gc.get_threshold(), dict(jax.config.values)
before = settings()
clf = gpclf.GPClassifier("logit", None, 4, inference="natural", max_epochs=2, random_state=0)
clf.fit(np.eye(8), np.arange(8) % 2)
jax.jit(lambda x: x @ x + 1)(np.eye(300)).block_until_ready()  # the user's own
print(len(hits), before == settings())
"""


def in_new_process(**environment):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    kept["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "true"  # sooner done
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", FIT],
        env={**kept, **environment},
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    hits, unchanged = done.stdout.split()
    assert unchanged == "True"
    return int(hits)


def names(folder: Path) -> set[str]:
    return {path.name.split("-")[0] for path in folder.rglob("*") if path.is_file()}


def test_a_second_process_finds_the_programs_of_the_first(tmp_path):
    assert in_new_process(GPCLF_CACHE=str(tmp_path)) == 0
    ours = names(tmp_path)
    assert "jit__gradient_pass" in ours
    assert "jit__lambda" not in ours  # what the user compiles is not ours to keep
    assert in_new_process(GPCLF_CACHE=str(tmp_path)) >= len(ours)


@pytest.fixture
def without_cache(monkeypatch):
    """JAX without the cache that all tests share, and folders of ours that were not made yet."""
    own = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", None)
    monkeypatch.setattr(PROCESS, "folders", {})
    yield
    jax.config.update("jax_compilation_cache_dir", own)


def test_a_program_is_passed_on_whole_or_not_at_all(tmp_path, monkeypatch, without_cache):
    monkeypatch.setenv("GPCLF_CACHE", str(tmp_path))

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
    PROCESS.folders.clear()  # as another process
    other = disk.folder(str(tmp_path))
    assert (other / "program").read_bytes() == b"half and half"


def test_nothing_is_passed_on_while_a_thread_compiles(tmp_path):
    own, done = tmp_path / "process-own", threading.Event()
    own.mkdir()
    (own / "program").write_bytes(b"half")
    thread = compilation.in_background(done.wait)
    disk.pass_on(own)
    assert not (tmp_path / "program").exists()
    done.set()
    thread.join()
    disk.remove(own, os.getpid())  # at the end of the process
    assert (tmp_path / "program").exists()
    assert not own.exists()


def test_what_crashes_left_behind_goes_after_a_while(tmp_path):
    made = disk.folder(str(tmp_path)).parent
    old, new = made / "process-old", made / "process-new"
    for path in (old, new):
        path.mkdir()
        (path / "program").touch()
    os.utime(old, (0, 0))
    disk.make_room(made)
    assert not old.exists()
    assert new.exists()


def test_a_process_that_ends_meanwhile_is_no_trouble(tmp_path, monkeypatch):
    made = disk.folder(str(tmp_path)).parent
    gone = made / "process-gone"
    listed = [*made.iterdir(), gone]  # as it was when another process had its folder still
    monkeypatch.setattr(Path, "iterdir", lambda path: iter(listed))
    disk.make_room(made)
    assert listed[0].is_dir()


def test_a_disk_that_is_full_loses_no_result(tmp_path, monkeypatch):
    own = tmp_path / "process-own"
    own.mkdir()
    (own / "program").touch()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "link", full)
    with pytest.warns(UserWarning, match="not kept for later: .*No space left"):
        disk.pass_on(own)
    assert not (tmp_path / "program").exists()


@compilation.compiled_once
def folder_in_a_call() -> str | None:
    return jax.config.jax_compilation_cache_dir


def test_a_cache_of_the_users_is_used_instead(tmp_path, monkeypatch, without_cache):
    own, ours = tmp_path / "own", tmp_path / "ours"
    monkeypatch.setenv("GPCLF_CACHE", str(ours))
    assert Path(folder_in_a_call() or "").is_relative_to(ours)
    jax.config.update("jax_compilation_cache_dir", str(own))
    assert folder_in_a_call() == jax.config.jax_compilation_cache_dir == str(own)


def test_off_keeps_nothing(tmp_path, monkeypatch, without_cache):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("GPCLF_CACHE", raising=False)
    assert Path(folder_in_a_call() or "").is_relative_to(tmp_path)
    monkeypatch.setenv("GPCLF_CACHE", "off")
    assert folder_in_a_call() is None


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.warns(UserWarning, match="GPCLF_CACHE=.*file cannot be used"):
        assert disk.folder(str(tmp_path / "file")) is None


def test_old_programs_make_room(tmp_path, monkeypatch):
    monkeypatch.setattr(disk, "MOST_BYTES", 250)
    made = disk.folder(str(tmp_path)).parent
    for age, name in enumerate("abcd"):
        path = made / name
        path.write_bytes(bytes(100))
        os.utime(path, (age, age))
    disk.make_room(made)
    assert sorted(path.name for path in made.iterdir() if path.is_file()) == ["c", "d"]


def test_settings_come_back_only_when_the_last_thread_leaves(tmp_path, monkeypatch, without_cache):
    monkeypatch.setenv("GPCLF_CACHE", str(tmp_path))
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
    assert seen == [str(disk.folder(str(tmp_path)))]
    assert jax.config.jax_compilation_cache_dir is None


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
    monkeypatch.setattr(programs, "MOST_PROGRAMS", 15)
    random, seen = np.random.default_rng(0), []
    for rows in (70, 140, 220):  # chunks of 128, 192 and 256 rows: some seven programs each
        X = random.normal(size=(rows, 2))
        clf = GPClassifier(n_inducing=5, max_epochs=2, random_state=0, inference="natural")
        clf.fit(X, np.arange(rows) % 2)
        before = clf.predict_proba(X)
        seen.append(compilation.in_memory())
        np.testing.assert_array_equal(clf.predict_proba(X), before)
    assert max(seen) < 30
    assert np.any(np.diff(seen) < 0)  # else the test says nothing


IMPORT = """
import gc, os, threading, warnings
import equinox, jax, sklearn.base  # what these change is not ours
def process():
    tasks = "/proc/self/task"
    threads = len(os.listdir(tasks)) if os.path.isdir(tasks) else threading.active_count()
    collector = gc.isenabled(), gc.get_freeze_count(), gc.get_threshold()
    return collector, dict(jax.config.values), list(warnings.filters), threads, dict(os.environ)
before = process()
import gpclf
for was, after in zip(before, process()):
    assert was == after, (was, after)
"""


def test_nothing_happens_at_import_but_imports():
    tree = ast.parse((SOURCE / "__init__.py").read_text())
    for node in tree.body[1:]:  # after the docstring
        assert isinstance(node, ast.Import | ast.ImportFrom | ast.Assign), ast.unparse(node)
    for path in SOURCE.rglob("*.py"):  # the collector of garbage is the user's
        assert not re.search(r"^\s*(import|from) gc\b", path.read_text(), re.MULTILINE), path.name


def test_importing_changes_nothing_in_the_process():
    done = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def unasked(monkeypatch):
    """A process in which XLA has not yet been asked for its options."""
    monkeypatch.setattr(PROCESS, "accepted", {})
    monkeypatch.setattr(PROCESS, "programs", [])


def shifted(x):
    return 2 * x + 1


@pytest.mark.usefixtures("unasked")
def test_an_option_that_xla_does_not_have_is_left_out_and_the_others_are_not():
    options = {"xla_no_such_option": False, **compilation.PLAIN}
    one, other = compilation.program(shifted, options), compilation.program(np.sin, options)
    for x in (np.arange(3.0), np.arange(4.0)):
        np.testing.assert_array_equal(one(x), shifted(x))
    assert one._compiled.options == compilation.PLAIN
    assert PROCESS.accepted == {name: name in compilation.PLAIN for name in options}
    assert other._build(None).options == compilation.PLAIN  # asked once is enough
    assert compilation.in_memory() == 2


@pytest.mark.usefixtures("unasked")
def test_a_failure_of_the_program_itself_is_not_taken_for_one_of_its_options():
    def failing(x):
        def fail(_):
            calls.append(1)
            raise ValueError("no number today")

        return jax.pure_callback(fail, jax.ShapeDtypeStruct((), np.float32), x)

    calls = []
    with pytest.raises(jax.errors.JaxRuntimeError, match="no number today"):
        jax.block_until_ready(compilation.program(failing)(1.0))
    assert len(calls) == 1
    assert False not in PROCESS.accepted.values()


@pytest.mark.usefixtures("unasked")
def test_options_chosen_on_processors_are_not_asked_for_elsewhere(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    made = compilation.program(shifted, compilation.PLAIN)
    assert made(1.0) == 3.0
    assert made._compiled.options == {}


def test_nothing_process_wide_is_kept_outside_the_one_object():
    """No `global`, no cache of a function and no list or dictionary of a module's own."""
    for path in sorted((SOURCE / "compilation").glob("*.py")):
        tree = ast.parse(path.read_text())
        assert not [node for node in ast.walk(tree) if isinstance(node, ast.Global)]
        for node in tree.body:
            kept = ast.unparse(node.value) if isinstance(node, ast.Assign | ast.AnnAssign) else ""
            constant = re.match(r"[A-Z_]+\b", ast.unparse(node)) or "__all__" in ast.unparse(node)
            assert constant or not re.match(r"\[|\{|dict|list|set", kept), f"{path.name}: {kept}"
            assert "@cache" not in ast.unparse(node), path.name
