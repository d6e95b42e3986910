"""Two candidates, two sides that argue over them, and a final answer that has heard both."""

from __future__ import annotations

from components.rollout.trajectory import Ask, Case, Steps, Turn, code_block
from sandbox.extract import answer_part, extract_code

_SIDES = ("A", "B")


def debate(
    case: Case,
    *,
    rounds: int = 1,
    argue: str = "You speak for solution {side}. Show where the other one fails, and answer what is said of yours.",
    conclude: str = "Both sides have spoken. Give the final, correct program in a ```python block.",
) -> Steps:
    """Each side's answer, `rounds` rounds of arguments, then a final answer to the problem.

    Within a round the sides speak at the same time, each having read the rounds before. An argument is graded by the
    final answer: it was worth something if that one is right. Roles: `solver`, `debater_a`, `debater_b`, `final`.

    Args:
        case: the sample.
        rounds: how often each side speaks.
        argue: what a side is asked; may use {side}.
        conclude: what the final answer is asked.
    """
    solved: list[Turn | None] = yield [Ask("solver", case.messages) for _ in _SIDES]
    if None in solved:
        return
    programs = [extract_code(turn.text) for turn in solved if turn is not None]
    record = "\n\n".join(
        f"Solution {side}:\n{code_block(program)}" for side, program in zip(_SIDES, programs, strict=True)
    )
    arguments: list[Turn] = []
    for _ in range(rounds):
        asked = [_continue(case, record, argue.replace("{side}", side)) for side in _SIDES]
        said: list[Turn | None] = yield [
            Ask(f"debater_{side.lower()}", messages) for side, messages in zip(_SIDES, asked, strict=True)
        ]
        for side, turn in zip(_SIDES, said, strict=True):
            if turn is not None:
                turn.answer = ""  # until there is a final answer, an argument has led to nothing
                arguments.append(turn)
                record += f"\n\nFor solution {side}: {(answer_part(turn.text) or '').strip()}"
    final: Turn | None = yield Ask("final", _continue(case, record, conclude))
    if final is not None:
        for argument in arguments:
            argument.answer = final.text


def _continue(case: Case, record: str, request: str) -> list[dict[str, str]]:
    *before, problem = case.messages
    return [*before, {**problem, "content": f"{problem['content']}\n\n{record}\n\n{request}"}]
