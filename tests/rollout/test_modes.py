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
from components.rollout.trajectory import Ask, Case, RunTests, Steps, code_block, load_mode, public_part
from sandbox import extract_code
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
    longest_answer: int = 64,
    prefix: str = "",
    opening: str = "",
) -> tuple[list[dict[str, Any]], ScriptedEngine]:
    """The rows of n samples a problem, in the order in which rollout files have them."""
    import random

    engine = ScriptedEngine(script, continuous, opening)
    function = load_mode(mode, options or {})
    sampling = Sampling(longest_answer, 1.0, 1.0, False, prefix)
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
        ("Candidate 02", RIGHT),
        ("Candidate 0", ""),
        ("", ""),
        ("Candidate " + "9" * 5000, ""),  # more digits than Python makes an integer of
    ],
)
def test_the_judge_is_graded_by_the_candidate_that_it_picks(said: str, answer: str) -> None:
    answers = iter([WRONG, RIGHT, said])
    rows, engine = play("solver_judge", lambda messages: next(answers), {"candidates": 2}, longest_answer=6000)
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


def test_a_debate_whose_answers_are_all_cut_off_goes_on_without_programs_and_arguments() -> None:
    rows, engine = play("debate", lambda messages: "<think>" + "hm " * 99)
    assert roles(rows) == ["solver", "solver", "debater_a", "debater_b", "final"]
    assert {row["finish_reason"] for row in rows} == {"length"}
    final = last(engine.seen[-1].messages)
    assert final.count("# no program was found") == 2
    assert "hm" not in final  # a thought that was not finished is no argument
    assert [extract_code(row["answer"]) for row in rows[2:4]] == [None, None]


def test_a_debate_without_room_for_an_argument_or_a_final_answer_ends_with_what_there_is() -> None:
    def longest(asked: str) -> int:
        _, engine = play("debate", lambda messages: RIGHT)
        return max(len(request.prompt_ids) for request in engine.seen if last(request.messages).endswith(asked))

    rows, _ = play("debate", lambda messages: RIGHT, longest_prompt=longest(PROBLEMS[0].question))
    assert roles(rows) == ["solver", "solver"]
    # The final answer's prompt is the longest: without it the arguments have led to nothing.
    rows, _ = play("debate", lambda messages: RIGHT, longest_prompt=longest("block.") - 1)
    assert roles(rows) == ["solver", "solver", "debater_a", "debater_b"]
    assert [row["answer"] for row in rows[2:]] == ["", ""]


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


def writing_on(case: Case) -> Steps:
    """A user's mode that keeps one conversation and writes on in it."""
    for question in ("one", "two"):
        case.messages.append({"role": "user", "content": question})
        turn = yield Ask("solver", case.messages)
        case.messages.append({"role": "assistant", "content": turn.text})


def test_a_mode_may_write_on_in_the_conversation_that_it_asked_with() -> None:
    _, engine = play(f"{__name__}:writing_on", lambda messages: f"{len(messages)} messages")
    asked = [[message["content"] for message in request.messages[2:]] for request in engine.seen]
    assert asked == [["one"], ["one", "3 messages", "two"]]
    for request in engine.seen:
        assert request.prompt_ids == engine.encode_chat(request.messages)


def failing(case: Case, *, word: str) -> Steps:
    turn = yield Ask("solver", case.messages)
    raise KeyError(word + turn.text)


def test_a_mode_that_raises_is_told_with_the_sample_that_it_raised_on() -> None:
    with pytest.raises(UserError, match=r"rollout\.mode: KeyError: 'oh', in sample 0 of problem p0, after turn 1"):
        play(f"{__name__}:failing", lambda messages: "h", {"word": "o"})


@pytest.mark.parametrize("mark", ["```", "````", "~~~", "'`'"])
def test_a_program_that_holds_fences_is_shown_whole(mark: str) -> None:
    program = f'text = """\n{mark}\n{mark}python\n"""\nprint(text)'
    assert extract_code(f"Look:\n{code_block(program)}\nThat is it.") == program
    answer = f"~~~~~python\n{program}\n~~~~~"
    for mode in ("solver_judge", "debate"):
        _, engine = play(mode, lambda messages: answer, longest_answer=200)
        assert code_block(program) in last(engine.seen[-1].messages)


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (f"hm\n{WRONG}", None),  # a draft, cut off within the thought
        (f"hm\n{WRONG}\n</think>\n{RIGHT}", "print(int(input()) * 2)"),
    ],
)
def test_a_thought_that_the_chat_template_opens_is_no_answer(said: str, code: str | None) -> None:
    [row], _ = play("single", lambda messages: said, opening="<think>\n", longest_answer=200)
    assert row["text"].count("<think>") == 1
    assert extract_code(row["text"]) == code
    assert bytes(row["response_ids"]).decode() == said  # the tag's tokens are the prompt's


@pytest.mark.parametrize(
    ("mode", "options", "message"),
    [
        ("refined", {}, "neither one of single, refine, solver_judge, debate nor"),
        ("no.such.module:mode", {}, "rollout.mode=no.such.module:mode"),
        ("builtins:print", {}, "rollout.mode=builtins:print: not a generator function"),
        (f"{__name__}:failing", {}, "rollout.mode_options: the mode .*:failing needs the option word"),
        ("refine", {"turn": 2}, "rollout.mode_options.turn: the mode refine has no such option; it has request, turns"),
    ],
)
def test_a_mode_or_option_that_does_not_exist_is_named(mode: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        load_mode(mode, options)


def test_public_part_keeps_what_may_be_shown_and_nothing_else() -> None:
    shown = public_part(PROBLEMS[0])
    assert shown == replace(PROBLEMS[0], tests=PROBLEMS[0].tests[:1], reference_solutions=[], metadata={})
