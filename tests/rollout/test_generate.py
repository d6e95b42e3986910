"""The step on the real tiny policy: what it writes, resumes, leaves out and gives up."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from components.core.errors import UserError
from components.core.store import Pointer
from components.policy_update.rollout_io import read_samples
from components.rollout import generate, journal
from components.rollout.engine import Completion, Engine, Request, Sampling
from components.rollout.transformers_engine import TransformersEngine
from tests.rollout.conftest import Configure
from tests.rollout.scripted import PROBLEMS, ScriptedEngine, World


class Killed(BaseException):
    """Nothing catches it, as nothing catches SIGKILL."""


def kill_after(monkeypatch: pytest.MonkeyPatch, answers: int) -> list[Request]:
    """The step dies with that many answers; returns what the engine is asked for, all told."""
    asked: list[Request] = []
    whole = TransformersEngine.stream

    def stream(
        self: TransformersEngine, queue: deque[Request], sampling: Sampling, deadline: float
    ) -> Iterator[tuple[Request, Completion]]:
        asked.extend(queue)
        for number, answer in enumerate(whole(self, queue, sampling, deadline), start=1):
            yield answer
            if number == answers:
                raise Killed

    monkeypatch.setattr(TransformersEngine, "stream", stream)
    return asked


def without_seconds(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


def close(rows: list[dict[str, Any]], others: list[dict[str, Any]]) -> None:
    """Equal but for the last digits of the log-probs."""
    for row, other in zip(without_seconds(rows), without_seconds(others), strict=True):
        assert row.pop("rollout_logprobs") == pytest.approx(other.pop("rollout_logprobs"), abs=1e-5)
        assert row == other


@pytest.mark.parametrize("mode", ["single", "refine", "solver_judge", "debate"])
def test_a_seed_gives_the_same_rows_again_and_another_seed_others(
    configure: Configure, mode: str, tmp_path: Path
) -> None:
    def rows(folder: str, seed: int) -> list[dict[str, Any]]:
        world = World(configure(f"rollout.mode={mode}", f"store={tmp_path / folder}", "context_length=2000"))
        other = world.config.model_copy(update={"seed": seed})
        return without_seconds(world.rows(world.rollout(other)))

    first = rows("one", 0)
    assert {row["role"] for row in first} > {"solver"} or mode == "single"
    assert first == rows("two", 0)
    changed = rows("three", 1)
    assert [row["response_ids"] for row in changed] != [row["response_ids"] for row in first]
    samples = {(row["problem_id"], row["sample_id"]): row["response_ids"] for row in first if row["turn"] == 0}
    assert len({tuple(ids) for ids in samples.values()}) == len(samples) == 8


@pytest.mark.parametrize("mode", ["single", "solver_judge"])
@pytest.mark.parametrize("exact", [False, True])
def test_killed_in_the_middle_of_a_shard_the_rest_is_sampled_and_the_rows_are_the_same(
    configure: Configure, monkeypatch: pytest.MonkeyPatch, mode: str, exact: bool, tmp_path: Path
) -> None:
    monkeypatch.setattr(journal, "_ROWS", 1)
    overrides = [f"rollout.mode={mode}", f"rollout.exact_resume={exact}", "context_length=2000"]
    overrides.append("rollout.chunk_prompts=3")
    whole = World(configure(*overrides, f"store={tmp_path / 'whole'}"))
    expected = whole.rows(whole.rollout())

    world = World(configure(*overrides))
    done = 4 if mode == "single" else 2 * 3 * 4 + 4
    with monkeypatch.context() as patch:
        kill_after(patch, done)
        with pytest.raises(Killed):
            world.rollout()
    with monkeypatch.context() as patch:
        asked = kill_after(patch, -1)
        pointer = world.rollout()
    rows = world.rows(pointer)
    # Of the first batch only what was missing, unless it is sampled again as a whole; then the second batch.
    assert len(asked) == {"single": (2 + 2, 6 + 2), "solver_judge": (4 * (2 + 2), 4 * (6 + 2))}[mode][exact]
    if exact:
        assert without_seconds(rows) == without_seconds(expected)
    else:
        close(rows, expected)
    left = [name for name in world.store.list(world.store.rel(pointer.uri)) if "partial" in name]
    assert left == []
    assert world.rollout() == pointer  # complete: nothing is sampled again


def test_turns_that_there_was_no_room_for_are_counted_once_whether_killed_or_not(
    configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "_ROWS", 1)
    overrides = ["rollout.mode=solver_judge", "rollout.mode_options={candidates: 2}", "rollout.chunk_prompts=3"]
    world = World(configure(*overrides, "data.max_prompt_length=200", "context_length=240"))
    with monkeypatch.context() as patch:
        kill_after(patch, 8)
        with pytest.raises(Killed):
            world.rollout()
    pointer = world.rollout()
    assert {row["role"] for row in world.rows(pointer)} == {"solver"}
    assert pointer.extra["metrics"]["turns/too_long"] == 2 * len(PROBLEMS)  # the judge of every sample


def test_a_prompt_that_is_too_long_is_named_and_counted_and_the_others_are_answered(
    configure: Configure, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    long = PROBLEMS[2].problem_id
    problems = [replace(p, question="x" * 700) if p.problem_id == long else p for p in PROBLEMS]
    monkeypatch.setattr("tests.rollout.scripted.PROBLEMS", problems)
    world = World(configure())
    pointer = world.rollout()
    assert pointer.extra["metrics"]["prompts/too_long"] == 1
    assert {row["problem_id"] for row in world.rows(pointer)} == {p.problem_id for p in PROBLEMS} - {long}
    said = "1 of 4 problems are left out: their prompt is longer than data.max_prompt_length=600"
    assert f"{said}: {long}" in capsys.readouterr().out


def test_where_no_prompt_fits_the_step_ends_well_with_no_row(
    configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(configure("data.max_prompt_length=16"))
    pointer = world.rollout()
    assert pointer.rows == 0
    assert pointer.extra["metrics"]["prompts/too_long"] == len(PROBLEMS)
    with pytest.raises(UserError, match=r"no prompt fits\. Raise data\.max_prompt_length"):
        read_samples([(world.store.fetch(pointer), world.store.fetch(pointer))])


def scripted(monkeypatch: pytest.MonkeyPatch, engine: Engine) -> None:
    monkeypatch.setattr(generate, "load_engine", lambda *arguments: engine)


@pytest.mark.parametrize("continuous", [True, False])
def test_what_is_not_done_within_the_wall_limit_is_unfinished(
    world: World, configure: Configure, monkeypatch: pytest.MonkeyPatch, continuous: bool
) -> None:
    scripted(monkeypatch, ScriptedEngine(lambda messages: "no", continuous, seconds=0.2))
    pointer = world.rollout(configure("rollout.wall_limit_s=0.7"))
    rows = world.rows(pointer)
    cut = [row for row in rows if row["finish_reason"] == "unfinished"]
    assert len(rows) == 8  # every sample has a row
    assert 4 <= len(cut) <= 7
    assert all(row["text"] == "" and row["response_ids"] == [] for row in cut)
    assert pointer.extra["metrics"]["rollout/unfinished"] == len(cut)


def test_a_trajectory_that_is_cut_off_is_unfinished_as_a_whole(
    world: World, configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(monkeypatch, ScriptedEngine(lambda messages: "no", seconds=0.2))
    pointer = world.rollout(
        configure("rollout.wall_limit_s=1.1", "rollout.mode=solver_judge", "rollout.n=1", "context_length=5000")
    )
    rows = world.rows(pointer)
    assert {row["finish_reason"] for row in rows} == {"unfinished"}
    assert any(row["text"] == "no" for row in rows)


def test_a_server_is_refused_in_training(world: World, configure: Configure) -> None:
    with pytest.raises(UserError, match="openai is for evaluation"):
        world.rollout(configure("rollout.engine=openai", "rollout.server.base_url=http://127.0.0.1:9/v1"))


def test_the_pointer_of_a_finished_shard_comes_back_without_an_engine(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    first: Pointer = world.rollout()
    monkeypatch.setattr(generate, "load_engine", lambda *arguments: pytest.fail("loaded"))
    assert world.rollout() == first
