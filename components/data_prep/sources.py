"""Opening a configured source, wherever it is: labels, fingerprints and the side files of each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from components.core.config import SourceConfig
from components.core.errors import UserError
from components.core.schema import REWARD_SCHEMA, read_parquet
from components.core.store import config_hash, file_sha256
from components.data_prep.parsers import LICENSES
from components.data_prep.readers import SUFFIXES, fingerprint, local_files, read_file
from components.data_prep.remote import LCB_RELEASES, hub_revision, read_hub, read_s3, s3_objects
from components.data_prep.rows import RawBatch, Source

_SIDE_FILES = ("solutions", "exclude", "special_judge")


@dataclass(frozen=True)
class Opened:
    """A source whose files are known to exist."""

    source: Source
    fingerprint: str
    """Changes when any byte of its files, or of its side files, does."""
    batches: Callable[[], Iterator[RawBatch]]

    def describe(self) -> dict[str, Any]:
        """The manifest's entry."""
        config = self.source.config
        return {
            "label": self.source.label,
            "format": config.format,
            "path": config.path,
            "name": config.name,
            "split": config.split,
            "license": config.license or LICENSES[config.format],
            "sha256": self.fingerprint,
        }


def open_sources(configs: list[SourceConfig]) -> list[Opened]:
    """Open all sources.

    Raises:
        UserError: one is absent or a side file is not what it should be; names the key and the path.
    """
    opened: list[Opened] = []
    labels: list[str] = []
    for i, config in enumerate(configs):
        label = f"{config.format}-{config.name}" if config.format == "deepcoder" and config.name else config.format
        if label in labels:
            label = f"{label}-{i + 1}"
        labels.append(label)
        opened.append(_open(config, label, f"data.sources.{i}"))
    return opened


def _open(config: SourceConfig, label: str, key: str) -> Opened:
    mark, batches = _locate(config, f"{key}.path")
    sides = {name: getattr(config, name) for name in _SIDE_FILES if getattr(config, name)}
    for name, path in sides.items():
        if not Path(path).is_file():
            raise UserError(f"{key}.{name}={path}: no such file")
    source = Source(
        label,
        config,
        solutions=_solutions(config.solutions, f"{key}.solutions") if config.solutions else {},
        special_judge=_special_judge(config.special_judge, f"{key}.special_judge") if config.special_judge else {},
        excluded=_excluded(config.exclude, f"{key}.exclude") if config.exclude else frozenset(),
    )
    if sides:
        mark = config_hash([mark, {name: file_sha256(Path(path)) for name, path in sides.items()}])
    return Opened(source, mark, batches)


def _locate(config: SourceConfig, key: str) -> tuple[str, Callable[[], Iterator[RawBatch]]]:
    if config.path.startswith("s3://"):
        objects = s3_objects(config.path, key)
        wanted = set(of_split([entry["Key"] for entry in objects], config))
        objects = [entry for entry in objects if entry["Key"] in wanted]
        marks = [[entry["Key"], entry["ETag"], entry["Size"]] for entry in objects]
        return config_hash(marks), lambda: read_s3(config.path, objects)
    path = Path(config.path).expanduser()
    looks_local = config.path.count("/") != 1 or config.path.startswith((".", "/", "~")) or path.name.endswith(SUFFIXES)
    if path.exists() or looks_local:
        files = local_files(path, key)
        if path.is_dir():
            names = {file.relative_to(path).as_posix(): file for file in files}
            files = [names[name] for name in of_split(list(names), config)]
        return fingerprint(files), lambda: _read_local(files, path)
    revision = hub_revision(config, key)
    return config_hash([config.path, config.name, config.split, revision]), lambda: read_hub(config, revision)


def of_split(names: list[str], config: SourceConfig) -> list[str]:
    """Of the files of a folder those of the source's release (LiveCodeBench) or split, where names tell; else all.

    A split is told by a folder, `test/…`, or by a hub's file name, `test-00000-of-00001.parquet`.
    """
    if config.format == "livecodebench" and config.name in LCB_RELEASES:
        of_release = [name for name in names if Path(name).name in LCB_RELEASES[config.name]]
        if of_release:
            return of_release
    chosen = [
        name for name in names
        if config.split in Path(name).parts[:-1] or Path(name).name.startswith(f"{config.split}-")
    ]  # fmt: skip
    return chosen or names


def _read_local(files: list[Path], root: Path) -> Iterator[RawBatch]:
    ordinal = 0
    for file in files:
        name = root.name if file == root else f"{root.name}/{file.relative_to(root).as_posix()}"
        for batch in read_file(file, name, ordinal):
            yield batch
            ordinal = batch.first_ordinal + len(batch.payload)


def _json_lines(path: str, key: str) -> Iterator[tuple[int, dict[str, Any]]]:
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError as error:
                raise UserError(f"{key}={path}: line {number} is not JSON ({error})") from error
            if not isinstance(row, dict):
                raise UserError(f"{key}={path}: line {number} is not an object")
            yield number, row


def _solutions(path: str, key: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for number, row in _json_lines(path, key):
        if not isinstance(row.get("solution"), str) or row.get("question_id") is None:
            raise UserError(f"{key}={path}: line {number} lacks question_id or solution")
        found.setdefault(str(row["question_id"]), []).append(row["solution"])
    return found


def _special_judge(path: str, key: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for number, row in _json_lines(path, key):
        if "idx" not in row or row.get("case", 0) not in (0, 1, 2, 3):
            raise UserError(f"{key}={path}: line {number} lacks idx, or its case is not 0, 1, 2 or 3")
        found[str(row["idx"])] = row.get("case", 0) if row.get("special_judge") else 0
    return found


def _excluded(path: str, key: str) -> frozenset[str]:
    try:
        values = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{key}={path}: not JSON ({error})") from error
    if not isinstance(values, list):
        raise UserError(f"{key}={path}: not a JSON list")
    return frozenset(str(value) for value in chain(values))


def read_solve_rates(path: str | None) -> dict[str, float]:
    """Solve rates by problem id: from a jsonl of {problem_id, solve_rate}, or from reward rows (parquet).

    Raises:
        UserError: the file is absent or a line lacks a key.
    """
    if path is None:
        return {}
    if not Path(path).exists():
        raise UserError(f"data.solve_rates={path}: no such file or directory")
    if Path(path).is_dir() or path.endswith(".parquet"):
        return _rates_of_rewards(Path(path))
    rates: dict[str, float] = {}
    for number, row in _json_lines(path, "data.solve_rates"):
        if "problem_id" not in row or not isinstance(row.get("solve_rate"), int | float):
            raise UserError(f"data.solve_rates={path}: line {number} lacks problem_id or solve_rate")
        rates[str(row["problem_id"])] = float(row["solve_rate"])
    return rates


def solve_rates_hash(path: str | None) -> str | None:
    """Of all bytes that `read_solve_rates` would read."""
    return None if path is None else fingerprint(local_files(Path(path), "data.solve_rates"))


def _rates_of_rewards(path: Path) -> dict[str, float]:
    """Mean reward a problem; samples that could not be scored do not count."""
    rewards: dict[str, list[float]] = {}
    for file in sorted(path.rglob("*.parquet")) if path.is_dir() else [path]:
        for row in read_parquet(file, REWARD_SCHEMA):
            if row["reward"] is not None:
                rewards.setdefault(row["problem_id"], []).append(row["reward"])
    return {problem: sum(values) / len(values) for problem, values in rewards.items()}
