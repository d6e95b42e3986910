"""Evaluate one model on one set, published or your own, through the steps that a run evaluates with."""

from __future__ import annotations

import argparse
import datetime
import os
import re
import shutil
from pathlib import Path
from typing import Any

from components.core.config import Config, parse_config
from components.core.pairwise import describe, open_evaluation
from components.core.paths import evaluation_path
from components.core.resolve import absolute_paths, merge, parse_overrides, read_profile
from components.core.store import Pointer, open_store
from pipelines.compile import profile_path

SETS: dict[str, dict[str, Any]] = {
    "livecodebench": {
        "format": "livecodebench",
        "path": "livecodebench/code_generation_lite",
        "name": "release_v5",
        # DeepCoder's window: 279 problems of release_v5.
        "since": "2024-08-01",
        "until": "2025-01-31",
    },
    "humaneval": {"format": "humaneval", "path": "openai/openai_humaneval"},
    "humaneval+": {"format": "humaneval", "path": "evalplus/humanevalplus"},
    "mbpp": {"format": "mbpp", "path": "google-research-datasets/mbpp", "name": "sanitized"},
    "mbpp+": {"format": "mbpp", "path": "evalplus/mbppplus"},
    "taco": {"format": "taco", "path": "BAAI/TACO"},
    "codeforces": {"format": "codeforces", "path": "open-r1/codeforces"},
    "deepcoder-lcb": {"format": "deepcoder", "path": "agentica-org/DeepCoder-Preview-Dataset", "name": "lcbv5"},
    "deepcoder-codeforces": {
        "format": "deepcoder",
        "path": "agentica-org/DeepCoder-Preview-Dataset",
        "name": "codeforces",
    },
}
"""Published sets by short name; anything else is a path, an `s3://` prefix or a hub data set, its format told from
its columns."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `deepcoder eval`."""
    parser.add_argument("--model-path", required=True, help="directory, s3://…, hub id, package:… or random:…")
    parser.add_argument(
        "--dataset", required=True, help=f"{', '.join(SETS)}; or a file, directory, s3:// prefix or hub name"
    )
    parser.add_argument("--split", default="test", help="of the set (default test)")
    parser.add_argument("--release", help="LiveCodeBench release_v1 to release_v6, or another hub configuration")
    parser.add_argument("--since", metavar="DATE", type=_day, help="first contest date; `any` for no limit")
    parser.add_argument(
        "--until", metavar="DATE", type=_day, help="last contest date, ISO, inclusive; `any` for no limit"
    )
    parser.add_argument("--format", help="of the rows, where their columns do not tell")
    parser.add_argument(
        "--trained-until", metavar="DATE", type=_date, help="the model's training data ends here: marked by month"
    )
    parser.add_argument("--compare-with", help="result folder of another evaluation, local or s3://: paired")
    parser.add_argument("--out", type=Path, help="folder for page, numbers and LiveCodeBench's own JSON files")
    parser.add_argument("--profile", default="eval", help="a name below pipelines/profiles, or a YAML file")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="any configuration key, dotted")


def _date(text: str) -> str:
    try:
        return datetime.date.fromisoformat(text).isoformat()
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a date like 2024-08-01") from None


def _day(text: str) -> str:
    return text if text == "any" else _date(text)


def run(options: argparse.Namespace) -> Pointer:
    """Evaluate, print the summary, and write `--out`.

    Raises:
        UserError: the model or the set is not what it should be.
    """
    config = configure(options)
    label = label_of(options)
    print(f"run {config.run}, store {config.store}", flush=True)
    pointer = evaluate_model(config, label)
    folder = open_store(config.store).local_dir(f"{evaluation_path(config, label)}/result")
    print((folder / "summary.md").read_text(), end="")
    if options.compare_with:
        print(
            describe(open_evaluation(options.compare_with), open_evaluation(pointer.uri), config.evaluation.confidence)
        )
    if options.out:
        write_out(pointer, folder, options.out)
    print(f"page {options.out or folder}/report.html")
    return pointer


def configure(options: argparse.Namespace) -> Config:
    """The configuration: the profile, the set, the model, and overrides last."""
    path = profile_path(options.profile)
    values = merge(read_profile(path), {"model_name": options.model_path, "data": {"sources": [_source(options)]}})
    # Without a date nothing is known of the model, and no end of its training data is drawn.
    until = datetime.date.fromisoformat(options.trained_until or "1970-01-01")
    after = until + datetime.timedelta(days=1)
    values = merge(values, {"data": {"train_until": until.isoformat(), "test_from": after.isoformat()}})
    values = merge(values, parse_overrides(options.overrides))
    values["profile"] = "eval"
    return parse_config(absolute_paths(values), str(path))


def _source(options: argparse.Namespace) -> dict[str, Any]:
    known = SETS.get(options.dataset) or next((one for one in SETS.values() if one["path"] == options.dataset), None)
    source: dict[str, Any] = {**(known or {"path": options.dataset}), "split": options.split}
    if options.release:
        source["name"] = options.release
    for key in ("since", "until"):
        given = getattr(options, key)
        if given:
            source[key] = None if given == "any" else given
    if options.format:
        source["format"] = options.format
    if "format" not in source:
        from components.data_prep.benchmark import sniff

        source["format"] = sniff(source["path"], source.get("name"), options.split)
    return source


def label_of(options: argparse.Namespace) -> str:
    """A folder's name for the evaluation: the set, its release and its split."""
    parts = [Path(options.dataset).name or options.dataset, options.release or "", options.split]
    return re.sub(r"[^A-Za-z0-9.+-]+", "-", "_".join(part for part in parts if part)).strip("-.")


def evaluate_model(config: Config, label: str) -> Pointer:
    """The steps of an evaluation, one after the other in this process; what is complete already is not done again."""
    from components.core.policy import ensure_base_policy
    from components.data_prep import benchmark
    from components.evaluation import evaluate
    from components.reward import score
    from components.rollout import generate

    for name, value in {"TOKENIZERS_PARALLELISM": "false", "OMP_WAIT_POLICY": "PASSIVE"}.items():
        os.environ.setdefault(name, value)
    store = open_store(config.store)
    with store.scratch() as scratch:
        policy = ensure_base_policy(config, store)
        dataset = benchmark.run(config=config, output=str(scratch / "dataset"))
        shards = range(config.rollout.shards)
        rollouts = [
            generate.run_evaluation(
                config=config,
                dataset=dataset,
                policy=policy,
                label=label,
                shard=shard,
                output=str(scratch / "rollouts"),
            )
            for shard in shards
        ]
        rewards = [
            score.run(config=config, dataset=dataset, rollouts=part, output=str(scratch / "rewards"))
            for part in rollouts
        ]
        return evaluate.run(
            config=config,
            dataset=dataset,
            policy=policy,
            rewards=rewards,
            label=label,
            output=str(scratch / "evaluation"),
        )


def write_out(pointer: Pointer, folder: Path, out: Path) -> None:
    """Copy an evaluation's page and numbers, and write LiveCodeBench's `submission.json` and `eval_all.json`."""
    from components.evaluation.lcb import graded_of, write_files

    out.mkdir(parents=True, exist_ok=True)
    for name in ("report.html", "summary.md", "result.json", "samples.parquet", "problems.parquet"):
        shutil.copyfile(folder / name, out / name)
    write_files(graded_of(open_evaluation(pointer.uri)), out)
