"""LiveCodeBench's own files: published generations come in and are graded, ours go out as a submission.

Three forms are read, all lists with one entry a problem: what its runner writes (`output_list`, `code_list`), what its
evaluator makes of that (`eval_all`: the same with `graded_list`, `pass@1`, `metadata`), and what its custom evaluator
takes (`question_id`, `code_list`). Source: lcb_runner/benchmarks/code_generation.py and runner/custom_evaluator.py of
LiveCodeBench/LiveCodeBench 28fef95.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from components.core.errors import UserError
from components.core.pairwise import Evaluated
from components.core.schema import Problem
from components.evaluation.samples import QUESTION_SCHEMA, SAMPLE_SCHEMA, Graded

_VERDICT_OF = {-1: "TLE", -2: "WA", -3: "TLE", -4: "RE", -5: "RE"}
"""The harness's error codes; -4 is a compile error too, and -5 a child that died."""
_CODE_OF = {"WA": (-2, "Wrong Answer"), "TLE": (-3, "Time Limit Exceeded")}
"""The reverse; everything else it calls a runtime error (-4)."""


@dataclass(frozen=True)
class Generations:
    """One problem's programs."""

    question_id: str
    codes: list[str]
    """Empty text for an answer without a program, as the harness has it."""
    graded: list[bool] | None = None
    """The published verdicts, if the file has them."""
    errors: list[dict[str, Any]] = field(default_factory=list)
    """What the harness said of each program, if the file has it."""
    problem: dict[str, Any] = field(default_factory=dict)
    """The entry's other keys: title, content, platform, contest_date, …"""


def read_generations(path: Path) -> list[Generations]:
    """Read any of the three forms.

    Raises:
        UserError: not such a file; names the entry and what is wrong with it.
    """
    try:
        rows = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: not readable as JSON ({error})") from error
    if not isinstance(rows, list) or not rows:
        raise UserError(f"{path}: not a list of problems with their programs")
    found = [_generations(row, f"{path}: entry {index}") for index, row in enumerate(rows)]
    names = [one.question_id for one in found]
    if len(set(names)) < len(names):
        raise UserError(f"{path}: question {next(n for n in names if names.count(n) > 1)} is there twice")
    return found


def _generations(row: Any, where: str) -> Generations:
    if not isinstance(row, dict) or "question_id" not in row or not isinstance(row.get("code_list"), list):
        raise UserError(
            f"{where}: needs question_id and code_list; lists without ids depend on an order we do not know"
        )
    codes, graded = row["code_list"], row.get("graded_list")
    if graded is not None and len(graded) != len(codes):
        raise UserError(f"{where}: {len(codes)} programs but {len(graded)} verdicts")
    told = row.get("metadata") or []
    errors = [json.loads(entry) if isinstance(entry, str) else dict(entry) for entry in told]
    others = {key: value for key, value in row.items() if key not in ("code_list", "graded_list", "metadata")}
    return Generations(str(row["question_id"]), codes, graded, errors, others)


def published_samples(generations: Iterable[Generations]) -> Graded:
    """The published verdicts as samples, so that `summarize` and `pairwise` take them like our own.

    Raises:
        UserError: a problem without verdicts.
    """
    questions, samples = [], []
    for one in generations:
        if one.graded is None:
            raise UserError(f"question {one.question_id} has no graded_list: grade the file first")
        questions.append(_question(one.question_id, one.problem))
        for index, (code, passed) in enumerate(zip(one.codes, one.graded, strict=True)):
            error = one.errors[index] if index < len(one.errors) else {}
            verdict = "AC" if passed else "NF" if not code else _VERDICT_OF.get(error.get("error_code", -4), "RE")
            kept = {name: error[name] for name in ("inputs", "expected", "output", "error_message") if name in error}
            samples.append(_sample(one.question_id, index, code, verdict, json.dumps(kept) if kept else None))
    return _sorted(questions, samples)


Grade = Callable[[Iterable[dict[str, Any]]], Iterable[dict[str, Any]]]
"""`sandbox.grade` with its mode and workers bound."""


def grade_generations(generations: Iterable[Generations], problems: Iterable[Problem], grade: Grade) -> Graded:
    """Run every program against the problem's tests.

    Args:
        generations: each question_id must be that of a problem.
        problems: found by `metadata["question_id"]`, else by problem_id.
        grade: see `Grade`.

    Raises:
        UserError: a question that is not among the problems.
    """
    known = {str(problem.metadata.get("question_id", problem.problem_id)): problem for problem in problems}
    programs: dict[str, tuple[Problem, int, str]] = {}
    for one in generations:
        problem = known.get(one.question_id)
        if problem is None:
            raise UserError(f"question {one.question_id} is not among the {len(known)} problems")
        for index, code in enumerate(one.codes):
            programs[f"{one.question_id}/{index}"] = (problem, index, code)
    lines = (problem.sandbox_program(key, code or None) for key, (problem, _, code) in programs.items())
    samples, questions = [], {}
    for verdict in grade(lines):
        problem, index, code = programs[verdict["id"]]
        failure = verdict.get("first_failure")
        row = _sample(problem.problem_id, index, code, verdict["verdict"], None if failure is None else str(failure))
        row |= {"tests_passed": verdict["passed"], "tests_total": verdict["total"], "cpu_ms": verdict["cpu_ms"]}
        samples.append(row)
        questions[problem.problem_id] = {name: problem.to_row()[name] for name in QUESTION_SCHEMA.names}
    return _sorted(list(questions.values()), samples)


def eval_all(graded: Graded) -> list[dict[str, Any]]:
    """The rows of an `eval_all` file: what LiveCodeBench's compute_scores reads.

    INFRA samples, for which it has no word, are left out; so is a problem with no other.
    """
    rows = []
    answers: dict[str, list[dict[str, Any]]] = {}
    for sample in graded.samples:
        if sample["verdict"] != "INFRA":
            answers.setdefault(sample["problem_id"], []).append(sample)
    for question in graded.questions:
        samples = answers.get(question["problem_id"])
        if samples:
            verdicts = [sample["verdict"] == "AC" for sample in samples]
            codes = [sample["program"] or "" for sample in samples]
            rows.append(
                {
                    **_entry(question),
                    # As with a custom output: the programs stand for the answers.
                    "output_list": codes,
                    "code_list": codes,
                    "graded_list": verdicts,
                    "pass@1": sum(verdicts) / len(verdicts),
                    "metadata": [json.dumps(_error(sample)) for sample in samples],
                }
            )
    # The benchmark's own order, by which its tools pair rows with problems.
    return sorted(rows, key=lambda row: str(row["question_id"]))


def submission(graded: Graded) -> list[dict[str, Any]]:
    """The rows of a `custom_output_file`, which LiveCodeBench's custom evaluator grades itself."""
    codes: dict[str, list[str]] = {}
    for sample in graded.samples:
        codes.setdefault(sample["problem_id"], []).append(sample["program"] or "")
    names = {question["problem_id"]: _entry(question)["question_id"] for question in graded.questions}
    rows = [{"question_id": names[problem], "code_list": found} for problem, found in codes.items()]
    return sorted(rows, key=lambda row: str(row["question_id"]))


def graded_of(evaluated: Evaluated) -> Graded:
    """An evaluation that was read back, as the samples it was made of."""
    samples = [sample for samples in evaluated.samples.values() for sample in samples]
    return Graded(list(evaluated.questions.values()), samples, 0)


def write_files(graded: Graded, folder: Path) -> dict[str, int]:
    """Write `submission.json` and `eval_all.json`; returns how many problems each has."""
    folder.mkdir(parents=True, exist_ok=True)
    counts = {}
    for name, rows in (("submission.json", submission(graded)), ("eval_all.json", eval_all(graded))):
        (folder / name).write_text(json.dumps(rows, indent=1) + "\n")
        counts[name] = len(rows)
    return counts


def _entry(question: dict[str, Any]) -> dict[str, Any]:
    details = json.loads(question["metadata"] or "{}")
    day = question["contest_date"]
    return {
        "question_title": details.get("title", ""),
        "question_content": question["question"],
        "platform": question["platform"],
        "question_id": str(details.get("question_id", question["problem_id"])),
        "contest_id": details.get("contest_id", ""),
        "contest_date": f"{day}T00:00:00" if day and len(day) == 10 else day,
        "starter_code": question["starter_code"] or "",
        "difficulty": question["difficulty"],
    }


def _error(sample: dict[str, Any]) -> dict[str, Any]:
    if sample["verdict"] == "AC":
        return {"execution time": (sample["cpu_ms"] or 0.0) / 1000}
    code, message = _CODE_OF.get(sample["verdict"], (-4, "Runtime Error"))
    return {"error_code": code, "error_message": message}


def _question(question_id: str, entry: dict[str, Any]) -> dict[str, Any]:
    details = {"question_id": question_id, "title": entry.get("question_title"), "contest_id": entry.get("contest_id")}
    return {
        "problem_id": question_id,
        "source": "livecodebench",
        "difficulty": entry.get("difficulty") or "unknown",
        "platform": entry.get("platform") or "",
        "contest_date": str(entry["contest_date"])[:10] if entry.get("contest_date") else None,
        "question": entry.get("question_content") or "",
        "starter_code": entry.get("starter_code") or "",
        "metadata": json.dumps(details),
    }


def _sample(problem_id: str, index: int, code: str, verdict: str, failure: str | None) -> dict[str, Any]:
    return dict.fromkeys(SAMPLE_SCHEMA.names) | {
        "problem_id": problem_id,
        "sample_id": index,
        "verdict": verdict,
        "correct": None if verdict == "INFRA" else verdict == "AC",
        "well_formed": bool(code),
        "first_failure": failure,
        "program": code or None,
        "excerpt": None if code else "",
    }


def _sorted(questions: list[dict[str, Any]], samples: list[dict[str, Any]]) -> Graded:
    return Graded(
        sorted(questions, key=lambda row: row["problem_id"]),
        sorted(samples, key=lambda row: (row["problem_id"], row["sample_id"])),
        0,
    )
