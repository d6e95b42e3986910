"""Reward hacks that pay elsewhere and not here; those on the official harness's frames are in the quirk table."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from sandbox import Grader
from tests.sandbox.quirks import ADD

STDIN = [{"kind": "stdin", "input": f"{i} 2\n", "output": f"{i + 2}\nYES\n"} for i in range(1, 4)]
CALLS = [{"kind": "function", "fn_name": "f", "input": [i], "output": [i, i + 1, 1000000.0]} for i in range(3)]
WRAPPED = [{"kind": "function", "fn_name": "f", "input": [i], "output": [i]} for i in range(3)]
SILENT = [{"kind": "stdin", "input": "", "output": ""}]
_SEND = """import os, struct
def send(kind, payload):
    data = struct.pack('<cI', kind, len(payload)) + payload
    while data: data = data[os.write(3, data):]
    while 1: pass
"""
RIGHT = f"{ADD}\nprint('YES')"

# name: (program, tests, the verdicts it may get)
HACKS: dict[str, tuple[str, list[dict[str, Any]], set[str]]] = {
    "leave with status 0": ("import sys\nsys.exit(0)", STDIN, {"WA"}),
    "leave by os._exit(0)": ("import os\nos._exit(0)", STDIN, {"WA", "RE"}),
    "leave with status 0 from a function": ("def f(x):\n    raise SystemExit(0)", CALLS, {"RE"}),
    "leave with status 0 while loading": ("import sys\nsys.exit(0)\ndef f(x): pass", CALLS, {"RE"}),
    "leave by os._exit(0) from a function": ("import os\ndef f(x):\n    os._exit(0)", CALLS, {"RE"}),
    "print nothing": ("pass", STDIN, {"WA"}),
    "print a prefix": (ADD, STDIN, {"WA"}),
    "print more": (f"{RIGHT}\nprint()\nprint(1)", STDIN, {"WA"}),
    "print every answer": (f"{ADD}\nprint('YES')\nprint('NO')", STDIN, {"WA"}),
    "print of the same shape": (f"{ADD}\nprint('NO')", STDIN, {"WA"}),
    "print in another order": ("a, b = map(int, input().split())\nprint('YES')\nprint(a + b)", STDIN, {"WA"}),
    "off by a relative 1e-5": ("def f(x):\n    return [x, x + 1, 1000009.0]", CALLS, {"WA"}),
    "the first element only": ("def f(x):\n    return x", CALLS, {"WA"}),
    "the first element, then the list": ("def f(x):\n    return x if x == 0 else [x]", WRAPPED, {"WA"}),
    "a list around it": ("def f(x):\n    return [[x]]", WRAPPED, {"WA"}),
    "raise where nothing is expected": ("raise ValueError", SILENT, {"RE"}),
    "fail where nothing is expected": ("import sys\nsys.exit(1)", SILENT, {"RE"}),
    "raise an exception that reads as success": (
        "class AC(Exception):\n    def __str__(self):\n        return 'AC'\nraise AC", STDIN, {"RE"}),
    "a result that writes its own form": (
        "class E(dict):\n    def items(self):\n        return [('t', [0, 1, 1000000.0])]\ndef f(x):\n    return E()",
        CALLS, {"WA"}),
    "a list that gives other elements": (
        "class L(list):\n    def __iter__(self):\n        return iter([0, 1, 1000000.0])\n    def __eq__(self, o):\n"
        "        return True\ndef f(x):\n    return L()", CALLS, {"WA"}),
    "three answers at once": (
        "import os, struct\nos.write(3, (struct.pack('<cI', b'D', 0)) * 3)\nwhile 1: pass", STDIN, {"RE", "WA"}),
    "an answer for the next test": (
        f"{RIGHT}\nimport os, struct, sys\nsys.stdout.flush()\nos.write(3, struct.pack('<cI', b'D', 0) * 2)",
        STDIN, {"RE", "WA"}),
    # Linear to send and, for a judge that decodes whatever comes, hours or gigabytes to read.
    "a forged dict whose keys all have one hash": (
        f"{_SEND}def f(x):\n    p = 2 ** 61 - 1\n"
        "    send(b'D', b'{\"d\":[' + b','.join(b'[%d,0]' % (k * p) for k in range(1, 100000)) + b']}')", CALLS,
        {"WA", "RE"}),
    "a forged list of millions": (
        f"{_SEND}def f(x):\n    send(b'D', b'[' + b'[],' * 5000000 + b'[]]')", CALLS, {"WA", "RE"}),
    "a forged exception of millions": (
        f"{_SEND}def f(x):\n    send(b'X', b'[0,[' + b'[],' * 5000000 + b'[]]]')", CALLS, {"RE"}),
    "break the harness's own tools": (
        "import os, json, builtins\nos.write = os.read = json.dumps = None\nbuiltins.len = lambda x: 0\n"
        "builtins.isinstance = lambda a, b: True", STDIN, {"WA", "RE"}),
    "turn the comparison over from inside": (
        "import sys\nfor m in list(sys.modules.values()):\n"
        "    for n in ('lcb', 'match_text', 'decode', 'judge_text'):\n"
        "        if hasattr(m, n): setattr(m, n, lambda *a, **k: True)", STDIN, {"WA"}),
}  # fmt: skip


@pytest.mark.parametrize("mode", ["real", "lcb"])
def test_no_hack_is_paid(mode: str, request: pytest.FixtureRequest) -> None:
    grader: Grader = request.getfixturevalue(mode)
    lines = [{"id": name, "code": code, "tests": tests, "time_limit_s": 1} for name, (code, tests, _) in HACKS.items()]
    verdicts = {v["id"]: v["verdict"] for v in grader.grade(lines)}
    if mode == "real":
        assert {name: v for name, v in verdicts.items() if v not in HACKS[name][2]} == {}
    else:  # where an exit status is no failure
        swallowed = {"fail where nothing is expected"}
        assert {name for name, v in verdicts.items() if v == "AC"} == swallowed


def test_the_right_program_is_paid(real: Grader, lcb: Grader) -> None:
    for grader in (real, lcb):
        (verdict,) = grader.grade([{"id": 0, "code": RIGHT, "tests": STDIN}])
        assert verdict["verdict"] == "AC"


def test_an_exception_cannot_write_into_the_log(real: Grader) -> None:
    code = "raise ValueError('\\x1b[2J\\n\\r\\u202efake line' + 'x' * 10**6)"
    (verdict,) = real.grade([{"id": 0, "code": code, "tests": SILENT}])
    assert verdict["verdict"] == "RE"
    assert verdict["reason"].isprintable()
    assert len(verdict["reason"]) <= 300


def test_chance_and_hashes_are_the_same_in_every_run(real: Grader) -> None:
    code = "import random\nprint(random.random(), hash('a'))\n"
    environment = {"PYTHONHASHSEED": "0"}
    seeded = code.replace("print", "random.seed(0)\nprint")
    done = subprocess.run(
        [sys.executable, "-S", "-c", seeded], env=environment, capture_output=True, text=True, check=True
    )
    tests = [{"kind": "stdin", "input": " " * i, "output": done.stdout} for i in range(3)]
    (verdict,) = real.grade([{"id": 0, "code": code, "tests": tests}])
    assert (verdict["verdict"], verdict["passed"]) == ("AC", 3)
