"""A rollout mode that shows which steps run at the same time."""

from __future__ import annotations

import os
import time
from pathlib import Path

from components.rollout.trajectory import Ask, Case, Steps


def first_rewarded(case: Case, *, run: str, limit_s: float = 240.0) -> Steps:
    """Only the first shard may end by itself; every other waits until a shard has its rewards.

    Args:
        case: the sample.
        run: the run's folder.
        limit_s: seconds after which no shard has.
    """
    yield Ask("solver", case.messages)
    claim, me = Path(run) / "first", str(os.getpid())
    try:
        with open(claim, "x") as file:
            file.write(me)
    except FileExistsError:
        pass
    deadline = time.monotonic() + limit_s
    while claim.read_text() != me and not list(Path(run).glob("stage-*/iter-*/reward/*/_COMPLETE")):
        if time.monotonic() > deadline:
            raise TimeoutError("no shard was graded while this one was still generating")
        time.sleep(0.1)
