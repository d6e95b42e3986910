"""Samples one shard batch by batch, and writes the rows as they are finished."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from components.core.progress import Progress, say
from components.core.schema import ROLLOUT_SCHEMA, Problem
from components.core.seeds import derive_seed
from components.core.step import Step
from components.rollout.drive import Driver, Trajectory
from components.rollout.engine import Engine
from components.rollout.journal import Journal, turns_too_long
from components.rollout.public_tests import PublicTests
from components.rollout.rows import rows_of
from components.rollout.task import Task, first_messages
from components.rollout.trajectory import Case, load_mode, public_part


class Shard:
    """The samples of one shard; a context manager, since a mode may start the sandbox."""

    def __init__(self, step: Step, engine: Engine, task: Task, version: str) -> None:
        """Nothing is sampled yet.

        Args:
            step: for the configuration and the store.
            engine: with the policy.
            task: what to sample.
            version: the policy's.
        """
        self._step, self._engine, self._task, self._version = step, engine, task, version
        self._config = step.config
        self._mode = load_mode(task.mode, task.mode_options)
        self._tests = PublicTests(self._config.reward)
        self._prompts_too_long = 0
        self._longest_prompt = self._config.context_length - task.sampling.max_new_tokens
        self._deadline = math.inf

    def __enter__(self) -> Shard:
        self._tests.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._tests.__exit__(*error)

    def fitting(self, problems: list[Problem]) -> list[Problem]:
        """The problems whose prompt is not too long; the others are counted and named."""
        limit, why = self._config.data.max_prompt_length, "data.max_prompt_length"
        room = self._longest_prompt - len(self._engine.encode(self._task.sampling.prefix))
        if room < limit:
            limit, why = room, "context_length - max_response_length - rollout.answer_prefix"
        lengths = [len(self._engine.encode_chat(first_messages(self._config.rollout, one))) for one in problems]
        out = [problem.problem_id for problem, length in zip(problems, lengths, strict=True) if length > limit]
        if out:
            named = ", ".join(out[:5]) + (", …" if len(out) > 5 else "")
            left = f"{len(out)} of {len(problems)} problems are left out"
            say(self._step.label, f"{left}: their prompt is longer than {why}={limit}: {named}")
        self._prompts_too_long = len(out)
        return [problem for problem in problems if problem.problem_id not in set(out)]

    def sample(self, problems: list[Problem]) -> dict[str, float]:
        """Sample batch by batch; a batch whose file is there is only counted. Returns the step's metrics."""
        rollout, step = self._config.rollout, self._step
        size = max(len(problems), 1) if self._engine.continuous else rollout.chunk_prompts
        self._progress = Progress(step.label, len(problems) * self._task.n, "samples")
        self._finished = self._fresh = 0
        self._start = time.monotonic()
        self._deadline = self._start + (rollout.wall_limit_s or math.inf)
        have = step.store.list(step.where)
        tables = []
        for number, start in enumerate(range(0, len(problems), size)):
            name = f"chunk-{number:05d}.parquet"
            if name in have:
                tables.append(pq.read_table(step.store.local_file(f"{step.where}/{name}")))
                self._finished += len(problems[start : start + size]) * self._task.n
                continue
            tables.append(self._batch(name, problems[start : start + size]))
        spent = time.monotonic() - self._start
        return _metrics(pa.concat_tables([ROLLOUT_SCHEMA.empty_table(), *tables])) | {
            "prompts/too_long": float(self._prompts_too_long),
            "turns/too_long": float(sum(map(turns_too_long, tables))),
            "rollout/tokens_per_s": self._fresh / spent if self._fresh else 0.0,
            "timing_s/generate": spent,
        }

    def _batch(self, name: str, problems: list[Problem]) -> pa.Table:
        """Sample what an earlier try had not, and write the batch's file."""
        store, where = self._step.store, self._step.where
        folder = f"{where}/partial/{name.removesuffix('.parquet')}"
        journal = Journal(store, folder, keep=not self._config.rollout.exact_resume)
        there = journal.samples()
        self._finished += len(there)
        driver = Driver(
            self._engine,
            self._tests,
            self._task.sampling,
            seed_of=self._seed,
            longest_prompt=self._longest_prompt,
            deadline=self._deadline,
        )
        for trajectory in driver.run(self._trajectories(problems, there)):
            rows = rows_of(trajectory, self._task.sampling, self._version, driver.prefix_ids)
            journal.add(rows, trajectory.too_long)
            self._count(rows)
        table = journal.table()
        with store.scratch() as scratch:
            pq.write_table(table, scratch / name, compression="zstd")
            store.put(scratch / name, f"{where}/{name}")
        journal.drop()
        return table

    def _trajectories(self, problems: list[Problem], there: set[tuple[str, int]]) -> Iterator[Trajectory]:
        for problem in problems:
            shown = public_part(problem)
            messages = first_messages(self._config.rollout, shown)
            for sample in range(self._task.n):
                if (problem.problem_id, sample) not in there:
                    rng = random.Random(self._place(problem.problem_id, sample, "mode"))
                    own = [dict(message) for message in messages]
                    yield Trajectory(shown, sample, self._mode(Case(shown, own, rng)))

    def _place(self, problem_id: str, *where: str | int) -> int:
        return derive_seed(self._config.seed, *self._task.seed_path, problem_id, *where)

    def _seed(self, problem_id: str, sample: int, turn: int) -> int:
        return self._place(problem_id, sample, turn) if turn else self._place(problem_id, sample)

    def _count(self, rows: list[dict[str, Any]]) -> None:
        self._finished += 1
        self._fresh += sum(len(row["response_ids"]) for row in rows)
        rate = f"{self._fresh / (time.monotonic() - self._start):.0f} tokens/s"
        self._progress.update(self._finished, rate)


def _metrics(table: pa.Table) -> dict[str, float]:
    """Of all rows, those of an earlier try included."""
    tokens = pc.sum(pc.list_value_length(table["response_ids"])).as_py() or 0
    cut = pc.sum(pc.equal(table["finish_reason"], "length")).as_py() or 0
    unfinished = table.filter(pc.equal(table["finish_reason"], "unfinished"))
    turns = max(table.num_rows, 1)
    return {
        "rollout/samples": float(_samples(table)),
        "rollout/unfinished": float(_samples(unfinished)),
        "rollout/turns": float(table.num_rows),
        "rollout/tokens": float(tokens),
        "response_length/mean": tokens / turns,
        "response_length/clip_ratio": cut / turns,
    }


def _samples(table: pa.Table) -> int:
    count: int = table.select(["problem_id", "sample_id"]).group_by(["problem_id", "sample_id"]).aggregate([]).num_rows
    return count
