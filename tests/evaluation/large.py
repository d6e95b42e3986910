"""A made-up evaluation as large as LiveCodeBench's: 279 problems, 16 answers each, judged in both modes."""

from __future__ import annotations

import json

import numpy as np

from components.evaluation.samples import QUESTION_SCHEMA, SAMPLE_SCHEMA, Graded

PROGRAM = "import sys\n\n" + "total = sum(map(int, sys.stdin.read().split()))\n" * 25


def large(problems: int = 279, samples: int = 16, seed: int = 0) -> Graded:
    """Statements and programs of the lengths of real ones; harder problems are solved less often."""
    rng = np.random.default_rng(seed)
    questions, rows = [], []
    for index in range(problems):
        name = f"livecodebench/abc{300 + index}_{'abcdefg'[index % 7]}"
        hard = index % 3
        month = index * 6 // problems
        questions.append(
            dict.fromkeys(QUESTION_SCHEMA.names)
            | {
                "problem_id": name, "source": "livecodebench", "difficulty": ("easy", "medium", "hard")[hard],
                "platform": ("atcoder", "leetcode")[index % 2], "starter_code": "", "metadata": "{}",
                "contest_date": f"{2024 + (7 + month) // 12}-{(7 + month) % 12 + 1:02d}-15",
                "question": f"Problem {index}. " + "You are given a sequence A of N integers <1 & 2>. " * 40,
            }
        )  # fmt: skip
        skill = rng.beta(2, 2) * (1.0, 0.8, 0.4)[hard]
        for sample in range(samples):
            verdict = "AC" if rng.random() < skill else str(rng.choice(["WA", "WA", "WA", "TLE", "RE", "NF"]))
            other = "RE" if verdict == "AC" and rng.random() < 0.01 else verdict
            tokens = int(rng.lognormal(9, 0.6))
            failure = {"test": "3 of 40", "input": "5\n1 2 3 4 5\n" * 30, "expected": "15\n"}
            rows.append(
                dict.fromkeys(SAMPLE_SCHEMA.names)
                | {
                    "problem_id": name, "sample_id": sample, "verdict": verdict, "correct": verdict == "AC",
                    "well_formed": verdict != "NF", "finish_reason": "length" if verdict == "NF" else "stop",
                    "response_tokens": tokens, "tests_passed": 2, "tests_total": 40, "cpu_ms": 40.0,
                    "other_verdict": other, "excerpt": None if verdict != "NF" else "so the answer is " * 60,
                    "first_failure": None if verdict in ("AC", "NF") else json.dumps(failure),
                    "program": None if verdict == "NF" else PROGRAM,
                }
            )  # fmt: skip
    questions.sort(key=lambda question: str(question["problem_id"]))
    rows.sort(key=lambda row: (str(row["problem_id"]), row["sample_id"]))
    return Graded(questions, rows, 0)
