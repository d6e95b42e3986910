"""How fast the policy update trains, and in how much memory, against TRL's GRPO step.

    python benchmarks/bench_update.py [--rounds N]

Both take the same random policy, the same answers and advantages, one process of one thread, float32, and micro-batches
of at most the same number of tokens; their first gradients must agree. Seconds are of CPU time, and each measurement is
a process of its own, the two trainers taken in turns, so that a busy machine slows both alike.

Writes `update.json` and `update.md` beside this file. TRL comes with `pip install --no-deps -r
benchmarks/requirements.txt`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

HERE = Path(__file__).resolve().parent
VOCAB, BUDGET, GROUP, STEPS = 4096, 2048, 8, 3
TRAINERS = ("ours", "trl")
CASES = {
    # Answers as a sampler leaves them: most are short, a few go to the limit.
    "mixed lengths": {"prompt": 64, "limit": 1024, "equal": False, "problems": 2},
    "equal lengths": {"prompt": 64, "limit": 256, "equal": True, "problems": 2},
    # What longer answers cost a token.
    "512 tokens": {"prompt": 64, "limit": 512, "equal": True, "problems": 1},
    "1024 tokens": {"prompt": 64, "limit": 1024, "equal": True, "problems": 1},
}


def answers(case: str) -> list[dict[str, Any]]:
    """Prompts and answers of random tokens, and rewards of 0 and 1."""
    settings = CASES[case]
    rng = random.Random(case)
    rows = []
    for problem in range(settings["problems"]):
        prompt = [rng.randrange(3, VOCAB) for _ in range(settings["prompt"])]
        for number in range(GROUP):
            length = settings["limit"]
            if not settings["equal"]:
                length = min(length, int(rng.lognormvariate(5.0, 0.9)) + 8)
            response = [rng.randrange(3, VOCAB) for _ in range(length)]
            rows.append({"problem": problem, "number": number, "prompt": prompt, "response": response})
    return rows


def reward(row: dict[str, Any]) -> float:
    """Half of a group is right."""
    return float(row["number"] % 2)


def make_policy(folder: Path) -> None:
    """A random Llama of 5 million weights, with a tokenizer of bytes that nobody uses."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from components.core.policy import _random

    _random("random:1x32", folder, seed=0)
    torch.manual_seed(0)
    LlamaForCausalLM(
        LlamaConfig(
            vocab_size=VOCAB,
            hidden_size=256,
            intermediate_size=704,
            num_hidden_layers=4,
            num_attention_heads=8,
            num_key_value_heads=2,
            max_position_embeddings=4096,
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=2,
            pad_token_id=0,
        )
    ).save_pretrained(folder)


def sampled_logprobs(policy: Path, rows: Sequence[dict[str, Any]]) -> list[list[float]]:
    """What the policy itself says of each answer, by transformers' plain forward pass."""
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(policy, dtype=torch.float32)
    values = []
    with torch.no_grad():
        for row in rows:
            ids_1T = torch.tensor([row["prompt"] + row["response"]])
            logp_TV = model(ids_1T).logits[0, len(row["prompt"]) - 1 : -1].log_softmax(-1)
            values.append(logp_TV.gather(1, torch.tensor(row["response"])[:, None])[:, 0].tolist())
    return values


class Watch:
    """Hears of steps: CPU seconds and gradient norm of each, and the memory at the beginning and at its highest."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.norms: list[float] = []
        self.start_mb = self.peak_mb = 0.0
        self._before = 0.0

    def ready(self) -> None:
        """The model is loaded."""
        self.start_mb = psutil.Process().memory_info().rss / 1e6
        self._before = time.process_time()

    def log_curve(self, metrics: dict[str, float], x: int) -> None:
        """One optimizer step is done; see job.Report."""
        now = time.process_time()
        self.seconds.append(now - self._before)
        self._before = now
        self.norms.append(metrics["actor/grad_norm"])
        self.peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def train_ours(case: str, folder: Path, watch: Watch) -> None:
    """`components.policy_update` on one rank, from rollout files to weights."""
    from components.core.config import parse_config
    from components.core.schema import REWARD_SCHEMA, ROLLOUT_SCHEMA, write_parquet
    from components.policy_update.job import Job
    from components.policy_update.train import train

    rows = answers(case)
    logprobs = sampled_logprobs(folder / "policy" / "hf", rows)
    for name in ("rollout", "reward"):
        (folder / name).mkdir()
    keys = [{"problem_id": f"p{r['problem']}", "sample_id": r["number"], "turn": 0, "role": "solver"} for r in rows]
    same = {"policy_version": "base", "temperature": 1.0, "top_p": 1.0, "text": "", "seconds": 0.0}
    write_parquet(
        folder / "rollout" / "part-000.parquet",
        [
            {
                **key,
                **same,
                "finish_reason": "stop",
                "prompt_ids": row["prompt"],
                "response_ids": row["response"],
                "rollout_logprobs": logprob,
                "answer": None,
                "loss_mask": None,
            }
            for key, row, logprob in zip(keys, rows, logprobs, strict=True)
        ],
        ROLLOUT_SCHEMA,
    )
    graded = [{**key, "reward": reward(row), "verdict": "AC"} for key, row in zip(keys, rows, strict=True)]
    write_parquet(folder / "reward" / "part-000.parquet", graded, REWARD_SCHEMA)
    problems = len({row["problem"] for row in rows})
    config = parse_config(
        {
            "profile": "bench",
            "model_name": "random",
            "learning_rate": 1e-5,
            "batch_size": problems,
            "context_length": 4096,
            "store": str(folder / "store"),
            "data": {"sources": [{"format": "taco", "path": "none"}], "max_prompt_length": 64},
            "stages": [{"name": "bench", "max_response_length": 1024, "iterations": 1}],
            "evaluation": {"max_response_length": 8},
            "policy_update": {
                "ppo_mini_batch_size": problems,
                "ppo_epochs": STEPS,
                "ppo_max_token_len_per_gpu": BUDGET,
                "old_logprobs": "rollout",
                "mask_truncated_samples": False,
                "dtype": "float32",
                "gradient_checkpointing": False,
            },
        },
        "bench",
    )
    job = Job(
        config=config,
        stage=1,
        iteration=0,
        global_step=0,
        policy=str(folder / "policy"),
        policy_version="base",
        optimizer=None,
        shards=[(str(folder / "rollout"), str(folder / "reward"))],
        output=str(folder / "output"),
    )
    train(job, watch)


def train_trl(case: str, folder: Path, watch: Watch) -> None:
    """`trl.GRPOTrainer`, whose sampling is replaced by the given answers, padded as it pads its own."""
    import torch
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    rows = answers(case)
    group_std = statistics.stdev(reward(row) for row in rows[:GROUP])
    width = max(len(row["prompt"]) + len(row["response"]) for row in rows)
    micro = max(
        size for size in range(1, len(rows) + 1) if len(rows) % size == 0 and size * width <= max(BUDGET, width)
    )

    def padded(name: str, *, left: bool) -> tuple[torch.Tensor, torch.Tensor]:
        longest = max(len(row[name]) for row in rows)
        ids_BT, mask_BT = torch.zeros(len(rows), longest, dtype=torch.long), torch.zeros(len(rows), longest).long()
        for b, row in enumerate(rows):
            place = slice(longest - len(row[name]), longest) if left else slice(0, len(row[name]))
            ids_BT[b, place], mask_BT[b, place] = torch.tensor(row[name]), 1
        return ids_BT, mask_BT

    class GivenAnswers(GRPOTrainer):
        def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
            prompt_ids, prompt_mask = padded("prompt", left=True)
            completion_ids, completion_mask = padded("response", left=False)
            return {
                "prompt_ids": prompt_ids,
                "prompt_mask": prompt_mask,
                "completion_ids": completion_ids,
                "completion_mask": completion_mask,
                "advantages": torch.tensor([(reward(row) - 0.5) / (group_std + 1e-6) for row in rows]),
                "num_items_in_batch": completion_mask.sum(),
            }

    class Steps(TrainerCallback):
        def on_train_begin(self, *_: Any, **__: Any) -> None:
            watch.ready()

        def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, float], **_: Any) -> None:
            if "grad_norm" in logs:
                watch.log_curve({"actor/grad_norm": float(logs["grad_norm"])}, state.global_step)

    hf = folder / "policy" / "hf"
    tokenizer = AutoTokenizer.from_pretrained(hf)
    trainer = GivenAnswers(
        model=AutoModelForCausalLM.from_pretrained(hf, dtype=torch.float32),
        reward_funcs=lambda completions, **_: [0.0] * len(completions),
        args=GRPOConfig(
            output_dir=str(folder / "trl"),
            per_device_train_batch_size=micro,
            gradient_accumulation_steps=len(rows) // micro,
            num_generations=GROUP,
            max_completion_length=max(len(row["response"]) for row in rows),
            learning_rate=1e-5,
            lr_scheduler_type="constant",
            weight_decay=0.01,
            max_steps=STEPS,
            beta=0.0,
            epsilon_high=0.28,
            loss_type="dapo",
            temperature=1.0,
            bf16=False,
            gradient_checkpointing=False,
            use_cpu=True,
            logging_steps=1,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
        ),
        train_dataset=Dataset.from_list([{"prompt": "a"}] * 64),
        processing_class=tokenizer,
        callbacks=[Steps()],
    )
    trainer.train()


def measure(trainer: str, case: str) -> dict[str, Any]:
    """One process; the first step warms up."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")]),
            "OMP_NUM_THREADS": "1",
            "OMP_WAIT_POLICY": "PASSIVE",
            "DS_ACCELERATOR": "cpu",
            "HF_HUB_OFFLINE": "1",
        }
        command = [sys.executable, str(Path(__file__)), "--trainer", trainer, "--case", case, "--folder", folder]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{trainer}, {case}:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
        found: dict[str, Any] = json.loads((Path(folder) / "result.json").read_text())
    return found


def worker(trainer: str, case: str, folder: Path) -> None:
    """Runs one measurement in this process."""
    (folder / "policy" / "hf").mkdir(parents=True)
    make_policy(folder / "policy" / "hf")
    watch = Watch()
    {"ours": train_ours, "trl": train_trl}[trainer](case, folder, watch)
    tokens = sum(len(row["prompt"]) + len(row["response"]) for row in answers(case))
    result = {
        "tokens_per_cpu_s": tokens / statistics.median(watch.seconds[1:]),
        "peak_mb": watch.peak_mb,
        "above_start_mb": watch.peak_mb - watch.start_mb,
        "grad_norm": watch.norms[0],
    }
    (folder / "result.json").write_text(json.dumps(result))


def report(found: dict[str, dict[str, list[dict[str, Any]]]], rounds: int, seconds: float) -> dict[str, Any]:
    """Medians over the rounds, and the ratios of each round's neighbours."""

    def median(case: str, trainer: str, name: str) -> float:
        return statistics.median(result[name] for result in found[case][trainer])

    cases = {}
    for case, by_trainer in found.items():
        cases[case] = {
            trainer: {name: median(case, trainer, name) for name in results[0]}
            for trainer, results in by_trainer.items()
        }
        if "trl" in by_trainer:
            pairs = zip(by_trainer["ours"], by_trainer["trl"], strict=True)
            cases[case]["ratio"] = statistics.median(a["tokens_per_cpu_s"] / b["tokens_per_cpu_s"] for a, b in pairs)
    lengths = ["equal lengths", "512 tokens", "1024 tokens"]
    doubling = [
        statistics.median(
            a["tokens_per_cpu_s"] / b["tokens_per_cpu_s"]
            for a, b in zip(found[short]["ours"], found[long]["ours"], strict=True)
        )
        for short, long in itertools.pairwise(lengths)
    ]
    machine = (
        f"{platform.system()} {platform.release()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end"
    )
    return {"machine": machine, "rounds": rounds, "seconds": seconds, "cases": cases, "doubling": doubling}


def to_markdown(result: dict[str, Any]) -> str:
    """The result as a table."""
    lines = [
        "# The policy update's speed",
        "",
        f"A random Llama (4 layers of 256, vocabulary {VOCAB}), float32, one process of one thread; groups of {GROUP} "
        f"answers, micro-batches of at most {BUDGET} tokens; {STEPS} steps, the "
        f"first of which warms up; {result['machine']}. Tokens are those of prompts and answers, without padding.",
        "",
        "| batch | trainer | tokens a CPU second | times TRL | peak MB | above the loaded model | gradient's norm |",
        "|---|---|---|---|---|---|---|",
    ]
    for case, trainers in result["cases"].items():
        for trainer in TRAINERS:
            if trainer in trainers:
                row = trainers[trainer]
                ratio = f"{trainers['ratio']:.2f}" if trainer == "ours" and "ratio" in trainers else ""
                lines.append(
                    f"| {case} | {trainer} | {row['tokens_per_cpu_s']:.0f} | {ratio} | {row['peak_mb']:.0f} | "
                    f"{row['above_start_mb']:.0f} | {row['grad_norm']:.4f} |"
                )
    first, second = result["doubling"]
    lines += [
        "",
        f"Answers of 512 tokens instead of 256 cost {first:.2f} times as much a token, of 1024 instead of 512 "
        f"{second:.2f} times. Measured in {result['seconds']:.0f} s.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, compare, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1)
    for name in ("trainer", "case", "folder"):
        parser.add_argument(f"--{name}", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.folder:
        worker(arguments.trainer, arguments.case, Path(arguments.folder))
        return
    start = time.monotonic()
    found: dict[str, dict[str, list[dict[str, Any]]]] = {case: {} for case in CASES}
    for _ in range(arguments.rounds):
        for case in CASES:
            for trainer in TRAINERS if case.endswith("lengths") else ("ours",):
                found[case].setdefault(trainer, []).append(measure(trainer, case))
    for case, by_trainer in found.items():
        norms = [result["grad_norm"] for results in by_trainer.values() for result in results]
        if max(norms) > 1.001 * min(norms):
            raise SystemExit(f"{case}: the trainers' first gradients differ: {norms}")
    result = report(found, arguments.rounds, time.monotonic() - start)
    (HERE / "update.json").write_text(json.dumps(result, indent=1) + "\n")
    (HERE / "update.md").write_text(to_markdown(result))
    print(to_markdown(result))


if __name__ == "__main__":
    main()
