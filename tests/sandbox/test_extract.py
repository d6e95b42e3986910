"""Which code an answer holds."""

from __future__ import annotations

import pytest

from sandbox import extract_code

FENCE = "```"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f"{FENCE}python\nprint(1)\n{FENCE}", "print(1)"),
        (f"first\n{FENCE}python\na\n{FENCE}\nthen\n{FENCE}python\nb\n{FENCE}\nend", "b"),
        (f"{FENCE}\nprint(1)\n{FENCE}", "print(1)"),
        (f"{FENCE}python\ngood\n{FENCE}\n{FENCE}text\n1 2 3\n{FENCE}", "good"),
        (f"{FENCE}cpp\nint main;\n{FENCE}", None),
        (f"{FENCE}Python3 \nx\n{FENCE} ", "x"),
        (f"  {FENCE}py\n  x\n  {FENCE}", "  x"),
        (f"{FENCE}python\nx = 1\nprint(x)", "x = 1\nprint(x)"),
        (f"{FENCE}python\nx\n{FENCE}\n{FENCE}python\n\n{FENCE}", "x"),
        (f"{FENCE}python\ns = '''\n{FENCE}js\n'''\n{FENCE}", "s = '''\n```js\n'''"),
        ("````python\nx = '```'\n```\ny\n````", "x = '```'\n```\ny"),
        ("~~~python\nx\n~~~", "x"),
        ("no code here", None),
        ("", None),
        (f"<think>\n{FENCE}python\ndraft\n{FENCE}\n</think>\n{FENCE}python\nfinal\n{FENCE}", "final"),
        (f"<think>\n{FENCE}python\ndraft\n{FENCE}\n", None),
        (f"<think>\n{FENCE}python\ndraft\n{FENCE}\n</think>\nno code after all", None),
        # Qwen-style templates open the thought in the prompt, so that only its end is in the answer.
        (f"{FENCE}python\ndraft\n{FENCE}\n</think>\n{FENCE}python\nfinal\n{FENCE}", "final"),
        (f"<think>a</think><think>{FENCE}python\ndraft\n{FENCE}", None),
        (f"{FENCE}python\r\nprint(1)\r\n{FENCE}\r\n", "print(1)"),
    ],
)
def test_the_last_python_block_after_the_reasoning_is_the_program(text: str, code: str | None) -> None:
    assert extract_code(text) == code


def test_a_long_run_of_spaces_after_a_fence_is_read_in_one_pass() -> None:
    # A pattern that tries every way to split the spaces would take days.
    assert extract_code(f"{FENCE}python\nx\n{FENCE}\n{FENCE}{' ' * 10**6}`\n") == "x"
