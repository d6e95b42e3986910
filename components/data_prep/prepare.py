"""The step `prepare_data`: raw sources in, a verified, deduplicated and decontaminated dataset out."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from components.core.config import Config
from components.core.errors import UserError
from components.core.paths import dataset_path
from components.core.policy import ensure_base_policy
from components.core.progress import say
from components.core.seeds import derive_seed
from components.core.step import Step
from components.core.store import Pointer, Store, config_hash, file_sha256, open_store
from components.data_prep.dedupe import drop_contaminated, drop_duplicates
from components.data_prep.output import Ledger, Written, manifest, write_shards
from components.data_prep.prompt import PromptCounter
from components.data_prep.report import render
from components.data_prep.rows import Entry, alive
from components.data_prep.sources import Opened, open_sources, read_solve_rates, solve_rates_hash
from components.data_prep.spool import CountTokens, parse_source
from components.data_prep.verify import Grade, Verdicts, verify

FORMAT = 1
"""Raised when the same input would give other rows than before, so that older datasets are not taken for current."""

_SAY_EVERY_S = 10.0


def run(*, config: Config, output: str) -> Pointer:
    """Prepare the configured sources, or find that it was done before.

    Args:
        config: the run's; the dataset depends on its data section, its seed, and the bytes of the sources.
        output: where the pointer goes.

    Returns:
        A pointer of kind `dataset`; the folder holds train/ and test/ (parquet, PROBLEM_SCHEMA), manifest.json,
        report.html and dropped.jsonl.

    Raises:
        UserError: a source is absent, or no problem of a split survives.
    """
    store = open_store(config.store)
    before = time.time()
    policy = ensure_base_policy(config, store)
    worked_s = time.time() - before
    counter = PromptCounter.from_policy(store, policy, config.rollout)
    return prepare(config=config, output=output, count_tokens=counter, grade=None, worked_s=worked_s)


def prepare(
    *,
    config: Config,
    output: str,
    count_tokens: PromptCounter | None,
    grade: Grade | None,
    worked_s: float = 0.0,
) -> Pointer:
    """`run` with its token counter and its grader given; None for no length filter, and for the sandbox.

    `worked_s`: seconds of work since the step's start.
    """
    opened = open_sources(config.data.sources)
    settings = {
        "format": FORMAT,
        "data": config.data.model_dump(mode="json"),
        "seed": config.seed,
        "sources": [source.fingerprint for source in opened],
        "prompts": count_tokens.identity if count_tokens else None,
        "solve_rates": solve_rates_hash(config.data.solve_rates),
    }
    where = dataset_path(config_hash(settings))
    with Step(config, "prepare_data", where, settings=settings, inputs={}, output=output) as step:
        if step.pointer is not None:
            return step.pointer
        if grade is None:
            from sandbox import grade as sandbox_grade

            grade = partial(sandbox_grade, workers=config.reward.workers)
        step.ready(worked_s)
        with step.store.scratch() as scratch:
            build = _Build(config, step.store, step.where, scratch, opened)
            build.parse(count_tokens)
            build.filter(grade)
            return build.commit(step, settings)


@dataclass
class _Build:
    """The dataset in the making."""

    config: Config
    store: Store
    where: str
    scratch: Path
    opened: list[Opened]
    entries: list[Entry] = field(default_factory=list)
    metrics: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.spool = self.scratch / "spool"
        self.spool.mkdir()
        self.ledger = Ledger(self.scratch / "dropped.jsonl", [source.source.label for source in self.opened])

    def parse(self, count_tokens: CountTokens | None) -> None:
        """Read every source; problems go to the spool, entries stay."""
        chunk, said = 0, time.monotonic()
        for opened in self.opened:
            label = opened.source.label
            for parsed in parse_source(opened.batches(), opened.source, self.config, count_tokens, chunk, self.spool):
                chunk += 1
                self.entries += parsed.entries
                self.ledger.rows[label] += parsed.rows
                for row in parsed.dropped:
                    self.ledger.drop(row)
                if time.monotonic() - said > _SAY_EVERY_S:
                    said = time.monotonic()
                    say(f"parse {label}", f"{self.ledger.rows[label]} rows so far")
            if not self.ledger.rows[label]:
                raise UserError(f"{opened.source.config.path}: holds no row")
            say(f"parse {label}", f"{self.ledger.rows[label]} rows, {self.ledger.reasons[label].total()} dropped")
        _drop_repeated_ids(self.entries)

    def filter(self, grade: Grade) -> None:
        """The filters that need more than one problem, or the sandbox."""
        data = self.config.data
        threshold = data.near_duplicate_threshold
        self._solve_rates()
        # Before verification, which takes longest; all held-out statements count, also of problems that leave later.
        drop_contaminated(alive(self.entries, "train"), list(alive(self.entries, "test")), threshold)
        if data.verify:
            verdicts = Verdicts(self.store, f"{self.where}/verdicts")
            counts = verify(list(alive(self.entries)), self.spool, grade, verdicts)
            verdicts.delete()
            self.metrics |= {f"data/programs_{name}": value for name, value in counts.items()}
        # After it, so that a broken copy does not displace a sound one.
        for split in ("train", "test"):
            drop_duplicates(alive(self.entries, split), threshold)
        _sample(self.entries, "train", data.max_train_problems, self.config.seed)
        _sample(self.entries, "test", data.max_test_problems, self.config.seed)

    def _solve_rates(self) -> None:
        rates = read_solve_rates(self.config.data.solve_rates)
        for entry in alive(self.entries, "train"):
            rate = rates.get(entry.problem_id)
            if rate is not None and rate <= 0:
                entry.drop("never_solved", "data.solve_rates: 0")
            elif rate is not None and rate >= 1:
                entry.drop("always_solved", "data.solve_rates: 1")

    def commit(self, step: Step, settings: dict[str, Any]) -> Pointer:
        """Write shards, manifest and report; mark the dataset complete."""
        self.ledger.drop_entries(self.entries)
        self.ledger.close()
        self._refuse_an_empty_split()
        written = Written()
        for split in ("train", "test"):
            kept = list(alive(self.entries, split))
            write_shards(kept, split, self.spool, self.store, self.where, self.scratch, self.config.seed, written)
        summary = manifest(self.ledger, written, [source.describe() for source in self.opened], settings)
        summary["files"]["dropped.jsonl"] = {
            "rows": self.ledger.total_dropped(),
            "sha256": file_sha256(self.ledger.path),
        }
        self.store.put(self.ledger.path, f"{self.where}/dropped.jsonl")
        texts = {
            "manifest.json": json.dumps(summary, indent=1, sort_keys=True) + "\n",
            "report.html": render(summary, written),
        }
        for name, text in texts.items():
            path = self.scratch / name
            path.write_text(text, encoding="utf-8")
            step.artifact(path, on_parent=True)
            self.store.put(path, f"{self.where}/{name}")
        metrics = {**self.metrics, **_metrics(summary)}
        rows = int(metrics["data/train"] + metrics["data/test"])
        for line in _table(summary).splitlines():
            say("problems", line)
        return step.commit(kind="dataset", rows=rows, metrics=metrics, counts=summary["counts"])

    def _refuse_an_empty_split(self) -> None:
        for split in ("train", "test"):
            if next(alive(self.entries, split), None) is None:
                lines = [
                    f"  {label}: {self.ledger.rows[label]} rows; {_reasons(reasons)}"
                    for label, reasons in self.ledger.reasons.items()
                ]
                examples = [rows[0] for rows in self.ledger.examples.values()][:5]
                lines += [f"  e.g. {e['file']} row {e['row']}: {e['reason']}: {e['detail']}" for e in examples]
                raise UserError(f"data.sources: no problem is left for the {split} split.\n" + "\n".join(lines))


def _drop_repeated_ids(entries: Iterable[Entry]) -> None:
    """Rollouts and rewards are keyed by the id."""
    seen: set[str] = set()
    for entry in entries:
        if entry.problem_id in seen:
            entry.drop("duplicate_id", f"{entry.problem_id} came before")
        seen.add(entry.problem_id)


def _sample(entries: list[Entry], split: str, limit: int | None, seed: int) -> None:
    """Keep `limit` problems of a split, picked by seed and id; which ones others are does not matter."""
    kept = list(alive(entries, split))
    if limit is None or len(kept) <= limit:
        return
    drawn = sorted(kept, key=lambda entry: derive_seed(seed, "prepare_data", split, entry.problem_id))
    for entry in drawn[limit:]:
        entry.drop("not_sampled", f"data.max_{split}_problems={limit}")


def _reasons(reasons: Mapping[str, int]) -> str:
    return ", ".join(f"{reason} {count}" for reason, count in sorted(reasons.items())) or "none dropped"


def _table(summary: dict[str, Any]) -> str:
    return "\n".join(
        f"{label}: {counts['rows']} rows -> {counts['train']} train, {counts['test']} test; "
        + _reasons(counts["dropped"])
        for label, counts in summary["counts"].items()
    )


def _metrics(summary: dict[str, Any]) -> dict[str, float]:
    metrics: dict[str, float] = {}
    for name in ("rows", "train", "test"):
        metrics[f"data/{name}"] = sum(counts[name] for counts in summary["counts"].values())
    for counts in summary["counts"].values():
        for reason, count in counts["dropped"].items():
            metrics[f"data/dropped/{reason}"] = metrics.get(f"data/dropped/{reason}", 0) + count
    return metrics
