"""The package's interface: a Grader that keeps its lanes, and `grade` for one stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, Self

from .cores import available_cores
from .fanout import LANES_PER_JUDGE, Fanout
from .model import Mode
from .pool import Pool, Settings
from .selftest import self_test


class WeakSandboxError(RuntimeError):
    """A layer is not in force, or a self-test program was not judged as it must be: nothing may be scored."""


class Grader:
    """Lanes that are started once and used for many streams of programs; a context manager.

    mode: `real` (true process semantics) or `lcb` (the official LiveCodeBench harness, quirks included).
    workers: lanes, each a zygote and one child at a time; None is one a core.
    early_exit: stop at a program's first failing test.
    landlock: False leaves that layer out, as on a kernel without it.
    allow_weak: score although a layer is missing; every verdict then carries `"weak": [what is missing]`.
    """

    def __init__(
        self,
        *,
        mode: Mode = "real",
        workers: int | None = None,
        early_exit: bool = True,
        allow_weak: bool = False,
        landlock: bool = True,
    ) -> None:
        if mode not in ("real", "lcb"):
            raise ValueError(f"mode={mode!r}: real or lcb")
        if workers is not None and workers < 1:
            raise ValueError(f"workers={workers}: at least 1")
        lanes = workers or available_cores()
        settings = Settings(mode=mode, workers=lanes, early_exit=early_exit, landlock=landlock)
        self._pool: Pool | Fanout
        self._pool = Fanout(settings) if lanes > LANES_PER_JUDGE else Pool(settings)
        try:
            self.report = self._pool.report if isinstance(self._pool, Fanout) else self_test(self._pool)
            self._refuse_if_weak(allow_weak)
        except BaseException:
            self.close()
            raise

    def _refuse_if_weak(self, allow_weak: bool) -> None:
        report = self.report
        if report.wrong:
            raise WeakSandboxError("self-test programs were judged wrongly: " + "; ".join(report.wrong))
        if report.weak and not allow_weak:
            problems = "; ".join(report.layers["problems"]) or "no problem was reported"
            raise WeakSandboxError(
                f"not in force: {', '.join(report.weak)} ({problems}). Use a kernel and a container profile that allow "
                "it, or pass allow_weak=True (--allow-weak) to score all the same; the verdicts then record it"
            )

    def grade(self, programs: Iterable[Any]) -> Iterator[dict[str, Any]]:
        """Verdicts as they are known, in any order; programs are taken from the iterable only as lanes are free."""
        for verdict in self._pool.grade(programs):
            if self.report.weak:
                verdict["weak"] = self.report.weak
            yield verdict

    def close(self) -> None:
        """End every process."""
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def grade(
    programs: Iterable[Any],
    *,
    mode: Mode = "real",
    workers: int | None = None,
    early_exit: bool = True,
    allow_weak: bool = False,
) -> Iterator[dict[str, Any]]:
    """Grade a stream of programs; see Grader for the arguments and the README for the keys of a program and a verdict.

    Memory stays flat: no more programs are held than there are lanes.
    """
    with Grader(mode=mode, workers=workers, early_exit=early_exit, allow_weak=allow_weak) as grader:
        yield from grader.grade(programs)
