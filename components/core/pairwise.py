"""Compares two evaluations of the same problems: `python -m components.evaluation compare FIRST SECOND`.

The two may be of two policies, or of one policy's answers judged in two modes (`lcb` and `real`).
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from components.core.errors import UserError
from components.core.groupings import GROUPINGS
from components.core.page import signed, span
from components.core.statistics import decompose_gain, mcnemar, paired_difference
from components.core.store import open_store


@dataclass(frozen=True)
class Evaluated:
    """One evaluation, read back from what the evaluate step wrote."""

    label: str
    global_step: int
    """Optimizer steps the policy has had."""
    uri: str
    numbers: dict[str, Any]
    """`result.json`; see components/evaluation/numbers.py."""
    samples: dict[str, list[dict[str, Any]]]
    """Rows of `samples.parquet` by problem_id, in the order of sample_id."""
    questions: dict[str, dict[str, Any]]
    """Rows of `problems.parquet` by problem_id."""

    def rates(self, problem_ids: list[str], name: str = "correct") -> list[float]:
        """A share of each problem's graded samples; see `numbers.shares` for the names."""
        return [self.numbers["by_problem"][problem][name] for problem in problem_ids]

    def kinds(self, problem_ids: list[str]) -> np.ndarray:
        """A row a problem: shares well-formed, well-formed and correct, correct (see `decompose_gain`)."""
        names = ("well_formed", "well_formed_correct", "correct")
        return np.array([self.rates(problem_ids, name) for name in names]).T


def read_folder(folder: Path, uri: str) -> Evaluated:
    """Read the three files of one evaluation.

    Raises:
        UserError: one is absent or not what an evaluate step writes.
    """
    try:
        numbers = json.loads((folder / "result.json").read_text())
        rows = pq.read_table(folder / "samples.parquet").to_pylist()
        questions = {row["problem_id"]: row for row in pq.read_table(folder / "problems.parquet").to_pylist()}
        samples: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            samples.setdefault(row["problem_id"], []).append(row)
        return Evaluated(numbers["label"], int(numbers["global_step"]), uri, numbers, samples, questions)
    except (OSError, ValueError, KeyError, pa.ArrowInvalid) as error:
        raise UserError(f"{uri}: not the result folder of an evaluation ({error!r})") from error


def gain_over(before: Evaluated, after: Evaluated, confidence: float) -> dict[str, Any] | None:
    """What one policy gained over another on the problems that both have graded answers to; None without any.

    Returns:
        `pass@1`, `format_share` and `truncation_rate` as paired differences, `parts` of the first (see
        `decompose_gain`), `mcnemar`, and the number of `problems`; estimates as plain data.
    """
    shared = sorted(before.numbers["by_problem"].keys() & after.numbers["by_problem"].keys())
    if not shared:
        return None

    def difference(name: str) -> dict[str, float] | None:
        first, second = before.rates(shared, name), after.rates(shared, name)
        return None if None in [*first, *second] else paired_difference(first, second, confidence).as_dict()

    parts = decompose_gain(before.kinds(shared), after.kinds(shared), confidence)
    return {
        "from": before.label,
        "to": after.label,
        "problems": len(shared),
        "pass@1": difference("correct"),
        "format_share": difference("well_formed"),
        "truncation_rate": difference("truncated"),
        "parts": {"format": parts.format.as_dict(), "skill": parts.skill.as_dict()},
        "mcnemar": asdict(mcnemar(before.rates(shared), after.rates(shared))),
    }


def gains_by_group(before: Evaluated, after: Evaluated, confidence: float) -> dict[str, list[dict[str, Any]]]:
    """The paired difference of pass@1 within each difficulty, platform, source and month.

    Returns:
        By grouping a list of {value, problems, gain}; the gain is an estimate as plain data.
    """
    shared = sorted(before.numbers["by_problem"].keys() & after.numbers["by_problem"].keys())
    result: dict[str, list[dict[str, Any]]] = {}
    for grouping, name_of in GROUPINGS.items():
        groups: dict[str, list[str]] = {}
        for problem in shared:
            groups.setdefault(name_of(before.questions[problem]), []).append(problem)
        result[grouping] = [
            {
                "value": value,
                "problems": len(problems),
                "gain": paired_difference(before.rates(problems), after.rates(problems), confidence).as_dict(),
            }
            for value, problems in sorted(groups.items())
        ]
    return result


def verdict_differences(first: Evaluated, second: Evaluated) -> list[dict[str, Any]]:
    """The same program under two verdicts: what the mode of judging changes.

    Only samples with the same program on both sides are compared, so that for two policies little is left.

    Returns:
        Rows of {problem_id, sample_id, first, second, program}, sorted.
    """
    rows = []
    for problem in sorted(first.samples.keys() & second.samples.keys()):
        others = {sample["sample_id"]: sample for sample in second.samples[problem]}
        for sample in first.samples[problem]:
            other = others.get(sample["sample_id"])
            if other and other["program"] == sample["program"] and other["verdict"] != sample["verdict"]:
                rows.append(
                    {
                        "problem_id": problem,
                        "sample_id": sample["sample_id"],
                        "first": sample["verdict"],
                        "second": other["verdict"],
                        "program": sample["program"],
                    }
                )
    return rows


def describe(first: Evaluated, second: Evaluated, confidence: float) -> str:
    """The comparison as plain text.

    Raises:
        UserError: no problem in common.
    """
    gain = gain_over(first, second, confidence)
    if gain is None:
        raise UserError(f"{first.uri} and {second.uri} have no graded problem in common")
    test = gain["mcnemar"]
    lines = [
        f"{'first':<8}{first.label}: pass@1 {span(first.numbers['pass@1'])} %",
        f"{'second':<8}{second.label}: pass@1 {span(second.numbers['pass@1'])} %",
        f"second - first, paired over {gain['problems']} problems: {signed(gain['pass@1'])} points "
        f"(format {signed(gain['parts']['format'])}, skill {signed(gain['parts']['skill'])})",
        f"better on {test['only_after']} problems, worse on {test['only_before']}: McNemar p = {test['p']:.3g}",
    ]
    for grouping, rows in gains_by_group(first, second, confidence).items():
        lines.append(f"by {grouping}")
        lines += [f"  {row['value']:<16}{row['problems']:>5} problems  {signed(row['gain'])}" for row in rows]
    changed = verdict_differences(first, second)
    if changed:
        lines.append(f"{len(changed)} answers with the same program and another verdict")
        lines += [
            f"  {row['problem_id']} sample {row['sample_id']}: {row['first']} -> {row['second']}" for row in changed
        ]
    return "\n".join(lines)


def open_evaluation(uri: str) -> Evaluated:
    """An evaluation's result folder, local or `s3://`.

    Raises:
        UserError: it is not one.
    """
    if not uri.startswith("s3://") and not Path(uri).is_dir():
        raise UserError(f"{uri}: no such folder; give runs/RUN/eval/LABEL/result of a store")
    root, _, name = uri.rstrip("/").rpartition("/")
    return read_folder(open_store(root or ".").local_dir(name), uri)
