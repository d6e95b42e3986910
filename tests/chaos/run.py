"""`make chaos`: kill the micro run at random points, resume it, and compare what it made with an undisturbed run.

The local store and S3 behind a proxy that drops, delays and corrupts; SIGKILL to the whole process tree each time.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import psutil
import pyarrow.parquet as pq

from pipelines.compile import local_profile
from tests.chaos.proxy import Faults, Proxy
from tests.chaos.s3_server import CREDENTIALS, S3Server

ROOT = Path(__file__).parents[2]
BAD_NETWORK = Faults(drop=0.02, delay=0.1, corrupt_requests=0.02, corrupt_answers=0.02)
MEASURED = {"seconds", "cpu_ms", "wall_ms"}
"""Columns that hold times: the only ones that may differ between two runs."""


class Run:
    """A micro run whose store is a folder, or S3 behind a bad network."""

    def __init__(self, folder: Path, overrides: list[str], server: S3Server | None = None) -> None:
        self._folder, self._server = folder, server
        self._store = f"s3://bucket/{folder.name}" if server else str(folder / "store")
        tracking = f"tracking_uri=sqlite:///{folder}/mlflow.db"
        self._overrides = [f"store={self._store}", tracking, *overrides]
        _, config = local_profile("micro", self._overrides)
        self.name = config.run
        folder.mkdir(parents=True, exist_ok=True)

    def start(self, endpoint: str = "") -> subprocess.Popen[bytes]:
        """Start, or resume, in a process group of its own."""
        environment = {**os.environ, **CREDENTIALS, "S3_ENDPOINT_URL": endpoint}
        # The tracking server's own uploads are not what is under test.
        environment["MLFLOW_S3_ENDPOINT_URL"] = self._server.url if self._server else ""
        command = [sys.executable, "-m", "pipelines.cli", "run", "--profile", "micro", *self._overrides]
        with open(self._folder / "log.txt", "ab") as log:
            return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True)

    def finish(self, endpoint: str = "", tries: int = 1) -> None:
        """Run to the end; RuntimeError, with the log's last lines, if that takes more than `tries` starts."""
        for _ in range(tries):
            if self.start(endpoint).wait() == 0:
                return
        raise RuntimeError((self._folder / "log.txt").read_text(errors="replace")[-4000:])

    def files(self) -> dict[str, bytes]:
        """Everything in the store below datasets/ and runs/, by its path."""
        if self._server:
            stored = {key.partition("/")[2]: data for key, data in self._server.objects().items()}
        else:
            base = self._folder / "store"
            stored = {
                path.relative_to(base).as_posix(): path.read_bytes() for path in base.rglob("*") if path.is_file()
            }
        return {name: data for name, data in stored.items() if name.startswith(("datasets/", f"runs/{self.name}/"))}


def kill_tree(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL to a process and everything that it started."""
    root = psutil.Process(process.pid)
    root.suspend()  # starts nothing more meanwhile
    for victim in [*root.children(recursive=True), root]:
        with contextlib.suppress(psutil.NoSuchProcess):
            victim.kill()
    process.wait()


def results(files: dict[str, bytes]) -> dict[str, bytes]:
    """What a run made, without the times that it measured.

    Weights, problems and the tensors of the optimizer's state byte for byte; rollouts and rewards as rows without
    MEASURED; of the evaluations and the report the numbers, by way of the rewards that they are computed from.
    """
    made: dict[str, bytes] = {}
    for name, data in files.items():
        if name.startswith("datasets/") and not name.endswith(("/_COMPLETE", "/_KEY")):
            made[name] = data
        elif name.endswith(".parquet") and "/graded/" not in name:
            table = pq.read_table(io.BytesIO(data))
            rows = table.drop_columns([column for column in table.column_names if column in MEASURED]).to_pylist()
            made[name] = json.dumps(rows).encode()
        elif name.endswith(".pt"):
            made[name] = tensors(data)
        elif name.endswith((".safetensors", "state.json")):
            made[name] = data
    return made


def tensors(data: bytes) -> bytes:
    """The values in a file of `torch.save`. What says their shapes is a pickle, and never twice the same."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return b"".join(archive.read(name) for name in archive.namelist() if "/data/" in name)


def disturb(run: Run, kills: int, seed: int, longest_s: float, endpoint: str = "") -> int:
    """Kill and resume; returns how many kills found the run at work. The last start may finish."""
    draw, struck = random.Random(seed), 0
    for _ in range(kills):
        process = run.start(endpoint)
        deadline = time.monotonic() + draw.uniform(0, longest_s)
        while time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.05)
        if process.poll() is None:
            struck += 1
            kill_tree(process)
    return struck


def difference(undisturbed: dict[str, bytes], disturbed: dict[str, bytes]) -> list[str]:
    """The names of results that are missing, extra or different."""
    names = sorted(undisturbed.keys() | disturbed.keys())
    return [name for name in names if undisturbed.get(name) != disturbed.get(name)]


def main() -> int:
    """Exit status 0 if every disturbed run made what the undisturbed one made."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.run", description=__doc__)
    parser.add_argument("--kills", type=int, default=10, help="of each run (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="of the micro profile")
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="deepcoder-chaos-") as name:
        folder = Path(name)
        plain = Run(folder / "plain", options.overrides)
        began = time.monotonic()
        plain.finish()
        took = time.monotonic() - began
        expected = results(plain.files())
        print(f"undisturbed: {len(expected)} results in {took:.0f} s", flush=True)
        with S3Server() as server, Proxy(server.port, BAD_NETWORK, options.seed) as proxy:
            for label, run, endpoint in (
                ("directory", Run(folder / "local", options.overrides), ""),
                ("S3 through a bad network", Run(folder / "s3", options.overrides, server), proxy.url),
            ):
                struck = disturb(run, options.kills, options.seed, 0.6 * took, endpoint)
                run.finish(endpoint, tries=5)
                differs = difference(expected, results(run.files()))
                wrong += len(differs)
                verdict = f"differs in {', '.join(differs[:5])}" if differs else "the same results, byte for byte"
                print(f"{label}: {struck} kills; {verdict}", flush=True)
            faults = ", ".join(f"{count} × {fault}" for fault, count in sorted(proxy.happened.items()))
            print(f"the network's faults: {faults}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
