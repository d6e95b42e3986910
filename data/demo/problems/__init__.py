"""The demo's problems, written by this project: one module a split and family."""

from __future__ import annotations

from data.demo.problems import (
    held_out_lists,
    held_out_numbers,
    held_out_other,
    held_out_programs,
    held_out_text,
    train_lists,
    train_numbers,
    train_other,
    train_programs,
    train_text,
)
from data.demo.problems.model import Problem

_TRAINING = [train_numbers, train_text, train_lists, train_other, train_programs]
_HELD_OUT = [held_out_numbers, held_out_text, held_out_lists, held_out_other, held_out_programs]


def training_problems() -> list[Problem]:
    """Every training problem, in a fixed order."""
    return [problem for module in _TRAINING for problem in module.PROBLEMS]


def held_out_problems() -> list[Problem]:
    """Every held-out problem, in a fixed order."""
    return [problem for module in _HELD_OUT for problem in module.PROBLEMS]
