from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from components.core.config import Config
from components.core.errors import UserError
from components.core.schema import REWARD_SCHEMA, Problem, read_problems, write_parquet
from components.core.store import Pointer, Store, file_sha256, open_store
from components.data_prep import spool
from components.data_prep.prepare import prepare, run
from components.data_prep.prompt import PromptCounter
from tests.data_prep.rows import (
    accept_all,
    lcb_function_row,
    lcb_row,
    make_config,
    pi_row,
    sum_row,
    taco_function_row,
    words,
    write_jsonl,
)

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "data" / "demo"


def build(config: Config, tmp_path: Path, **given: Any) -> tuple[Pointer, Path, dict[str, Any]]:
    options = {"count_tokens": None, "grade": None, **given}
    pointer = prepare(config=config, output=str(tmp_path / "out.json"), **options)
    folder = open_store(config.store).fetch(pointer)
    return pointer, folder, json.loads((folder / "manifest.json").read_text())


def dropped(folder: Path) -> dict[str, str]:
    rows = map(json.loads, (folder / "dropped.jsonl").read_text().splitlines())
    return {row["problem_id"] or f"{row['file']}:{row['row']}": row["reason"] for row in rows}


def three_sources(tmp_path: Path) -> list[dict[str, Any]]:
    """Sound rows of every source with planted faults."""
    wrong = json.dumps(["a, b = map(int, input().split())\nprint(a - b)\n"])
    copy_of_held_out = lcb_row()["question_content"].replace("You are handed", "You are given")
    taco = [
        sum_row(1),
        sum_row(2, solutions=wrong),
        sum_row(3, question=words(1)),
        sum_row(4, question="Here it comes: " + words(5)),
        sum_row(5),
        sum_row(6, question=copy_of_held_out + " " + copy_of_held_out),
        sum_row(7, question=lcb_row()["question_content"].upper()),
        sum_row(8, question="Guess what, this is an interactive problem. " + words(8)),
        taco_function_row("first", "def first(x):\n    return x[0]", [([[n, 1]], n) for n in range(6)]),
        taco_function_row("pack", "def pack(x):\n    return [x]", [([n], [n]) for n in range(6)], wrap=False),
    ]
    path = write_jsonl(tmp_path / "raw" / "taco.jsonl", taco)
    with open(path, "a") as file:
        file.write('{"question": "cut o\n')
        file.write('{"question": "no tests here", "solutions": "[]"}\n')
    write_jsonl(tmp_path / "raw" / "pi.jsonl", [pi_row(0), pi_row(0), pi_row(1, gold_standard_solution=None)])
    rows = [lcb_row(), lcb_function_row(), lcb_row("abc000_a", "2022-01-01"), lcb_row("abc111_a", "2023-06-01")]
    write_jsonl(tmp_path / "raw" / "lcb.jsonl", rows)
    return [
        {"format": "taco", "path": str(tmp_path / "raw" / "taco.jsonl"), "license": "ours"},
        {"format": "primeintellect", "path": str(tmp_path / "raw" / "pi.jsonl")},
        {"format": "livecodebench", "path": str(tmp_path / "raw" / "lcb.jsonl"), "trusted": True},
    ]


def test_planted_faults_are_each_caught_by_the_real_sandbox(tmp_path: Path) -> None:
    config = make_config(tmp_path, three_sources(tmp_path), near_duplicate_threshold=0.7)
    pointer, folder, manifest = build(config, tmp_path)
    assert dropped(folder) == {
        "taco/1": "reference_failed",
        "taco/2": "duplicate",
        "taco/4": "near_duplicate",
        "taco/6": "contaminated",
        "taco/7": "interactive",
        "taco.jsonl:10": "not_json",
        "taco.jsonl:11": "missing_column",
        "primeintellect/vcp_0": "duplicate_id",
        "primeintellect/vcp_1": "no_reference",
        "livecodebench/abc000_a": "outside_dates",
        "livecodebench/abc111_a": "contaminated",
    }
    train = {problem.problem_id: problem for problem in read_problems(folder / "train")}
    assert list(train) == ["taco/0", "taco/3", "taco/5", "taco/8", "taco/9", "primeintellect/vcp_0"]
    assert {test.output for test in train["taco/9"].tests} == {f"[{n}]" for n in range(6)}
    assert {test.output for test in train["taco/8"].tests} == {str(n) for n in range(6)}
    held = read_problems(folder / "test")
    assert [problem.problem_id for problem in held] == ["livecodebench/abc999_a", "livecodebench/3000"]
    assert [problem.metadata["verified"] for problem in [train["taco/0"], held[0]]] == [True, False]
    for counts in manifest["counts"].values():
        assert counts["rows"] == counts["train"] + counts["test"] + sum(counts["dropped"].values())
    assert pointer.rows == 8
    assert pointer.extra["metrics"]["data/dropped/contaminated"] == 2
    for name, entry in manifest["files"].items():
        assert file_sha256(folder / name) == entry["sha256"]
    licenses = {source["label"]: source["license"] for source in manifest["sources"]}
    assert licenses["taco"] == "ours"
    assert licenses["primeintellect"]
    example = manifest["examples"]["missing_column"][0]
    assert (example["file"], example["row"]) == ("taco.jsonl", 11)
    assert example["detail"].startswith("input_output")


def test_the_same_input_and_seed_give_the_same_bytes(tmp_path: Path) -> None:
    sources = three_sources(tmp_path)
    built = []
    for place in ("one", "two"):
        config = make_config(tmp_path / place, sources, max_train_problems=3)
        _, folder, _ = build(config, tmp_path, grade=accept_all)
        files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "_COMPLETE")
        built.append({path.relative_to(folder).as_posix(): path.read_bytes() for path in files})
    assert built[0] == built[1]
    assert "report.html" in built[0]


def test_a_finished_dataset_is_found_and_other_settings_make_another(tmp_path: Path) -> None:
    sources = three_sources(tmp_path)
    first, _, _ = build(make_config(tmp_path, sources), tmp_path, grade=accept_all)

    def never(_programs: Any) -> Any:
        raise AssertionError("verified again")

    assert build(make_config(tmp_path, sources), tmp_path, grade=never)[0] == first
    other, _, _ = build(make_config(tmp_path, sources, min_tests=6), tmp_path, grade=accept_all)
    assert other.uri != first.uri
    with open(tmp_path / "raw" / "pi.jsonl", "a") as file:
        file.write(json.dumps(pi_row(5)) + "\n")
    assert build(make_config(tmp_path, sources), tmp_path, grade=accept_all)[0].uri != first.uri


def test_worker_processes_give_the_same_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [sum_row(n) for n in range(60)]
    sources = [
        {"format": "taco", "path": str(write_jsonl(tmp_path / "t.jsonl", rows))},
        {"format": "livecodebench", "path": str(write_jsonl(tmp_path / "l.jsonl", [lcb_row()]))},
    ]
    monkeypatch.setattr("components.data_prep.readers.BATCH_ROWS", 10)
    _, alone, _ = build(make_config(tmp_path / "a", sources), tmp_path, grade=accept_all)
    monkeypatch.setattr(spool, "_POOL_FROM", 2)
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {0, 1})
    _, pooled, _ = build(make_config(tmp_path / "b", sources), tmp_path, grade=accept_all)
    name = "train/part-00000.parquet"
    assert (alone / name).read_bytes() == (pooled / name).read_bytes()
    assert len(read_problems(pooled / "train")) == 60


def test_samples_depend_on_seed_and_id_only(tmp_path: Path) -> None:
    rows = [sum_row(n) for n in range(30)]
    held = {"format": "livecodebench", "path": str(write_jsonl(tmp_path / "l.jsonl", [lcb_row()]))}

    def kept(rows: list[dict[str, Any]], seed: int, place: str) -> set[str]:
        sources = [{"format": "taco", "path": str(write_jsonl(tmp_path / place / "t.jsonl", rows))}, held]
        config = make_config(tmp_path / place, sources, max_train_problems=10)
        _, folder, manifest = build(config.model_copy(update={"seed": seed}), tmp_path, grade=accept_all)
        assert manifest["counts"]["taco"]["dropped"] == {"not_sampled": len(rows) - 10}
        return {problem.problem_id for problem in read_problems(folder / "train")}

    all_rows = kept(rows, 0, "a")
    fewer = kept(rows[:29], 0, "b")
    assert len(all_rows & fewer) >= 9
    assert all_rows != kept(rows, 1, "c")


@pytest.mark.parametrize("form", ["jsonl", "rewards"])
def test_what_a_policy_always_or_never_solves_is_taken_out(tmp_path: Path, form: str) -> None:
    samples: dict[str, list[float | None]] = {
        "taco/0": [0.0, 0.0, None],
        "taco/1": [0.0, 1.0, 1.0],
        "taco/2": [1.0, None, 1.0],
    }
    if form == "rewards":
        empty = dict.fromkeys(REWARD_SCHEMA.names)
        rows = [empty | {"problem_id": name, "reward": r} for name, given in samples.items() for r in given]
        path = tmp_path / "reward"
        for shard in range(2):
            (path / f"shard-{shard}").mkdir(parents=True)
            write_parquet(path / f"shard-{shard}" / "chunk.parquet", rows[shard::2], REWARD_SCHEMA)
    else:
        rates = zip(samples, (0.0, 2 / 3, 1.0), strict=True)
        path = write_jsonl(tmp_path / "rates.jsonl", [{"problem_id": name, "solve_rate": r} for name, r in rates])
    sources = [
        {"format": "taco", "path": str(write_jsonl(tmp_path / "t.jsonl", [sum_row(n) for n in range(4)]))},
        {"format": "livecodebench", "path": str(write_jsonl(tmp_path / "l.jsonl", [lcb_row()]))},
    ]
    _, folder, _ = build(make_config(tmp_path, sources, solve_rates=str(path)), tmp_path, grade=accept_all)
    assert dropped(folder) == {"taco/0": "never_solved", "taco/2": "always_solved"}


def test_prompts_are_measured_with_the_given_tokenizer(tmp_path: Path) -> None:
    def tens_of_words(problem: Problem) -> int:
        return 10 * len(problem.question.split())

    sources = three_sources(tmp_path)
    config = make_config(tmp_path, sources, max_prompt_length=16)
    with pytest.raises(UserError) as caught:
        build(config, tmp_path, grade=accept_all, count_tokens=_Counter(tens_of_words))
    text = str(caught.value)
    assert "no problem is left for the train split" in text
    assert "prompt_too_long" in text
    assert "tokens, data.max_prompt_length=16" in text


def test_the_manifest_and_the_report_tell_the_lengths_of_prompts_in_tokens(tmp_path: Path) -> None:
    sources = [
        {"format": "taco", "path": str(write_jsonl(tmp_path / "t.jsonl", [sum_row(n) for n in range(4)]))},
        {"format": "livecodebench", "path": str(write_jsonl(tmp_path / "l.jsonl", [lcb_row()]))},
    ]
    lengths = iter([40, 10, 30, 20, 7])
    counter = _Counter(lambda _: next(lengths))
    _, folder, manifest = build(make_config(tmp_path, sources), tmp_path, grade=accept_all, count_tokens=counter)
    assert manifest["distributions"]["train"]["prompt_tokens"] == {
        "min": 10, "p25": 20, "median": 30, "p75": 30, "max": 40, "mean": 25.0,
    }  # fmt: skip
    assert manifest["distributions"]["test"]["prompt_tokens"]["max"] == 7
    assert "prompt tokens: 10 … 40" in (folder / "report.html").read_text()


class _Counter(PromptCounter):
    """Counts as it is told."""

    identity = "test"

    def __init__(self, count: Any) -> None:
        self._count = count

    def __call__(self, problem: Problem) -> int:
        return int(self._count(problem))


def test_a_broken_file_is_counted_and_the_others_survive(tmp_path: Path) -> None:
    sources = three_sources(tmp_path)
    folder = tmp_path / "taco"
    write_jsonl(folder / "b.jsonl", [sum_row(1)])
    (folder / "a.parquet").write_bytes(b"PAR1 and then nothing")
    sources[0]["path"] = str(folder)
    _, built, manifest = build(make_config(tmp_path, sources), tmp_path, grade=accept_all)
    assert manifest["counts"]["taco"] == {"rows": 2, "train": 1, "test": 0, "dropped": {"unreadable_file": 1}}
    assert dropped(built)["taco/a.parquet:0"] == "unreadable_file"


def test_a_kill_while_verifying_leaves_nothing_that_is_read_and_the_rerun_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("components.data_prep.verify._SAVE_EVERY_S", 0.0)
    config = make_config(tmp_path, three_sources(tmp_path))
    ran: list[str] = []

    def killed(programs: Any) -> Any:
        for verdict in accept_all(programs):
            yield verdict
            if len(ran) == 3:
                raise KeyboardInterrupt
            ran.append(verdict["id"])

    with pytest.raises(KeyboardInterrupt):
        build(config, tmp_path, grade=killed)
    assert not list(Path(config.store).rglob("_COMPLETE"))
    assert list(Path(config.store).rglob("verdicts/*.json"))
    pointer, folder, _ = build(config, tmp_path, grade=accept_all)
    assert pointer.extra["metrics"]["data/programs_known"] >= 3
    assert not (folder / "verdicts").exists()


def byte_policy(config: Config, store: Store) -> Pointer:
    """A policy of which only a tokenizer is there, one token a byte."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={char: i for i, char in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    store.write_bytes(tokenizer.to_str().encode(), "policies/bytes/hf/tokenizer.json")
    return store.commit("policies/bytes", kind="policy", step="prepare_data", rows=1, key="bytes")


@pytest.mark.slow
def test_the_demo_problems_come_through(tmp_path: Path, quiet_tracking: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("components.data_prep.prepare.ensure_base_policy", byte_policy)
    held_out = DEMO / "livecodebench"
    sources = [
        {"format": "taco", "path": str(DEMO / "taco")},
        {"format": "primeintellect", "path": str(DEMO / "primeintellect")},
        {
            "format": "livecodebench",
            "path": str(held_out / "test.jsonl"),
            "solutions": str(held_out / "solutions.jsonl"),
        },
    ]
    config = make_config(tmp_path, sources)
    pointer = run(config=config, output=str(tmp_path / "out.json"))
    folder = open_store(config.store).fetch(pointer)
    train, held = read_problems(folder / "train"), read_problems(folder / "test")
    # Two problems with other words and the same tests may come by; nothing else may be wrong with them.
    assert set(dropped(folder).values()) <= {"duplicate"}
    assert len(train) + len(held) >= 0.95 * pointer.extra["metrics"]["data/rows"]
    assert len(held) >= 60
    assert all(problem.metadata["verified"] for problem in train + held)
    assert not {problem.question for problem in train} & {problem.question for problem in held}
    assert quiet_tracking.artifacts == ["manifest.json", "report.html"]
    page = (folder / "report.html").read_text()
    assert page.count("<details>") == 10
    assert "http" not in page.split("Sampled rows")[0]


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_rows() -> None:
    def peak(rows: int) -> float:
        command = [sys.executable, "-m", "tests.data_prep.measure", str(rows), "16"]
        done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
        return float(json.loads(done.stdout.splitlines()[-1])["peak_rss_mb"])

    few, many = peak(40), peak(160)  # 19 MB and 75 MB of rows, through buffers of 4 MB
    assert many < few + 25
