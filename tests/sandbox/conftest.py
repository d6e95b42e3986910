"""Graders that all tests of a session share: starting one costs more than most tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sandbox import Grader

WORKERS = 2


@pytest.fixture(scope="session")
def real() -> Iterator[Grader]:
    with Grader(mode="real", workers=WORKERS) as grader:
        yield grader


@pytest.fixture(scope="session")
def lcb() -> Iterator[Grader]:
    with Grader(mode="lcb", workers=WORKERS) as grader:
        yield grader
