"""How many cores this process may use: its affinity, cut by the quota of its control group, as in a pod."""

from __future__ import annotations

import math
import os
from pathlib import Path


def _quota(root: Path) -> float:
    """Cores by the control group's quota (version 2, then 1); infinity without one."""
    try:
        quota, period = (root / "cpu.max").read_text(encoding="ascii").split()
        return math.inf if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError):
        pass
    try:
        old_quota = int((root / "cpu" / "cpu.cfs_quota_us").read_text(encoding="ascii"))
        old_period = int((root / "cpu" / "cpu.cfs_period_us").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return math.inf
    return old_quota / old_period if old_quota > 0 else math.inf


def available_cores(root: Path = Path("/sys/fs/cgroup")) -> int:
    """At least 1."""
    return max(1, math.floor(min(len(os.sched_getaffinity(0)), _quota(root))))
