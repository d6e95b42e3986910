from __future__ import annotations

import pytest
import torch
from torch import Tensor

from components.policy_update import logprob
from components.policy_update.batching import MicroBatch, collate, make_rows
from components.policy_update.logprob import LogprobHead, PolicyLogprobs
from components.policy_update.rollout_io import Sample
from tests.policy_update.helpers import make_samples, tiny_model


def forward(module: PolicyLogprobs, batch: MicroBatch) -> tuple[Tensor, Tensor]:
    logp_N, entropy_N = module(
        batch.input_BT, batch.position_BT, batch.mask_B1TT, batch.source_N, batch.target_N, batch.temperature_N
    )
    return logp_N, entropy_N


def reference(sample: Sample) -> tuple[Tensor, Tensor]:
    """Log-probs and entropies from the plain model's logits, one sequence at a time."""
    ids = torch.tensor([sample.prompt_ids + sample.response_ids])
    logits_TV = tiny_model()(ids).logits[0, len(sample.prompt_ids) - 1 : -1] / sample.temperature
    logp_TV = logits_TV.log_softmax(-1)
    target_T = torch.tensor(sample.response_ids)
    return logp_TV.gather(1, target_T[:, None])[:, 0], -(logp_TV.exp() * logp_TV).sum(-1)


@pytest.mark.parametrize("hidden", [None, 32])
def test_log_probs_and_entropies_are_those_of_the_plain_model(hidden: int | None) -> None:
    samples = make_samples(problems=3, n=3)
    batch = collate(make_rows(samples, range(9), budget=10_000, hidden=hidden), samples)
    assert (batch.mask_B1TT is not None) == (hidden is not None)
    logp_N, entropy_N = forward(PolicyLogprobs(tiny_model()), batch)
    for index, logp_T, entropy_T in zip(
        batch.samples, logp_N.split(batch.lengths), entropy_N.split(batch.lengths), strict=True
    ):
        expected_logp_T, expected_entropy_T = reference(samples[index])
        torch.testing.assert_close(logp_T, expected_logp_T, atol=1e-5, rtol=0)
        torch.testing.assert_close(entropy_T, expected_entropy_T, atol=1e-5, rtol=0)


def test_without_its_mask_a_shared_row_would_be_wrong() -> None:
    samples = make_samples(problems=1, n=3)
    batch = collate(make_rows(samples, range(3), budget=10_000, hidden=32), samples)
    leaky = MicroBatch(**{**vars(batch), "mask_B1TT": torch.ones_like(batch.mask_B1TT).tril()})
    module = PolicyLogprobs(tiny_model())
    assert (forward(module, batch)[0] - forward(module, leaky)[0]).abs().max() > 1e-4


def test_sharing_a_prompt_leaves_the_gradient_as_it_is() -> None:
    samples = make_samples(problems=2, n=4)
    grads = []
    for hidden in (None, 32):
        module = PolicyLogprobs(tiny_model())
        batch = collate(make_rows(samples, range(8), budget=10_000, hidden=hidden), samples)
        scale_N = torch.tensor([1.0 + index for index in batch.samples]).repeat_interleave(torch.tensor(batch.lengths))
        (forward(module, batch)[0] * scale_N).sum().backward()
        grads.append({name: p.grad for name, p in module.named_parameters()})
    for name, grad in grads[0].items():
        torch.testing.assert_close(grad, grads[1][name], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("weight_trained", [True, False])
def test_chunked_head_has_the_gradients_of_log_softmax(weight_trained: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logprob, "_CHUNK_LOGITS", 3 * 11)  # 3 of 8 tokens at a time
    torch.manual_seed(0)
    hidden_NH = torch.randn(8, 5, requires_grad=True)
    weight_VH = torch.nn.Parameter(torch.randn(11, 5), requires_grad=weight_trained)
    target_N, temperature_N = torch.randint(11, (8,)), torch.rand(8) + 0.5
    wanted = [hidden_NH, weight_VH] if weight_trained else [hidden_NH]

    logp_N, _ = LogprobHead(weight_VH)(hidden_NH, target_N, temperature_N)
    plain_NV = ((hidden_NH @ weight_VH.T) / temperature_N[:, None]).log_softmax(-1)
    plain_N = plain_NV.gather(1, target_N[:, None])[:, 0]
    torch.testing.assert_close(logp_N, plain_N)
    scale_N = torch.randn(8)
    ours = torch.autograd.grad((logp_N * scale_N).sum(), wanted)
    plain = torch.autograd.grad((plain_N * scale_N).sum(), wanted)
    for mine, expected in zip(ours, plain, strict=True):
        torch.testing.assert_close(mine, expected, atol=1e-6, rtol=1e-5)


def test_temperature_divides_the_logits() -> None:
    hidden_NH, weight_VH = torch.tensor([[1.0]]), torch.nn.Parameter(torch.tensor([[2.0], [0.0]]))
    logp_N, _ = LogprobHead(weight_VH)(hidden_NH, torch.tensor([0]), torch.tensor([0.5]))
    assert logp_N.item() == pytest.approx(torch.sigmoid(torch.tensor(4.0)).log().item(), abs=1e-6)
