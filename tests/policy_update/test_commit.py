"""What is in the store after a kill, at whatever moment, and after the next try."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from components.core.store import MARKER, LocalStore, Pointer, file_sha256
from components.policy_update import update as update_module
from components.policy_update.job import Job, Outcome, Report
from components.policy_update.launch import launch
from tests.policy_update.helpers import World, make_samples, save_rewards


class Killed(BaseException):
    pass


def kill_at(number: int, patch: pytest.MonkeyPatch) -> None:
    """The store's n-th change, and all after it, do not come about; of a deletion, the half."""
    calls = itertools.count(1)
    put = LocalStore.put

    def killing_put(self: LocalStore, local: Path, rel: str) -> None:
        if next(calls) >= number:
            raise Killed
        put(self, local, rel)

    delete = LocalStore.delete

    def killing_delete(self: LocalStore, rel: str) -> None:
        if next(calls) >= number:
            (Path(self.root) / rel / MARKER).unlink(missing_ok=True)
            raise Killed
        delete(self, rel)

    patch.setattr(LocalStore, "put", killing_put)
    patch.setattr(LocalStore, "delete", killing_delete)


def content(root: Path) -> dict[str, Any]:
    """Every file and its hash; of markers, which hold the time that a step took, the files that they name."""
    return {
        str(path.relative_to(root)): json.loads(path.read_text())["files"] if path.name == MARKER else file_sha256(path)
        for path in root.rglob("*")
        if path.is_file()
    }


def test_killed_at_any_change_of_the_store_and_started_again_it_comes_to_the_same(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = world.config(keep_last=1, adv_estimator="gae")
    first = world.update(config, make_samples())
    rewards = save_rewards(world.store, config, make_samples(seed=1), iteration=1)
    root, before, built = Path(world.store.root), tmp_path / "before", tmp_path / "built"
    shutil.copytree(root, before)
    outcomes: list[Outcome] = []

    def trained_once(job: Job, report: Report, folder: Path) -> Outcome:
        if outcomes:
            shutil.copytree(built, job.output)
        else:
            outcomes.append(launch(job, report, folder))
            shutil.copytree(job.output, built)
        return outcomes[0]

    monkeypatch.setattr(update_module, "launch", trained_once)

    def second() -> Pointer:
        output = str(tmp_path / "second.json")
        return update_module.run(config=config, policy=first, rewards=rewards, stage=1, iteration=1, output=output)

    expected = second()
    expected_content = content(root)
    for number in itertools.count(1):
        shutil.rmtree(root)
        shutil.copytree(before, root)
        with monkeypatch.context() as patch:
            kill_at(number, patch)
            try:
                second()
            except Killed:
                pass
            else:
                break
        # The newest complete policy has its state; the older state goes only after that.
        newest = world.store.complete("runs/run/stage-1/iter-01/policy") or first
        for kind in ("optimizer", "critic"):
            assert world.store.fetch(Pointer(**newest.extra[kind]))
        assert second().sha256 == expected.sha256
        assert content(root) == expected_content
    assert number > 20
