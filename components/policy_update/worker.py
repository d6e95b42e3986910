"""One rank of an update whose ranks are processes: `torchrun -m components.policy_update.worker JOB.json`."""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path

import torch.distributed

from components.core.errors import UserError
from components.policy_update.heartbeat import ALIVE, end_without
from components.policy_update.job import Job


class _EventFile:
    """Tells the step's process what happens, a JSON line each."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def _write(self, event: dict[str, object]) -> None:
        with open(self._path, "a") as file:
            file.write(json.dumps(event) + "\n")

    def ready(self) -> None:
        self._write({"event": "ready"})

    def log_curve(self, metrics: dict[str, float], x: int) -> None:
        self._write({"event": "curve", "metrics": metrics, "x": x})


def main(path: Path) -> None:
    """Run the job's rank; on an error leave its message beside the job."""
    rank = int(os.environ["RANK"])
    alive = path.with_name(ALIVE)
    if alive.exists():
        end_without(alive)
    path.with_name(f"error-{rank}.json").unlink(missing_ok=True)  # of a try before pods were preempted
    try:
        from components.policy_update.train import train

        outcome = train(Job.read(path), _EventFile(path.with_name("events.jsonl")))
    except Exception as error:
        known = isinstance(error, UserError)
        message = {"rank": rank, "known": known, "text": str(error) if known else traceback.format_exc()}
        path.with_name(f"error-{rank}.json").write_text(json.dumps(message))
        if known:
            sys.exit(1)  # the step's process shows the message; a traceback would bury it
        raise
    if rank == 0:
        path.with_name("outcome.json").write_text(outcome.to_json())
    torch.distributed.barrier()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    sys.stdout.flush()
    sys.stderr.flush()
    # Not by the interpreter's own way out: it takes gloo's groups apart under their running threads, which now and then
    # aborts a rank that has done all its work.
    os._exit(0)
