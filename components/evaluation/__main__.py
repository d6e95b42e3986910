"""Evaluation outside of a run: `python -m components.evaluation scores|grade|export|compare`."""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

from components.core.errors import UserError
from components.core.page import span
from components.core.pairwise import describe, open_evaluation
from components.core.schema import read_problems
from components.evaluation.lcb import eval_all, grade_generations, graded_of, published_samples, read_generations
from components.evaluation.lcb import write_files as write_lcb
from components.evaluation.numbers import summarize
from components.evaluation.output import About, summary_markdown, write_files
from components.evaluation.samples import Graded, attach_failing_tests
from sandbox import grade
from sandbox.model import Mode


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m components.evaluation", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)

    scores = commands.add_parser("scores", help="numbers with intervals from a published LiveCodeBench eval_all file")
    scores.add_argument("file", type=Path)
    _window(scores)
    scores.add_argument("--out", type=Path, help="folder for result.json, samples.parquet and the page")

    grade = commands.add_parser("grade", help="run LiveCodeBench generations against prepared problems")
    grade.add_argument("file", type=Path)
    grade.add_argument("--problems", type=Path, required=True, help="folder of problem parquet, a dataset's test/")
    grade.add_argument("--mode", choices=["real", "lcb", "both"], default="real")
    grade.add_argument("--workers", type=int, help="sandbox processes (default: one a core)")
    grade.add_argument("--out", type=Path, required=True, help="folder; with `both` one folder a mode in it")
    _window(grade)

    export = commands.add_parser("export", help="an evaluation as LiveCodeBench's files")
    export.add_argument("result", help="result folder of an evaluation, local or s3://")
    export.add_argument("--out", type=Path, required=True, help="folder for submission.json and eval_all.json")

    compare = commands.add_parser("compare", help="two evaluations of the same problems, paired")
    compare.add_argument("first", help="result folder of an evaluation, local or s3://")
    compare.add_argument("second")
    for command in (scores, grade, compare):
        command.add_argument("--confidence", type=float, default=0.95, help="of the intervals (default 0.95)")
    return parser


def _window(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--since", help="first contest date, ISO (DeepCoder's window: 2024-08-01)")
    parser.add_argument("--until", help="last contest date, ISO, inclusive (DeepCoder's: 2025-01-31)")
    parser.add_argument("--platform", help="only this one")
    parser.add_argument("--pass-k", type=int, nargs="+", default=[1, 5, 10], help="those above n are left out")


def in_window(graded: Graded, since: str | None, until: str | None, platform: str | None) -> Graded:
    """The part of an evaluation within contest dates and of a platform.

    Raises:
        UserError: nothing is left.
    """
    questions = [
        question
        for question in graded.questions
        if (not since or (question["contest_date"] or "") >= since)
        and (not until or (question["contest_date"] or "9999") <= until)
        and (not platform or question["platform"] == platform)
    ]
    names = {question["problem_id"] for question in questions}
    if not names:
        raise UserError(f"no problem of {len(graded.questions)} is from {since or 'ever'} to {until or 'now'}"
                        f"{' on ' + platform if platform else ''}")  # fmt: skip
    return Graded(questions, [sample for sample in graded.samples if sample["problem_id"] in names], graded.unsampled)


def _sum_up(
    graded: Graded, options: argparse.Namespace, label: str, out: Path | None, mode: Mode = "lcb"
) -> dict[str, Any]:
    try:
        result = summarize(graded, pass_k=options.pass_k, confidence=options.confidence, mode=mode)
    except ValueError as error:
        raise UserError(f"{options.file}: {error}") from error
    result |= {"label": label, "global_step": 0, "policy": str(options.file)}
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        write_files(out, result, graded, About(label, str(options.file), "", None))
        (out / "eval_all.json").write_text(json.dumps(eval_all(graded), indent=1) + "\n")
    return result


def _scores(options: argparse.Namespace) -> None:
    graded = published_samples(read_generations(options.file))
    graded = in_window(graded, options.since, options.until, options.platform)
    print(summary_markdown(_sum_up(graded, options, options.file.stem, options.out)), end="")


def _grade(options: argparse.Namespace) -> None:
    generations = read_generations(options.file)
    problems = read_problems(options.problems)
    modes: list[Mode] = ["real", "lcb"] if options.mode == "both" else [options.mode]
    graded: dict[Mode, Graded] = {}
    for mode in modes:
        every = grade_generations(generations, problems, partial(grade, mode=mode, workers=options.workers))
        graded[mode] = in_window(every, options.since, options.until, options.platform)
    if len(modes) == 2:
        for ours, theirs in zip(graded["real"].samples, graded["lcb"].samples, strict=True):
            ours["other_verdict"], theirs["other_verdict"] = theirs["verdict"], ours["verdict"]
    for mode in modes:
        attach_failing_tests(graded[mode].samples, options.problems)
        out = options.out / mode if len(modes) > 1 else options.out
        result = _sum_up(graded[mode], options, f"{options.file.stem} ({mode})", out, mode)
        print(
            f"{mode}: pass@1 {span(result['pass@1'])} %, {result['samples']} programs, INFRA {result['infra_samples']}"
        )
    if len(modes) == 2:
        changed = [one for one in graded["real"].samples if one["verdict"] != one["other_verdict"]]
        print(f"{len(changed)} programs on which the modes differ")
        for row in changed:
            print(f"  {row['problem_id']} sample {row['sample_id']}: real {row['verdict']}, lcb {row['other_verdict']}")


def _export(options: argparse.Namespace) -> None:
    for name, count in write_lcb(graded_of(open_evaluation(options.result)), options.out).items():
        print(f"{options.out / name}: {count} problems")


def _compare(options: argparse.Namespace) -> None:
    print(describe(open_evaluation(options.first), open_evaluation(options.second), options.confidence))


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns the exit status: 0, or 2 for bad input."""
    options = _parser().parse_args(arguments)
    try:
        {"scores": _scores, "grade": _grade, "export": _export, "compare": _compare}[options.command](options)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
