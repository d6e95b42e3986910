from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from components.rollout.engine import Sampling, code_is_closed, generate
from components.rollout.transformers_engine import TransformersEngine, sample_tokens

SAMPLING = Sampling(max_new_tokens=12, temperature=0.7, top_p=1.0, stop_at_code_end=False)
TEXTS = ["add two numbers", "x", "a rather longer question about strings"]


def test_logprobs_are_those_of_a_full_forward_pass_at_the_temperature(policy: Path) -> None:
    engine = TransformersEngine(policy, "float32")
    prompts = [engine.encode_chat([{"role": "user", "content": text}]) for text in TEXTS]
    groups = generate(engine, prompts, [[1, 2], [3, 4], [5, 6]], SAMPLING)
    model = AutoModelForCausalLM.from_pretrained(policy, dtype=torch.float32)
    for prompt, group in zip(prompts, groups, strict=True):
        for completion in group:
            ids = torch.tensor([prompt + completion.token_ids])
            logp_TV = torch.log_softmax(model(ids).logits[0, len(prompt) - 1 : -1] / 0.7, dim=-1)
            expected = logp_TV.gather(-1, torch.tensor(completion.token_ids)[:, None])[:, 0]
            assert completion.logprobs == pytest.approx(expected.tolist(), abs=1e-5)


def test_a_seed_gives_the_same_answer_in_any_batch_and_another_seed_another(policy: Path) -> None:
    engine = TransformersEngine(policy, "float32")
    prompts = [engine.encode_chat([{"role": "user", "content": text}]) for text in TEXTS]
    together = generate(engine, prompts, [[1, 2], [3], [5, 6]], SAMPLING)
    alone = generate(engine, prompts[2:], [[6, 5, 7]], SAMPLING)[0]
    assert [c.token_ids for c in alone[:2]] == [c.token_ids for c in reversed(together[2])]
    assert alone[2].token_ids != alone[0].token_ids


def test_finish_reason_tells_an_answer_that_ended_from_one_that_was_cut(policy: Path) -> None:
    engine = TransformersEngine(policy, "float32")
    prompt = engine.encode_chat([{"role": "user", "content": "x"}])
    long = Sampling(max_new_tokens=300, temperature=1.0, top_p=1.0, stop_at_code_end=False)
    completions = generate(engine, [prompt], [list(range(24))], long)[0]
    for completion in completions:
        ended = completion.token_ids[-1] in engine._eos
        assert completion.finish_reason == ("stop" if ended else "length")
        assert ended or len(completion.token_ids) == 300
        assert not engine._eos & set(completion.token_ids[:-1])
    assert {completion.finish_reason for completion in completions} == {"stop", "length"}


def test_sampled_frequencies_follow_temperature_and_nucleus() -> None:
    logits_BV = torch.tensor([[2.0, 1.0, 0.0, -3.0]]).repeat(20000, 1)
    uniform_B = torch.tensor(np.random.default_rng(0).random(20000))
    expected_V = torch.softmax(torch.tensor([2.0, 1.0, 0.0, -3.0]) / 0.8, dim=-1)
    token_B, logprob_B = sample_tokens(logits_BV, uniform_B, 0.8, 1.0)
    frequency_V = torch.bincount(token_B, minlength=4) / 20000
    assert frequency_V.tolist() == pytest.approx(expected_V.tolist(), abs=0.012)
    assert logprob_B.exp().tolist()[:50] == pytest.approx(expected_V[token_B].tolist()[:50], abs=1e-6)
    token_B, logprob_B = sample_tokens(logits_BV, uniform_B, 0.8, 0.9)  # 0.9 is reached by the first two
    assert set(token_B.tolist()) == {0, 1}
    kept_V = expected_V[:2] / expected_V[:2].sum()
    assert logprob_B.exp().tolist()[:50] == pytest.approx(kept_V[token_B].tolist()[:50], abs=1e-6)


@pytest.mark.parametrize(
    ("text", "closed"),
    [
        ("```python\nprint(1)\n```", True),
        ("Sure:\n\n```python\nprint(1)\n```\n", True),
        ("Sure:\n\n```python\nprint(1)\n", False),
        ("no code", False),
        ("```python\nprint('```')\n", False),
    ],
)
def test_a_code_block_counts_as_closed_only_by_a_fence_on_its_own_line(text: str, closed: bool) -> None:
    assert code_is_closed(text) is closed
