"""Real rows of the published sources, where they are at hand."""

from __future__ import annotations

import ast
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from components.core.schema import read_problems
from components.data_prep.literals import decode_private_tests
from tests.data_prep.rows import accept_all, encode_private, lcb_row, make_config, shared, sum_row, write_jsonl
from tests.data_prep.test_prepare import build, dropped


def load(name: str) -> Any:
    return json.loads(shared(name).read_text())


def published() -> dict[str, dict[str, Any]]:
    """LiveCodeBench problems of all releases by statement."""
    return {row["question_content"]: row for row in load("lcb/Qwen2.5-Ins-7B-ZeroShotCoT_codegeneration_eval_all.json")}


def accepted_programs() -> dict[str, list[str]]:
    """Programs that the official harness passed on all tests, by statement."""
    found: dict[str, list[str]] = defaultdict(list)
    for name in ("Qwen2.5-Ins-7B-ZeroShotCoT_codegeneration_eval_all", "Qwen2.5-Ins-7B_selfrepair_eval_all"):
        for row in load(f"lcb/{name}.json"):
            for code, passed in zip(row["code_list"], row["graded_list"], strict=True):
                if passed:
                    found[row["question_content"]].append(code if isinstance(code, str) else code[-1])
    return found


def as_lcb_row(raw: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """A row of the data set itself: metadata from the published run, tests from rLLM's copy."""
    name = raw["starter_code"].partition("def ")[2].partition("(")[0]
    keys = ("question_title", "question_content", "platform", "question_id", "contest_id", "contest_date", "difficulty")
    return {key: known[key] for key in keys} | {
        "starter_code": raw["starter_code"],
        "public_test_cases": json.dumps(raw["tests"]),
        "private_test_cases": encode_private([]),
        "metadata": json.dumps({"func_name": name} if name else {}),
    }


def test_the_580_and_279_problems_follow_from_contest_dates(tmp_path: Path) -> None:
    known = published()
    train, held = (
        load("rllm/train_code_livecodebench_580_public.json"),
        load("rllm/test_code_livecodebench_279_public.json"),
    )
    rows = [as_lcb_row(raw, known[raw["problem"]]) for raw in held + train]
    path = write_jsonl(tmp_path / "lcb.jsonl", rows)
    config = make_config(
        tmp_path,
        [{"format": "livecodebench", "path": str(path), "trusted": True}],
        min_tests=1,
        keep_special_judge=True,
        near_duplicate_threshold=1.0,
    )
    _, folder, manifest = build(config, tmp_path, grade=accept_all)
    counts = manifest["counts"]["livecodebench"]
    kept_train, kept_held = read_problems(folder / "train"), read_problems(folder / "test")
    assert (counts["rows"], counts["train"], counts["test"]) == (859, 580, 279), counts
    assert {problem.question for problem in kept_train} == {raw["problem"] for raw in train}
    assert {problem.question for problem in kept_held} == {raw["problem"] for raw in held}
    assert max(str(p.contest_date) for p in kept_train) == "2024-07-27"
    assert min(str(p.contest_date) for p in kept_held) == "2024-08-03"


def test_the_published_rows_with_tests_of_other_problems_are_caught(tmp_path: Path) -> None:
    broken = load("rllm/test_code_livecodebench_279_MISMATCHED_private.json")
    programs = accepted_programs()
    rows = [raw | {"solutions": programs.get(raw["problem"], [])} for raw in broken]
    sources = [
        {"format": "deepcoder", "path": str(write_jsonl(tmp_path / "broken.jsonl", rows)), "split": "test"},
        {"format": "taco", "path": str(write_jsonl(tmp_path / "t.jsonl", [sum_row(1)]))},
        {"format": "livecodebench", "path": str(write_jsonl(tmp_path / "l.jsonl", [lcb_row()]))},
    ]
    _, folder, manifest = build(make_config(tmp_path, sources, keep_unverified_test=True), tmp_path)
    reasons = Counter(manifest["counts"]["deepcoder"]["dropped"])
    # Counted from the file by another way: rows in which both kinds of test stand.
    assert reasons["mixed_test_kinds"] == sum(len({test["testtype"] for test in raw["tests"]}) == 2 for raw in broken)
    assert reasons.total() >= 0.97 * len(broken), reasons
    # What is left is what no program that is known to be right could be run on.
    left = {problem.question for problem in read_problems(folder / "test")} - {lcb_row()["question_content"]}
    assert not any(programs.get(question) for question in left)


def test_real_public_tests_are_never_taken_for_those_of_another_problem(tmp_path: Path) -> None:
    sources = [
        {"format": "deepcoder", "path": str(shared(f"rllm/{name}.json")), "split": split, "name": split}
        for name, split in (
            ("test_code_livecodebench_279_public", "test"),
            ("train_code_livecodebench_580_public", "train"),
        )
    ]
    config = make_config(tmp_path, sources, min_tests=1, keep_special_judge=True, verify=False)
    _, _, manifest = build(config, tmp_path)
    for counts in manifest["counts"].values():
        assert set(counts["dropped"]) <= {"duplicate", "near_duplicate", "contaminated"}


def test_primeintellect_rows_are_verified_by_their_own_references(tmp_path: Path) -> None:
    rows = [
        {
            "source": "codeforces",
            "task_type": "verifiable_code",
            "prompt": raw["problem"],
            "gold_standard_solution": raw["solutions"][0],
            "verification_info": repr({"language": "python", "test_cases": raw["tests"]}),
            "metadata": "{'difficulty': None}",
            "problem_id": f"vcp_{i}",
        }
        for i, raw in enumerate(load("rllm/train_code_verify_10_primeintellect.json"))
    ]
    spoiled = dict(rows[1], problem_id="vcp_spoiled", prompt="A statement of its own, for the same tests, but wrong.")
    spoiled["gold_standard_solution"] = "```python\nprint('42')\n```"
    sources = [
        {"format": "primeintellect", "path": str(write_jsonl(tmp_path / "pi.jsonl", [*rows, spoiled]))},
        {"format": "livecodebench", "path": str(write_jsonl(tmp_path / "l.jsonl", [lcb_row()]))},
    ]
    _, folder, _ = build(make_config(tmp_path, sources, min_tests=1, keep_special_judge=True), tmp_path)
    gone = dropped(folder)
    assert gone.pop("primeintellect/vcp_spoiled") == "reference_failed"
    assert len(read_problems(folder / "train")) + len(gone) == 10
    # Problems with many right answers were made with the reference's own output, so that it passes.
    assert set(gone.values()) <= {"reference_failed"}
    assert len(gone) <= 1, gone


def test_leetcode_references_pass_tests_made_from_their_assertions(tmp_path: Path) -> None:
    rows = []
    for number, raw in enumerate(load("rllm/train_code_leetcodedataset_1890.json")[:150]):
        if (columns := assertions(raw["tests"]["functional"], raw["completion"])) is not None:
            rows.append(
                {"problem": raw["problem"], "tests": columns, "solutions": [raw["completion"]], "question_id": number}
            )
    assert len(rows) > 80
    sources = [
        {"format": "deepcoder", "path": str(write_jsonl(tmp_path / "leet.jsonl", rows)), "name": "leetcode"},
        {"format": "livecodebench", "path": str(write_jsonl(tmp_path / "l.jsonl", [lcb_row()]))},
    ]
    _, _, manifest = build(make_config(tmp_path, sources, min_tests=1, keep_special_judge=True), tmp_path)
    counts = manifest["counts"]["deepcoder-leetcode"]
    assert counts["train"] >= 0.97 * len(rows), counts


def assertions(check: str, completion: str) -> dict[str, Any] | None:
    """{fn_name, inputs, outputs} out of `assert candidate(a = 1) == 2` lines; None if they are of another form."""
    parameters = [
        [argument.arg for argument in node.args.args if argument.arg != "self"]
        for top in ast.parse(completion).body
        if isinstance(top, ast.ClassDef) and top.name == "Solution"
        for node in top.body
        if isinstance(node, ast.FunctionDef) and f"check(Solution().{node.name})" in check
    ]
    if len(parameters) != 1:
        return None
    inputs, outputs = [], []
    for node in ast.walk(ast.parse(check)):
        if not isinstance(node, ast.Assert):
            continue
        match node.test:
            case ast.Compare(
                left=ast.Call(func=ast.Name("candidate"), args=[], keywords=given), ops=[ast.Eq()], comparators=[value]
            ):
                pass
            case _:
                return None
        try:
            named = {keyword.arg: ast.literal_eval(keyword.value) for keyword in given}
            outputs.append(ast.literal_eval(value))
        except ValueError:
            return None
        if list(named) != parameters[0]:
            return None
        inputs.append(list(named.values()))
    name = check.partition("check(Solution().")[2].partition(")")[0]
    return {"fn_name": name, "inputs": inputs, "outputs": outputs} if inputs else None


def test_private_tests_in_the_original_encoding_are_decoded() -> None:
    for line in shared("sandboxfusion/code_eval_live_code_bench_v1.jsonl").read_text().splitlines():
        cases = decode_private_tests(json.loads(line)["test"], "test")
        assert cases
        assert all({"input", "output"} <= set(case) for case in (cases if isinstance(cases, list) else []))
