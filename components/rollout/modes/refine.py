"""Answer, run the public tests, show what failed, answer again."""

from __future__ import annotations

from components.core.schema import Test
from components.rollout.trajectory import Ask, Case, Feedback, RunTests, Steps, Turn
from sandbox import extract_code

_FAULTS = {
    "WA": "the output is wrong",
    "TLE": "the time limit was exceeded",
    "MLE": "the memory limit was exceeded",
    "OLE": "the program wrote too much",
    "RE": "the program failed",
    "CE": "the program does not compile",
    "NF": "no program, or not the function that was asked for, was found in a ```python block",
}
_LONGEST = 1000
"""Characters shown of one input or output."""


def refine(
    case: Case, *, turns: int = 3, request: str = "Find the mistake and answer again with the whole corrected program."
) -> Steps:
    """Up to `turns` answers; the public tests decide whether another one is asked for.

    Ends early when they pass, where there are none, and where the sandbox cannot judge. Roles: `solver` for the first
    answer, `refiner` for the later ones, which have seen failures and so are compared among themselves.

    Args:
        case: the sample.
        turns: answers at most, the first one included.
        request: what is asked for after the failures.
    """
    messages = case.messages
    for number in range(turns):
        turn: Turn | None = yield Ask("refiner" if number else "solver", messages)
        if turn is None or number == turns - 1:
            return
        feedback: Feedback | None = yield RunTests(extract_code(turn.text))
        if feedback is None or feedback.verdict in ("AC", "INFRA"):
            return
        report = f"{describe(feedback)}\n\n{request}"
        messages = [*messages, {"role": "assistant", "content": turn.text}, {"role": "user", "content": report}]


def describe(feedback: Feedback) -> str:
    """The failure in words, with the test that shows it."""
    fault = _FAULTS.get(feedback.verdict, feedback.verdict)
    text = f"Your program does not pass the sample tests: {fault}."
    if feedback.reason and feedback.verdict in ("RE", "CE"):
        text += f"\n{_cut(feedback.reason)}"
    if feedback.failing is not None:
        text += "\n\n" + _show(feedback.failing)
    return text


def _show(test: Test) -> str:
    what = "Arguments (JSON)" if test.kind == "function" else "Input"
    return f"{what}:\n{_cut(test.input)}\n\nExpected output:\n{_cut(test.output)}"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} … ({len(text)} characters)"
