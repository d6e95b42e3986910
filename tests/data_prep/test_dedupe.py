from __future__ import annotations

import json
import random
import re

import numpy as np
import pytest

from components.data_prep import sketch
from components.data_prep.dedupe import bands, drop_contaminated, drop_duplicates, jaccard
from components.data_prep.rows import Entry
from tests.data_prep.rows import shared

WORDS = [f"w{i}" for i in range(400)]


def entry(name: str, text: str, split: str = "train", tests: str = "") -> Entry:
    statement, shingles = sketch.statement_hash(sketch.words(text)), sketch.shingles(sketch.words(sketch.body(text)))
    version = sketch.version_of(text)
    return Entry(name, "taco", split, "f", 0, 0, 0, name, statement, tests or name, shingles, version, 1)


def sentence(seed: int, length: int = 120) -> list[str]:
    return random.Random(seed).choices(WORDS, k=length)


def test_case_markup_and_a_sources_wrapper_do_not_count() -> None:
    plain = "Given n integers, print the largest one of them on one line."
    wrapped = (
        "Solve the following coding problem using the programming language python:\n\n**Given** $n$ integers, print"
        " the LARGEST one of them\n on one line.\n\nThe input will be stdin and you should print your solution to "
        "stdout\n\nNow solve the problem and return the code."
    )
    entries = [entry("a", plain), entry("b", wrapped), entry("c", plain.replace("largest", "smallest"))]
    drop_duplicates(entries, 0.8)
    assert [e.reason for e in entries] == ["", "duplicate", ""]
    assert entries[1].detail == "same statement as a"


def test_jaccard_is_the_share_of_common_shingles() -> None:
    left, right = np.array([1, 2, 3, 4], dtype=np.uint64), np.array([3, 4, 5], dtype=np.uint64)
    assert jaccard(left, right) == pytest.approx(2 / 5)


def test_near_duplicates_are_found_as_an_exhaustive_comparison_finds_them() -> None:
    rng = random.Random(0)
    texts = []
    for seed in range(60):
        base = sentence(seed)
        texts.append(base)
        for changes in (1, 3, 6, 12):
            copy = list(base)
            for _ in range(changes):
                copy[rng.randrange(len(copy))] = rng.choice(WORDS)
            texts.append(copy)
    entries = [entry(str(i), " ".join(text)) for i, text in enumerate(texts)]
    kept: list[Entry] = []
    expected = []
    for one in entries:
        expected.append(any(jaccard(one.shingles, other.shingles) >= 0.8 for other in kept))
        if not expected[-1]:
            kept.append(one)
    drop_duplicates(entries, 0.8)
    assert [bool(one.reason) for one in entries] == expected
    assert 60 < sum(expected) < 240


def test_problems_with_the_same_tests_are_the_same() -> None:
    entries = [entry("a", " ".join(sentence(1)), tests="t"), entry("b", " ".join(sentence(2)), tests="t")]
    drop_duplicates(entries, 0.8)
    assert (entries[1].reason, entries[1].detail) == ("duplicate", "same tests as a")


def test_training_problems_of_the_held_out_set_leave_and_the_held_out_ones_stay() -> None:
    base = sentence(3)
    near = [*base[:-1], "changed"]
    held = entry("h", " ".join(base), "test")
    train = [entry("t1", " ".join(near)), entry("t2", " ".join(sentence(4)))]
    drop_contaminated(train, [held], 0.8)
    assert [held.reason, train[0].reason, train[1].reason] == ["", "contaminated", ""]
    assert train[0].detail.endswith("as held-out h")


@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.8, 0.95, 1.0])
def test_a_pair_at_the_threshold_is_hardly_ever_overlooked(threshold: float) -> None:
    count, rows = bands(threshold)
    assert count * rows <= 128
    assert (1 - threshold**rows) ** count <= 1e-3


def test_examples_formats_and_subscripts_of_a_copy_do_not_count() -> None:
    text = " ".join(sentence(8, 40)) + " {i_0} of 10^{9} and i_{k}"
    one = text + "\n\nExample 1:\n\nInput: nums = [1, 2]\nOutput: 3\n\nConstraints:\n\n1 <= n <= 100"
    two = "**" + text.replace("{i_0}", "$i0$").replace("10^{9}", "10^9") + "**\n\n-----Input-----\n\nOne line with n."
    entries = [entry("a", one), entry("b", two)]
    drop_duplicates(entries, 0.95)
    assert entries[1].reason == "near_duplicate"


def test_easy_and_hard_versions_are_two_problems_but_contaminate_each_other() -> None:
    text = "This is the {} version of the problem. " + " ".join(sentence(9))
    easy, hard = entry("e", text.format("easy")), entry("h", text.format("hard"))
    drop_duplicates([easy, hard], 0.8)
    assert not hard.reason
    drop_contaminated([easy], [hard], 0.8)
    assert easy.reason == "contaminated"


def test_copies_in_two_real_files_are_those_whose_functions_have_one_name() -> None:
    first = json.loads(shared("rllm/train_code_livecodebench_580_public.json").read_text())
    second = json.loads(shared("rllm/train_code_leetcodedataset_1890.json").read_text())
    held = {f"a{i}": row for i, row in enumerate(first) if row["starter_code"]}
    train = {f"b{i}": row for i, row in enumerate(second)}
    called = {name: re.findall(r"def (\w+)\(", row["starter_code"]) for name, row in held.items()}
    called |= {name: re.findall(r"Solution\(\)\.(\w+)\)", row["tests"]["functional"]) for name, row in train.items()}
    entries = [entry(name, row["problem"]) for name, row in train.items()]
    drop_contaminated(entries, [entry(name, row["problem"], "test") for name, row in held.items()], 0.8)
    found = [(one.problem_id, one.detail.split()[-1]) for one in entries if one.reason]
    # Statements alone decided; names are another witness. Four problems of both files were reworded in between.
    assert all(called[one] == called[other] for one, other in found)
    assert len(found) >= 69
