"""Fits from Parquet: time and memory of 1,000,000 and 10,000,000 rows of 20 columns, M = 200.

Each fit is a process of its own, whose resident memory is watched: above `--limit` it is ended.
Resident memory and not address space (`prlimit --as`), of which JAX reserves more than it uses.
Asked of 10 times as many rows: at most 12 times the time, peak memory within 10 %, and a test NLL
that is no worse by more than two standard errors.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from datasets import add_data_option
from make_flights import LABEL, make

MOST_TIMES, MOST_MEMORY = 12.0, 1.1
POLL = 0.1  # seconds


def fit(training: Path, test: Path, n_inducing: int) -> dict:
    """In this process: seconds of the fit, the scores of the test rows, memory."""
    import resource

    from gpclf import GPClassifier, ParquetTable

    start = time.perf_counter()
    clf = GPClassifier(n_inducing=n_inducing, random_state=0)
    clf.fit(ParquetTable(training, label=LABEL))
    seconds = time.perf_counter() - start
    used = resource.getrusage(resource.RUSAGE_SELF)
    import pyarrow.parquet

    rows = pyarrow.parquet.read_table(test)
    y = np.searchsorted(clf.classes_, rows[LABEL].to_numpy())
    logs = clf.predict_log_proba(rows.drop_columns([LABEL]))
    nll = -logs[np.arange(len(y)), y]
    return {
        "rows": clf.n_samples_seen_,
        "seconds": seconds,
        "cpu_seconds": used.ru_utime + used.ru_stime,
        "peak_mb": used.ru_maxrss / 1024,
        "nll": float(nll.mean()),
        "nll_error": float(nll.std() / np.sqrt(len(nll))),
        "error": float(np.mean(np.argmax(logs, axis=1) != y)),
        "elbo": clf.elbo_,
        "stopped": clf.stopped_,
    }


def watched(command: list[str], limit: float) -> dict:
    """What a process prints; it is ended where its resident memory is above so many MB."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        status = Path(f"/proc/{process.pid}/status")
        while process.poll() is None:
            lines = status.read_text().splitlines() if status.exists() else []
            now = next((int(line.split()[1]) / 1024 for line in lines if "VmRSS" in line), 0.0)
            if now > limit:
                process.kill()
                raise SystemExit(f"The fit needed more than {limit:,.0f} MB.")
            time.sleep(POLL)
        assert process.stdout is not None
        printed = process.stdout.read()
    if process.returncode:
        raise SystemExit(f"The fit ended with code {process.returncode}.")
    return json.loads(printed.splitlines()[-1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    add_data_option(parser)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--n-inducing", type=int, default=200)
    parser.add_argument("--folder", type=Path, default=Path("build/flights"))
    parser.add_argument("--limit", type=float, default=1536.0, help="MB of resident memory")
    parser.add_argument("--one", type=Path, nargs=2, help="fit one table in this process")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(fit(*options.one, options.n_inducing)))
        return 0
    found = []
    for n_rows in options.rows:
        paths = make(options.folder, n_rows, options.data)
        command = [sys.executable, __file__, "--n-inducing", str(options.n_inducing), "--one"]
        found.append(watched([*command, *map(str, paths)], options.limit))
        print(json.dumps(found[-1]), flush=True)
    print("\n| rows | seconds | of processors | peak MB | test NLL | error |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    for one in found:
        print(
            f"| {one['rows']:,} | {one['seconds']:.1f} | {one['cpu_seconds']:.1f} | "
            f"{one['peak_mb']:.0f} | {one['nll']:.4f} ± {one['nll_error']:.4f} | "
            f"{one['error']:.4f} |"
        )
    first, last = found[0], found[-1]
    more = last["rows"] / first["rows"]
    times, memory = last["seconds"] / first["seconds"], last["peak_mb"] / first["peak_mb"]
    print(f"\n{more:.0f} times the rows: {times:.2f} times the time, {memory:.3f} of the memory")
    as_good = last["nll"] <= first["nll"] + 2 * last["nll_error"]
    met = times <= MOST_TIMES * more / 10 and memory <= MOST_MEMORY and as_good
    print("met" if met else "not met")
    return int(not met)


if __name__ == "__main__":
    sys.exit(main())
