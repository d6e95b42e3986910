from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from components.core.config import Config
from components.core.errors import UserError
from components.core.paths import iteration_path, shard_path
from components.core.plugin import load_function
from components.core.schema import (
    PROBLEM_SCHEMA,
    REWARD_SCHEMA,
    ROLLOUT_SCHEMA,
    SECOND_MODE,
    Problem,
    Test,
    read_parquet_dir,
    write_parquet,
)
from components.core.store import Pointer, Store, open_store
from components.reward import score
from pipelines.compile import load_profile
from sandbox import grade

ADD = Problem(
    "add",
    "demo",
    "Write a Python function `add(a, b)` that returns a + b.",
    [Test("function", f"[{a}, {a + 1}]", str(2 * a + 1)) for a in range(5)],
    fn_name="add",
)
ECHO = Problem("echo", "demo", "Print what you read.", [Test("stdin", f"{a}\n", f"{a}\n") for a in range(5)])
ANSWERS = {
    ("add", 0): ("```python\ndef add(a, b):\n    return a + b\n```", "AC", 1.0, True),
    ("add", 1): ("```python\ndef add(a, b):\n    return a - b\n```", "WA", 0.0, True),
    ("add", 2): ("def add(a, b):\n    return a + b", "NF", 0.0, False),
    ("add", 3): ("Here:\n```python\ndef add(a, b):\n    return a + b\n", "AC", 1.0, False),
    ("add", 4): ("```python\ndef add(a, b:\n    return a + b\n```", "CE", 0.0, True),
    ("echo", 0): ("```python\nprint(input())\n```", "AC", 1.0, True),
    ("echo", 1): ("```python\nwhile True: pass\n```", "TLE", 0.0, True),
    ("echo", 2): ("```\nimport os\nos.fork()\nprint(input())\n```", "RE", 0.0, True),
}


@pytest.fixture
def config(tmp_path: Path) -> Config:
    overrides = [f"store={tmp_path / 'store'}", "reward.function=components.reward.functions:all_tests"]
    return load_profile("micro", overrides)[1]


def rollouts(
    config: Config, phase: str = "train", changes: list[dict[str, Any]] | None = None
) -> tuple[Store, Pointer, Pointer]:
    """`changes`: instead of ANSWERS, an answer to `add` each, with these columns."""
    store = open_store(config.store)
    with store.scratch() as scratch:
        for split in ("train", "test"):
            (scratch / split).mkdir()
            rows = [{**problem.to_row(), "time_limit_s": 1.0} for problem in (ADD, ECHO)]
            write_parquet(scratch / split / "part-0.parquet", rows, PROBLEM_SCHEMA)
        store.put_dir(scratch, "datasets/d")
    dataset = store.commit("datasets/d", kind="dataset", step="prepare_data", rows=4, key="k")
    where = shard_path(iteration_path(config, 1, 0), "rollout", 0)
    rows = [
        {
            "policy_version": "base",
            "problem_id": problem,
            "sample_id": sample,
            "turn": 0,
            "role": "solver",
            "prompt_ids": [1],
            "response_ids": [2],
            "rollout_logprobs": [-1.0],
            "finish_reason": "stop",
            "temperature": 1.0,
            "top_p": 1.0,
            "text": text,
            "seconds": 1.0,
        }
        for (problem, sample), (text, *_) in ANSWERS.items()
    ]
    if changes is not None:
        rows = [{**rows[0], "sample_id": number, **change} for number, change in enumerate(changes)]
    with store.scratch() as scratch:
        write_parquet(scratch / "c", rows, ROLLOUT_SCHEMA)
        store.put(scratch / "c", f"{where}/chunk-00000.parquet")
    return store, dataset, store.commit(where, kind="rollouts", step="rollout", rows=8, key="k", phase=phase)


def graded(store: Store, pointer: Pointer) -> dict[tuple[str, int], dict[str, Any]]:
    rows = read_parquet_dir(store.fetch(pointer), REWARD_SCHEMA)
    return {(row["problem_id"], row["sample_id"]): row for row in rows}


def test_each_answer_gets_the_verdict_and_reward_it_deserves(config: Config, tmp_path: Path) -> None:
    store, dataset, sampled = rollouts(config)
    pointer = score.run(config=config, dataset=dataset, rollouts=sampled, output=str(tmp_path / "out"))
    rows = graded(store, pointer)
    found = {key: (row["verdict"], row["reward"], row["well_formed"]) for key, row in rows.items()}
    assert found == {key: tuple(expected) for key, (_, *expected) in ANSWERS.items()}
    assert pointer.uri.endswith("stage-1/iter-00/reward/shard-00")
    assert Pointer(**pointer.extra["rollouts"]) == sampled


def test_what_the_sandbox_cannot_judge_has_no_reward(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, dataset, sampled = rollouts(config)

    def broken(programs: Any, **_: Any) -> Any:
        for program in programs:
            yield {"id": program["id"], "verdict": "INFRA", "passed": 0, "total": 5, "cpu_ms": 0.0, "wall_ms": 0.0}

    monkeypatch.setattr(score, "grade", broken)
    pointer = score.run(config=config, dataset=dataset, rollouts=sampled, output=str(tmp_path / "out"))
    assert {row["reward"] for row in graded(store, pointer).values()} == {None}
    assert pointer.extra["metrics"]["reward/unscored"] == 8


def test_an_answer_that_was_cut_off_is_neither_run_nor_scored_and_a_turn_is_graded_by_what_it_stands_for(
    config: Config, tmp_path: Path
) -> None:
    good, bad = (ANSWERS["add", sample][0] for sample in (0, 1))
    changes = [
        {"finish_reason": "unfinished", "text": good},
        {"role": "judge", "text": "The second one.", "answer": good},
        {"role": "judge", "text": good, "answer": bad},
        {"role": "judge", "text": good, "answer": ""},
    ]
    store, dataset, sampled = rollouts(config, changes=changes)
    pointer = score.run(config=config, dataset=dataset, rollouts=sampled, output=str(tmp_path / "out"))
    found = [(row["verdict"], row["reward"]) for _, row in sorted(graded(store, pointer).items())]
    assert found == [("INFRA", None), ("AC", 1.0), ("WA", 0.0), ("NF", 0.0)]
    assert pointer.extra["metrics"]["reward/unfinished"] == 1


@pytest.mark.parametrize("test", [Test("function", "[1, 2", "3"), Test("function", "[1, 2]", "three")])
def test_a_test_that_cannot_be_decoded_gives_no_reward_at_all(test: Test) -> None:
    problem = Problem("add", "demo", "", [test], fn_name="add")
    code = "def add(a, b):\n    return a + b"
    [verdict] = grade([problem.sandbox_program("k", code)], workers=1)
    assert verdict["verdict"] == "INFRA"


def test_a_restart_grades_only_what_was_not_committed(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, dataset, sampled = rollouts(config)
    monkeypatch.setattr(score, "_PART_ROWS", 2)
    seen: list[str] = []

    def dies(programs: Any, **options: Any) -> Any:
        for count, verdict in enumerate(grade(programs, **options)):
            if count == 5:
                raise KeyboardInterrupt
            yield verdict

    def counts(programs: Any, **options: Any) -> Any:
        for verdict in grade(programs, **options):
            seen.append(verdict["id"])
            yield verdict

    monkeypatch.setattr(score, "grade", dies)
    with pytest.raises(KeyboardInterrupt):
        score.run(config=config, dataset=dataset, rollouts=sampled, output=str(tmp_path / "out"))
    monkeypatch.setattr(score, "grade", counts)
    pointer = score.run(config=config, dataset=dataset, rollouts=sampled, output=str(tmp_path / "out"))
    assert len(seen) == 4  # two parts of two were committed before the kill
    assert len(graded(store, pointer)) == 8
    files = list((store.fetch(pointer) / "graded").glob("*.parquet"))
    assert sum(pq.read_metadata(file).num_rows for file in files) == 8


def test_shuffled_rewards_are_the_same_rewards_elsewhere_and_only_in_training(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(score, "_PART_ROWS", 3)
    shuffled = config.model_copy(update={"reward": config.reward.model_copy(update={"shuffle": True})})
    store, dataset, sampled = rollouts(config)
    pointer = score.run(config=shuffled, dataset=dataset, rollouts=sampled, output=str(tmp_path / "out"))
    rows = graded(store, pointer)
    expected = {key: reward for key, (_, _, reward, _) in ANSWERS.items()}
    assert sorted(row["reward"] for row in rows.values()) == sorted(expected.values())
    assert {key: row["reward"] for key, row in rows.items()} != expected
    store, dataset, sampled = rollouts(config, phase="eval")
    pointer = score.run(config=shuffled, dataset=dataset, rollouts=sampled, output=str(tmp_path / "out"))
    assert {key: row["reward"] for key, row in graded(store, pointer).items()} == expected


@pytest.mark.parametrize("name", ["no.such:f", "components.reward.functions:nope", "components.reward.functions"])
def test_a_reward_function_that_is_not_there_is_named(name: str) -> None:
    with pytest.raises(UserError, match=f"reward.function={name}"):
        load_function(name, "reward.function")


@pytest.mark.parametrize(
    ("text", "well_formed"),
    [
        ("```python\nx\n```", True),
        ("a\n```py\nx\ny\n```\nb", True),
        ("```\nx\n```", True),
        ("```python\nx\n", False),
        ("```bash\nx\n```", False),
        ("x", False),
        # Read in one pass: a pattern over the whole would take hours.
        ("x```\n" * 10**6, False),
    ],
)
def test_right_format_is_a_closed_python_block(text: str, well_formed: bool) -> None:
    assert score.is_well_formed(text) is well_formed


def test_held_out_answers_are_judged_in_both_modes_and_training_answers_in_one(config: Config, tmp_path: Path) -> None:
    # A process reads one line; the official harness hands out an empty one more.
    reads = "import sys\nlines = sys.stdin.readlines()\nprint(lines[0].strip() if len(lines) == 1 else 'no')"
    changes = [
        {"problem_id": "echo", "text": f"```python\n{reads}\n```"},
        {"problem_id": "echo", "text": ANSWERS["echo", 0][0]},
    ]
    store, dataset, sampled = rollouts(config, phase="eval", changes=changes)
    pointer = score.run(config=config, dataset=dataset, rollouts=sampled, output=str(tmp_path / "out"))
    assert [row["verdict"] for row in graded(store, pointer).values()] == ["AC", "AC"]
    second = list(read_parquet_dir(store.fetch(pointer) / SECOND_MODE, REWARD_SCHEMA))
    assert [(row["sample_id"], row["verdict"], row["reward"]) for row in second] == [(0, "WA", None), (1, "AC", None)]
    store, dataset, sampled = rollouts(config, changes=changes)
    pointer = score.run(config=config, dataset=dataset, rollouts=sampled, output=str(tmp_path / "out"))
    assert not (store.fetch(pointer) / SECOND_MODE).exists()
