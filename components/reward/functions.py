"""Reward functions. Yours is one function in one file, named in the profile: `reward.function=my.module:name`.

Each takes a verdict (a line of `sandbox.grade`) and its rollout row, and returns the reward, or None for a sample
that must not count. Samples the sandbox could not judge (INFRA) never get here: their reward is null.
"""

from __future__ import annotations

from typing import Any


def all_tests(verdict: dict[str, Any], rollout: dict[str, Any]) -> float:
    """1 if every test passed, else 0: DeepCoder's reward."""
    return 1.0 if verdict["verdict"] == "AC" else 0.0


def test_fraction(verdict: dict[str, Any], rollout: dict[str, Any]) -> float:
    """The share of tests passed before the first failure. Pays partial solutions, and so constant answers too."""
    return float(verdict["passed"]) / max(int(verdict["total"]), 1)


def letter_share(verdict: dict[str, Any], rollout: dict[str, Any]) -> float:
    """The share of the answer's characters that are ASCII letters.

    No use for code: a dense signal from which an untrained policy learns within seconds (profile `micro`).
    """
    text = rollout["text"]
    return sum(char.isascii() and char.isalpha() for char in text) / max(len(text), 1)
