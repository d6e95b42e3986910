"""What is proved before anything is scored: right programs are accepted, wrong ones not, and hostile ones are held."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .pool import Pool, Settings

_ADD = {"kind": "stdin", "input": "1 2\n", "output": "3\n"}
_CALL = {"kind": "function", "fn_name": "total", "input": [1, 2], "output": 3}
_REFUSED = {"kind": "stdin", "input": "", "output": "refused"}

# name: (code, test, the one right verdict)
_GOLD: dict[str, tuple[str, dict[str, Any], str]] = {
    "accepts stdin": ("a, b = map(int, input().split())\nprint(a + b)", _ADD, "AC"),
    "accepts a function": ("def total(a, b):\n    return a + b", _CALL, "AC"),
    "accepts a method": ("class Solution:\n    def total(self, a, b):\n        return a + b", _CALL, "AC"),
    "rejects a wrong answer": ("print(4)", _ADD, "WA"),
    "rejects no output": ("import sys\nsys.exit(0)", _ADD, "WA"),
    "rejects a wrong result": ("def total(a, b):\n    return a - b", _CALL, "WA"),
    "rejects a forged result": (
        "class E(int):\n    def __eq__(self, o):\n        return True\ndef total(a, b):\n    return E(0)",
        _CALL,
        "WA",
    ),
    "sees an exception": ("1 / 0", _ADD, "RE"),
    "sees a syntax error": ("print(", _ADD, "CE"),
    "sees a missing function": ("x = 1", _CALL, "NF"),
    "stops an endless loop": ("while True:\n    pass", _ADD, "TLE"),
    "limits memory": ("x = bytearray(1 << 36)\nprint(3)", _ADD, "MLE"),
}

# layer: programs that print "refused" if and only if it holds.
_LAYERS: dict[str, tuple[str, ...]] = {
    "seccomp: processes": ("os.fork()", "os.execv('/bin/true', ['true'])", "os.kill(os.getppid(), 0)"),
    "seccomp: network": ("import socket; socket.socket()", "import socket; socket.socket(socket.AF_UNIX)"),
    "seccomp: writing": ("open('/tmp/.sandbox-self-test', 'w')", "os.mkdir('/tmp/.sandbox-self-test')"),
    "landlock: reading": ("open('/etc/passwd')", "os.listdir('/')", "open('/proc/self/environ')"),
    "descriptors": ("os.fstat(4)", "os.fstat(5)", "os.fstat(6)"),
}


@dataclass(frozen=True)
class Report:
    """What the self-test found."""

    layers: dict[str, Any]
    """As the zygote reported them."""
    weak: list[str]
    """Layers that are not in force; scoring needs a flag."""
    wrong: list[str]
    """Programs that were not judged as they must be; scoring is refused."""


def _attempt(expression: str) -> str:
    return f"import os\ntry:\n    {expression}\n    print('got through')\nexcept OSError:\n    print('refused')"


def _programs() -> dict[str, tuple[dict[str, Any], str]]:
    """The lines to grade by name, with the right verdict of each."""
    programs = {}
    for name, (code, test, verdict) in _GOLD.items():
        programs[name] = ({"id": name, "code": code, "tests": [test], "time_limit_s": 0.2}, verdict)
    # A limit that only the endless loop meets, even on a slow machine.
    for line, verdict in programs.values():
        if verdict != "TLE":
            line["time_limit_s"] = 10
    for layer, expressions in _LAYERS.items():
        for expression in expressions:
            name = f"{layer}: {expression}"
            line = {"id": name, "code": _attempt(expression), "tests": [_REFUSED], "time_limit_s": 10}
            programs[name] = (line, "AC")
    return programs


def run_self_test(pool: Pool) -> Report:
    """Grade the gold and the hostile programs in the pool's own lanes; takes a fraction of a second."""
    programs = _programs()
    got = {verdict["id"]: verdict for verdict in pool.grade(line for line, _ in programs.values())}
    weak, wrong = [], []
    for name, (_, expected) in programs.items():
        if got[name]["verdict"] == expected:
            continue
        layer = next((layer for layer in _LAYERS if name.startswith(layer)), None)
        if layer is None:
            wrong.append(f"{name}: {got[name]['verdict']} {got[name].get('reason', '')}".strip())
        elif layer not in weak:
            weak.append(layer)
    layers = pool.layers
    weak += [name for name in ("no_new_privs", "not_dumpable", "capabilities_dropped") if not layers[name]]
    if not layers["landlock_abi"] and "landlock: reading" not in weak:
        weak.append("landlock: reading")
    return Report(layers, weak, wrong)


_passed: dict[Settings, Report] = {}


def self_test(pool: Pool) -> Report:
    """As run_self_test, remembered for pools with the same settings in this process."""
    key = pool.settings
    if key not in _passed:
        report = run_self_test(pool)
        if report.weak or report.wrong:
            return report  # looked at again the next time
        _passed[key] = report
    return _passed[key]
