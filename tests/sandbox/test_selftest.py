"""Nothing is scored while a layer is missing, unless a flag says so and every verdict records it."""

from __future__ import annotations

import pytest

from sandbox import Grader, WeakSandboxError

LINE = {"id": 1, "code": "print(1)", "tests": [{"kind": "stdin", "input": "", "output": "1"}]}


def test_without_landlock_scoring_is_refused_unless_allowed_and_then_recorded() -> None:
    with pytest.raises(WeakSandboxError, match="landlock: reading"):
        Grader(workers=1, landlock=False)
    with Grader(workers=1, landlock=False, allow_weak=True) as grader:
        (verdict,) = grader.grade([LINE])
    assert verdict["verdict"] == "AC"
    assert verdict["weak"] == ["landlock: reading"]


def test_with_every_layer_in_force_verdicts_carry_no_mark(real: Grader, lcb: Grader) -> None:
    for grader in (real, lcb):
        assert grader.report.weak == []
        assert grader.report.layers["no_new_privs"]
        (verdict,) = grader.grade([LINE])
        assert "weak" not in verdict


def test_a_grader_that_judges_wrongly_refuses_whatever_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    from sandbox import selftest

    monkeypatch.setitem(selftest._GOLD, "accepts stdin", ("print(4)", selftest._ADD, "AC"))
    monkeypatch.setattr(selftest, "_passed", {})
    with pytest.raises(WeakSandboxError, match="accepts stdin: WA"):
        Grader(workers=1, allow_weak=True)
