"""A published set as it is, for evaluation: every row that can be graded at all stays, in the `test/` split.

Unlike `prepare`, which makes a training set, this drops nothing for being odd, repeated or long: a score is compared
with others only over the same problems. What cannot be graded is counted, with its reason, in manifest.json.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from components.core.config import Config, SourceConfig
from components.core.errors import UserError
from components.core.paths import dataset_path
from components.core.progress import say
from components.core.schema import PROBLEM_SCHEMA, Problem, write_parquet
from components.core.seeds import derive_seed
from components.core.step import Step
from components.core.store import Pointer, config_hash, file_sha256
from components.data_prep import sketch
from components.data_prep.checks import check_text, check_window, judges_itself, mark_shown
from components.data_prep.judging import choose_comparator
from components.data_prep.literals import allow_long_integers
from components.data_prep.output import SHARD_BYTES, SHARD_ROWS, Ledger
from components.data_prep.parsers import PARSERS
from components.data_prep.rows import Dropped, RawBatch, Reject, Source
from components.data_prep.signature import read_signature
from components.data_prep.sources import Opened, open_sources
from components.data_prep.spool import decoded, rows_of

FORMAT = 1
"""Raised when the same rows would give other problems than before."""


def run(*, config: Config, output: str) -> Pointer:
    """Bring the configured sources in as a test split.

    Args:
        config: `data.sources` with their dates, and `data.max_test_problems`; other keys of `data` do not matter.
        output: where the pointer goes.

    Returns:
        A pointer of kind `dataset`: test/ (parquet, PROBLEM_SCHEMA), manifest.json, dropped.jsonl.

    Raises:
        UserError: a source is absent, or none of its rows can be graded.
    """
    opened = open_sources(config.data.sources)
    limit = config.data.max_test_problems
    settings = {
        "benchmark": FORMAT,
        "sources": [[source.fingerprint, source.source.config.model_dump(mode="json")] for source in opened],
        "sample": [limit, config.seed] if limit else None,
    }
    where = dataset_path(config_hash(settings))
    with Step(config, "benchmark", where, settings=settings, inputs={}, output=output) as step:
        if step.pointer is not None:
            return step.pointer
        step.ready()
        with step.store.scratch() as scratch:
            ledger = Ledger(scratch / "dropped.jsonl", [source.source.label for source in opened])
            problems = _problems(opened, config, ledger)
            if limit:
                problems = iter(_sample(problems, limit, config.seed, ledger))
            files = _write(step, problems, scratch)
            ledger.close()
            rows = sum(entry["rows"] for entry in files.values())
            if not rows:
                raise UserError(_nothing_left(ledger, opened))
            manifest = {
                "counts": {label: {"rows": ledger.rows[label], "dropped": dict(reasons)}
                           for label, reasons in ledger.reasons.items()},
                "sources": [source.describe() for source in opened],
                "settings": settings,
                "files": files,
                "examples": ledger.examples,
            }  # fmt: skip
            (scratch / "manifest.json").write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n")
            for name in ("dropped.jsonl", "manifest.json"):
                step.store.put(scratch / name, f"{where}/{name}")
        for label, reasons in ledger.reasons.items():
            said = ", ".join(f"{reason} {count}" for reason, count in sorted(reasons.items()))
            say(label, f"{ledger.rows[label]} rows, {ledger.rows[label] - reasons.total()} problems; {said or 'all'}")
        metrics = {"data/rows": float(ledger.rows.total()), "data/test": float(rows)}
        return step.commit(kind="dataset", rows=rows, metrics=metrics)


def _problems(opened: list[Opened], config: Config, ledger: Ledger) -> Iterator[Problem]:
    allow_long_integers()
    seen: set[str] = set()
    for each in opened:
        label = each.source.label
        for batch in each.batches():
            ordinal = batch.first_ordinal
            for index, row in enumerate(rows_of(batch)):
                ledger.rows[label] += 1
                try:
                    problem = _problem(row, each.source, ordinal + index, config)
                    if problem.problem_id in seen:
                        raise Reject("duplicate_id", f"{problem.problem_id} came before")
                    seen.add(problem.problem_id)
                    yield problem
                except Reject as error:
                    ledger.drop(_dropped(label, batch, index, error))
            if batch.error:
                ledger.rows[label] += 1
                ledger.drop(_dropped(label, batch, 0, Reject("unreadable_file", batch.error)))


def _dropped(label: str, batch: RawBatch, index: int, error: Reject) -> Dropped:
    return Dropped(label, batch.file, batch.first_row + index, "", error.reason, error.detail)


def _problem(row: Any, source: Source, ordinal: int, config: Config) -> Problem:
    """One row as a problem that the sandbox can grade."""
    problem = check_text(PARSERS[source.config.format](decoded(row), source, ordinal))
    check_window(problem, source)
    if source.config.format == "problems":
        return problem
    if any(test.kind == "function" for test in problem.tests):
        signature = read_signature(problem.starter_code)
        name = problem.fn_name or (signature.name if signature else None)
        if not name or not name.isidentifier():
            raise Reject("no_function_name", "function tests, but no fn_name, metadata.func_name or starter_code")
        problem = replace(problem, fn_name=name)
    if not any(test.public for test in problem.tests):
        problem = replace(problem, tests=mark_shown(problem.question, problem.tests))
    if not judges_itself(problem):
        # Many right answers: kept, and judged by the one that is there, as published scores are.
        data = config.data.model_copy(update={"keep_special_judge": True})
        problem = replace(problem, comparator=choose_comparator(problem, data))
    return replace(problem, content_hash=sketch.content_hash(problem))


def _sample(problems: Iterator[Problem], limit: int, seed: int, ledger: Ledger) -> list[Problem]:
    """`limit` problems, picked by seed and id; only so many are held."""
    kept: list[tuple[int, str, Problem]] = []
    for problem in problems:
        item = (-derive_seed(seed, "benchmark", problem.problem_id), problem.problem_id, problem)
        if len(kept) < limit:
            heapq.heappush(kept, item)
        else:
            out = heapq.heappushpop(kept, item)
            ledger.drop(Dropped(out[2].source, "", 0, out[1], "not_sampled", f"data.max_test_problems={limit}"))
    return sorted((problem for *_, problem in kept), key=lambda problem: problem.problem_id)


def _write(step: Step, problems: Iterator[Problem], scratch: Path) -> dict[str, Any]:
    """The shards of `test/`, each bounded in rows and bytes."""
    files: dict[str, Any] = {}
    rows: list[dict[str, Any]] = []
    size = 0

    def flush() -> None:
        name = f"test/part-{len(files):05d}.parquet"
        local = scratch / "rows.parquet"
        count = write_parquet(local, rows, PROBLEM_SCHEMA)
        files[name] = {"rows": count, "sha256": file_sha256(local)}
        step.store.put(local, f"{step.where}/{name}")
        rows.clear()

    for problem in problems:
        rows.append(problem.to_row())
        size += sum(len(test.input) + len(test.output) for test in problem.tests)
        if size >= SHARD_BYTES or len(rows) >= SHARD_ROWS:
            flush()
            size = 0
    if rows:
        flush()
    return files


def _nothing_left(ledger: Ledger, opened: list[Opened]) -> str:
    lines = [f"{source.source.config.path}: no problem that can be graded" for source in opened]
    for reason, examples in ledger.examples.items():
        lines.append(f"  e.g. {examples[0]['file']} row {examples[0]['row']}: {reason}: {examples[0]['detail']}")
    return "\n".join(lines)


_MARKS: dict[str, tuple[str, ...]] = {
    "problems": ("problem_id", "comparator", "tests"),
    "livecodebench": ("question_content", "private_test_cases"),
    "codeforces": ("official_tests", "description"),
    "primeintellect": ("verification_info",),
    "taco": ("input_output", "solutions"),
    "humaneval": ("entry_point", "prompt", "canonical_solution"),
    "mbpp": ("test_list",),
    "deepcoder": ("problem", "tests"),
}
"""Columns by which a set's format is known."""


def sniff(path: str, name: str | None, split: str) -> str:
    """The format of a set, told from the columns of its first row.

    Raises:
        UserError: the set is absent, empty, or of no known form.
    """
    source = open_sources([SourceConfig(format="problems", path=path, name=name, split=split)])[0]
    row = next((row for batch in source.batches() for row in rows_of(batch)), None)
    if row is None:
        raise UserError(f"{path}: holds no row")
    try:
        columns = decoded(row).keys()
    except Reject as error:
        raise UserError(f"{path}: {error.detail}") from error
    if "base_input" in columns:
        return "mbpp" if "assertion" in columns else "humaneval"
    for known, marks in _MARKS.items():
        if columns >= set(marks):
            return known
    raise UserError(
        f"{path}: columns {', '.join(sorted(columns)[:20])} are those of no known set; name it with --format "
        f"({', '.join(_MARKS)})"
    )
