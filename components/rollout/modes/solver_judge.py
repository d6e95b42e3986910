"""Several candidates, and a judge turn of the same policy that picks one."""

from __future__ import annotations

import re

from components.rollout.trajectory import Ask, Case, Steps, Turn, code_block
from sandbox.extract import answer_part, extract_code

_CHOICE = re.compile(r"candidate\W{0,3}(\d+)", re.IGNORECASE)


def solver_judge(
    case: Case,
    *,
    candidates: int = 4,
    request: str = "Which candidate solves the problem? Think, then end with a line `Candidate N`.",
) -> Steps:
    """`candidates` answers at the same time, then a judge that has read their programs.

    The judge is graded by the candidate that it names last, so it learns to pick what passes; one that names none is
    graded as an answer without a program. Roles: `solver` and `judge`.

    Args:
        case: the sample.
        candidates: how many answers the judge chooses from.
        request: what the judge is asked.
    """
    turns: list[Turn | None] = yield [Ask("solver", case.messages) for _ in range(candidates)]
    answers = [turn.text for turn in turns if turn is not None]
    if not answers:
        return
    judge: Turn | None = yield Ask("judge", judging(case, answers, request))
    if judge is not None:
        number = choice(answer_part(judge.text) or "", len(answers))
        judge.answer = "" if number is None else answers[number - 1]


def judging(case: Case, answers: list[str], request: str) -> list[dict[str, str]]:
    """The judge's prompt: the problem and the candidates' programs, numbered from 1, then the request."""
    shown = "\n\n".join(
        f"Candidate {number}:\n{code_block(extract_code(answer))}" for number, answer in enumerate(answers, start=1)
    )
    *before, problem = case.messages
    return [*before, {**problem, "content": f"{problem['content']}\n\n{shown}\n\n{request}"}]


def choice(text: str, candidates: int) -> int | None:
    """The candidate that is named last, or None if that is none of them."""
    named = _CHOICE.findall(text)
    # A policy that has lost its way writes digits without end, of which Python refuses to make an integer.
    digits = named[-1].lstrip("0") if named else ""
    return int(digits) if 1 <= len(digits) <= len(str(candidates)) and int(digits) <= candidates else None
