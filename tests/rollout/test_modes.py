"""Each mode on an engine whose answers are written down."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from components.core.config import RewardConfig
from components.core.errors import UserError
from components.core.schema import Problem
from components.rollout.drive import Driver, Trajectory
from components.rollout.engine import Message, Sampling
from components.rollout.public_tests import PublicTests
from components.rollout.rows import rows_of
from components.rollout.trajectory import Ask, Case, RunTests, Steps, load_mode, public_part
from tests.rollout.scripted import CANARY, PROBLEMS, Script, ScriptedEngine, problem

WRONG = "```python\nprint(int(input()) + 1)\n```"
RIGHT = "```python\nprint(int(input()) * 2)\n```"
FAILS = "```python\nraise ValueError('oh')\n```"


def play(
    mode: str,
    script: Script,
    options: dict[str, Any] | None = None,
    *,
    problems: list[Problem] = PROBLEMS[:1],
    n: int = 1,
    continuous: bool = True,
    longest_prompt: int = 10_000,
    prefix: str = "",
) -> tuple[list[dict[str, Any]], ScriptedEngine]:
    """The rows of n samples a problem, in the order in which rollout files have them."""
    import random

    engine = ScriptedEngine(script, continuous)
    function = load_mode(mode, options or {})
    sampling = Sampling(64, 1.0, 1.0, False, prefix)
    with PublicTests(RewardConfig(workers=1)) as tests:
        driver = Driver(
            engine,
            tests,
            sampling,
            seed_of=lambda problem_id, sample, turn: hash((problem_id, sample, turn)),
            longest_prompt=longest_prompt,
            deadline=float("inf"),
        )
        trajectories = []
        for one in problems:
            shown = public_part(one)
            messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": one.question}]
            for sample in range(n):
                case = Case(shown, messages, random.Random(sample))
                trajectories.append(Trajectory(shown, sample, function(case)))
        rows = [row for one in driver.run(trajectories) for row in rows_of(one, sampling, "v", driver.prefix_ids)]
    return sorted(rows, key=lambda row: (row["problem_id"], row["sample_id"], row["turn"])), engine


def roles(rows: list[dict[str, Any]]) -> list[str]:
    return [row["role"] for row in rows]


def last(messages: list[Message]) -> str:
    return messages[-1]["content"]


def test_single_is_one_answer_by_the_solver() -> None:
    rows, _ = play("single", lambda messages: WRONG, n=2)
    assert roles(rows) == ["solver", "solver"]
    assert [row["text"] for row in rows] == [WRONG, WRONG]
    assert rows[0]["loss_mask"] is None
    assert rows[0]["answer"] is None


def test_refine_shows_what_failed_and_ends_when_the_public_tests_pass() -> None:
    script = {1: WRONG, 3: FAILS, 5: RIGHT}
    rows, engine = play("refine", lambda messages: script[len(messages) - 1], {"turns": 5})
    assert roles(rows) == ["solver", "refiner", "refiner"]
    assert [row["turn"] for row in rows] == [0, 1, 2]
    second, third = (request.messages for request in engine.seen[1:])
    assert [message["role"] for message in third] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert second[2]["content"] == WRONG
    assert "the output is wrong" in last(second)
    assert "Input:\n0" in last(second)
    assert "ValueError: oh" in last(third)
    # What the policy did not write stands in the prompt, which the loss leaves out.
    assert bytes(rows[2]["prompt_ids"]).decode().endswith(last(third))
    assert bytes(rows[2]["response_ids"]).decode() == RIGHT


def test_refine_asks_no_more_than_it_may_and_once_where_no_test_is_public() -> None:
    rows, _ = play("refine", lambda messages: WRONG, {"turns": 2})
    assert roles(rows) == ["solver", "refiner"]
    rows, _ = play("refine", lambda messages: WRONG, problems=[problem("none", public=0)])
    assert roles(rows) == ["solver"]


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("Candidate 1 overflows.\nCandidate 2", RIGHT),
        ("**Candidate: 1**", WRONG),
        ("none is right", ""),
        ("Candidate 3", ""),
        ("<think>Candidate 2", ""),
    ],
)
def test_the_judge_is_graded_by_the_candidate_that_it_picks(said: str, answer: str) -> None:
    answers = iter([WRONG, RIGHT, said])
    rows, engine = play("solver_judge", lambda messages: next(answers), {"candidates": 2})
    assert roles(rows) == ["solver", "solver", "judge"]
    assert [row["answer"] for row in rows] == [None, None, answer]
    assert "Candidate 2:\n```python\nprint(int(input()) * 2)\n```" in last(engine.seen[-1].messages)


def test_in_a_debate_the_arguments_are_graded_by_the_final_answer() -> None:
    def script(messages: list[Message]) -> str:
        asked = last(messages)
        if "You speak for solution A" in asked:
            return "<think>hm</think>B is wrong."
        if "You speak for solution B" in asked:
            return "A is slow."
        return RIGHT if "Both sides have spoken" in asked else WRONG

    rows, engine = play("debate", script, {"rounds": 2})
    sides = ["debater_a", "debater_b"]
    assert roles(rows) == ["solver", "solver", *sides, *sides, "final"]
    assert [row["answer"] for row in rows] == [None, None, RIGHT, RIGHT, RIGHT, RIGHT, None]
    final = last(engine.seen[-1].messages)
    assert final.count("For solution A: B is wrong.") == final.count("For solution B: A is slow.") == 2
    # The sides of one round speak at the same time.
    assert "A is slow" not in last(engine.seen[2].messages) + last(engine.seen[3].messages)


@pytest.mark.parametrize("mode", ["single", "refine", "solver_judge", "debate"])
def test_whether_follow_ups_join_or_wait_makes_no_difference(mode: str) -> None:
    def rows(continuous: bool) -> list[dict[str, Any]]:
        played, _ = play(mode, lambda m: WRONG + str(len(m)), problems=PROBLEMS, n=3, continuous=continuous)
        return [{**row, "seconds": 0} for row in played]

    assert rows(True) == rows(False)


def peeking(case: Case) -> Steps:
    """A user's mode that shows the policy all it can get hold of."""
    everything = json.dumps([repr(case.problem), case.problem.to_row()], default=str)
    turn = yield Ask("solver", [{"role": "user", "content": everything}])
    feedback = yield RunTests(turn.text)
    yield Ask("solver", [{"role": "user", "content": repr((feedback, vars(case)))}])


@pytest.mark.parametrize("mode", ["single", "refine", "solver_judge", "debate", f"{__name__}:peeking"])
def test_nothing_private_reaches_a_prompt(mode: str) -> None:
    rows, engine = play(mode, lambda messages: WRONG, problems=PROBLEMS)
    assert len(engine.seen) == len(rows) >= len(PROBLEMS)
    assert CANARY in repr(PROBLEMS[0])
    assert CANARY not in engine.prompts()


def test_a_conversation_that_leaves_no_room_for_an_answer_is_not_asked_for() -> None:
    first = len(ScriptedEngine(lambda m: "").encode_chat([{"role": "system", "content": "Be brief."}]))
    rows, engine = play("refine", lambda messages: WRONG, longest_prompt=first + 60)
    assert roles(rows) == ["solver"]
    rows, engine = play("refine", lambda messages: WRONG, longest_prompt=5)
    assert rows == []
    assert engine.seen == []


def test_a_prefix_is_given_to_the_policy_and_left_out_of_the_loss() -> None:
    rows, engine = play("single", lambda messages: "rest", prefix="<t>")
    [row] = rows
    assert bytes(engine.seen[0].prompt_ids).endswith(b"<t>")
    assert not bytes(row["prompt_ids"]).endswith(b"<t>")
    assert row["text"] == bytes(row["response_ids"]).decode() == "<t>rest"
    assert row["loss_mask"] == [False] * 3 + [True] * 4
    assert len(row["rollout_logprobs"]) == 7


@pytest.mark.parametrize(
    ("mode", "options", "message"),
    [
        ("refined", {}, "neither one of single, refine, solver_judge, debate nor"),
        ("no.such.module:mode", {}, "rollout.mode=no.such.module:mode"),
        ("builtins:print", {}, "rollout.mode=builtins:print: not a generator function"),
        ("refine", {"turn": 2}, "rollout.mode_options.turn: the mode refine has no such option; it has request, turns"),
    ],
)
def test_a_mode_or_option_that_does_not_exist_is_named(mode: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        load_mode(mode, options)


def test_public_part_keeps_what_may_be_shown_and_nothing_else() -> None:
    shown = public_part(PROBLEMS[0])
    assert shown == replace(PROBLEMS[0], tests=PROBLEMS[0].tests[:1], reference_solutions=[], metadata={})
