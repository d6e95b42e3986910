"""What the ranks of other processes or pods say, read from the folder that they share with the step."""

from __future__ import annotations

import json
from pathlib import Path

from components.core.errors import UserError
from components.policy_update.job import Report


class Relay:
    """Passes on what rank 0 writes to `events.jsonl`; ranks that start again repeat themselves, the relay does not."""

    def __init__(self, events: Path, report: Report) -> None:
        events.touch()
        self._events, self._report = events, report
        self._position = 0
        self._seen: set[tuple[object, ...]] = set()

    def pass_on(self) -> None:
        """Hand over what is new; a line that is still being written waits for the next call."""
        with open(self._events, "rb") as file:
            file.seek(self._position)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._position += len(line)
                self._hand_over(json.loads(line))

    def _hand_over(self, event: dict) -> None:
        key = (event["event"], event.get("x"), *sorted(event.get("metrics", ())))
        if key in self._seen:
            return
        self._seen.add(key)
        if event["event"] == "ready":
            self._report.ready()
        else:
            self._report.log_curve(event["metrics"], event["x"])


def rank_error(folder: Path) -> Exception | None:
    """What the first rank to fail said, None if none said anything; the others only lost their peer."""
    reports = sorted(folder.glob("error-*.json"), key=lambda path: path.stat().st_mtime_ns)
    messages = [json.loads(path.read_text()) for path in reports]
    for message in messages:
        if message["known"]:
            return UserError(message["text"])
    if not messages:
        return None
    return RuntimeError(f"rank {messages[0]['rank']} of the update failed:\n{messages[0]['text']}")
