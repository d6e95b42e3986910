from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AttentionInterface, LlamaForCausalLM

from components.policy_update import logprob
from components.policy_update.batching import MicroBatch, collate
from components.policy_update.logprob import LogprobHead, PolicyLogprobs
from components.policy_update.packing import SDPA, Packing, packed_flash, register
from components.policy_update.rollout_io import Sample
from components.policy_update.rows import make_rows
from tests.policy_update.helpers import make_samples, tiny_model


def packed_model() -> LlamaForCausalLM:
    return tiny_model(attention=register("sdpa"))


def forward(batch: MicroBatch) -> tuple[Tensor, Tensor]:
    logp_N, entropy_N = PolicyLogprobs(packed_model())(**batch.inputs())
    return logp_N, entropy_N


def reference(sample: Sample, model: LlamaForCausalLM | None = None) -> tuple[Tensor, Tensor]:
    """Log-probs and entropies from the plain model's logits, one sequence at a time."""
    ids = torch.tensor([sample.prompt_ids + sample.response_ids])
    logits_TV = (model or tiny_model())(ids).logits[0, len(sample.prompt_ids) - 1 : -1] / sample.temperature
    logp_TV = logits_TV.log_softmax(-1)
    target_T = torch.tensor(sample.response_ids)
    return logp_TV.gather(1, target_T[:, None])[:, 0], -(logp_TV.exp() * logp_TV).sum(-1)


def pack(samples: list[Sample], *, share: bool) -> MicroBatch:
    return collate(make_rows(samples, range(len(samples)), budget=10_000, share=share), samples)


@pytest.mark.parametrize("share", [False, True])
def test_log_probs_and_entropies_are_those_of_the_plain_model(share: bool) -> None:
    samples = make_samples(problems=3, n=3)
    batch = pack(samples, share=share)
    assert any(prompt is not None for prompt in batch.packing.prompts) == share
    logp_N, entropy_N = forward(batch)
    for index, logp_T, entropy_T in zip(
        batch.samples, logp_N.split(batch.lengths), entropy_N.split(batch.lengths), strict=True
    ):
        expected_logp_T, expected_entropy_T = reference(samples[index])
        torch.testing.assert_close(logp_T, expected_logp_T, atol=1e-5, rtol=0)
        torch.testing.assert_close(entropy_T, expected_entropy_T, atol=1e-5, rtol=0)


@pytest.mark.parametrize("wrong", ["one sequence", "positions go on", "no prompt"])
def test_with_another_packing_the_log_probs_would_be_wrong(wrong: str) -> None:
    samples = make_samples(problems=3, n=3)
    batch = pack(samples, share=True)
    width = batch.input_1T.shape[1]
    leaky = {
        "one sequence": {"packing": Packing.of([width], [None])},
        "positions go on": {"position_1T": torch.arange(width)[None]},
        "no prompt": {"packing": Packing.of(batch.packing.lengths, [None] * len(batch.packing.lengths))},
    }[wrong]
    assert (forward(batch)[0] - forward(MicroBatch(**{**vars(batch), **leaky}))[0]).abs().max() > 1e-4


def gradients(model: LlamaForCausalLM, batch: MicroBatch) -> dict[str, Tensor]:
    """Of a sum in which each sample has a weight of its own."""
    module = PolicyLogprobs(model)
    scale_N = torch.tensor([1.0 + index for index in batch.samples]).repeat_interleave(torch.tensor(batch.lengths))
    (module(**batch.inputs())[0] * scale_N).sum().backward()
    return {name: parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None}


def unpacked_gradients(samples: list[Sample]) -> dict[str, Tensor]:
    """The same with the plain model, one sequence at a time."""
    model = tiny_model()
    for index, sample in enumerate(samples):
        (reference(sample, model)[0] * (1.0 + index)).sum().backward()
    return {name: parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None}


@pytest.mark.parametrize("share", [False, True])
def test_the_gradient_is_that_of_unpacked_sequences(share: bool) -> None:
    samples = make_samples(problems=3, n=4)
    expected = unpacked_gradients(samples)
    ours = gradients(packed_model(), pack(samples, share=share))
    assert ours.keys() == expected.keys()
    for name, grad in expected.items():
        torch.testing.assert_close(ours[name], grad, atol=1e-4, rtol=1e-4)


def test_activation_checkpointing_leaves_the_gradient_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = pack(make_samples(problems=3, n=4), share=True)
    expected = gradients(packed_model(), batch)
    calls: list[int] = []
    mask = Packing.mask

    def counted(self: Packing, span: int, device: torch.device) -> Tensor | None:
        calls.append(span)
        return mask(self, span, device)

    monkeypatch.setattr(Packing, "mask", counted)
    model = packed_model().train()
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    ours = gradients(model, batch)
    assert len(calls) == 2 * model.config.num_hidden_layers * len(batch.packing.lengths)  # forward, and once more
    for name, grad in expected.items():
        assert torch.equal(ours[name], grad)


def flash_attn_varlen(
    q: Tensor, k: Tensor, v: Tensor, *, ends_q: Tensor, ends_k: Tensor, scale: float | None
) -> Tensor:
    """What flash-attn >= 2.1 documents for varlen and causal: sequence by sequence, aligned at the bottom right."""
    outputs = []
    for s in range(len(ends_q) - 1):
        own_q, own_k = slice(ends_q[s], ends_q[s + 1]), slice(ends_k[s], ends_k[s + 1])
        heads_q, heads_k, heads_v = q[own_q].transpose(0, 1), k[own_k].transpose(0, 1), v[own_k].transpose(0, 1)
        groups = len(heads_q) // len(heads_k)
        scores = heads_q @ heads_k.repeat_interleave(groups, 0).transpose(1, 2) * (scale or q.shape[-1] ** -0.5)
        later = torch.ones(scores.shape[1:], dtype=torch.bool).triu(scores.shape[2] - scores.shape[1] + 1)
        weights = scores.masked_fill(later, -torch.inf).softmax(-1)
        outputs.append((weights @ heads_v.repeat_interleave(groups, 0)).transpose(0, 1))
    return torch.cat(outputs)


@pytest.mark.parametrize("share", [False, True])
def test_flash_attention_is_asked_for_the_same(share: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def flash(module: Any, query: Tensor, key: Tensor, value: Tensor, mask: None, **given: Any) -> tuple[Tensor, None]:
        q, k, v = (tensor[0].transpose(0, 1) for tensor in (query, key, value))
        ends_q, ends_k = given["cu_seq_lens_q"], given["cu_seq_lens_k"]
        assert ends_q.dtype == ends_k.dtype == torch.int32
        assert given["max_length_q"] == ends_q.diff().max()
        assert given["max_length_k"] == ends_k.diff().max()
        return flash_attn_varlen(q, k, v, ends_q=ends_q, ends_k=ends_k, scale=given["scaling"])[None], None

    monkeypatch.setattr("transformers.integrations.flash_attention.flash_attention_forward", flash)
    samples = make_samples(problems=3, n=4)
    batch = pack(samples, share=share)
    model = packed_model()
    monkeypatch.setitem(AttentionInterface._global_mapping, SDPA, packed_flash)
    ours, expected = gradients(model, batch), unpacked_gradients(samples)
    for name, grad in expected.items():
        torch.testing.assert_close(ours[name], grad, atol=1e-4, rtol=1e-4)


def test_a_span_before_its_prompt_is_refused() -> None:
    with pytest.raises(ValueError, match="span 0 of 3 tokens after prompt 1"):
        Packing.of([3, 2], [1, None])


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


@pytest.mark.parametrize("weight_trained", [True, False])
def test_entropies_have_their_gradient_if_it_is_asked_for(
    weight_trained: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logprob, "_CHUNK_LOGITS", 100)  # 2 rows of 37 at a time
    generator = torch.Generator().manual_seed(0)
    hidden_NH = torch.randn(11, 16, generator=generator).requires_grad_()
    weight_VH = torch.nn.Parameter(torch.randn(37, 16, generator=generator) * 0.3, requires_grad=weight_trained)
    target_N = torch.randint(0, 37, (11,), generator=generator)
    temperature_N = torch.rand(11, generator=generator) + 0.5
    scale_N, bonus_N = torch.randn(11, generator=generator), torch.randn(11, generator=generator)
    wanted = [hidden_NH, weight_VH] if weight_trained else [hidden_NH]

    logp_N, entropy_N = LogprobHead(weight_VH, entropy_grad=True)(hidden_NH, target_N, temperature_N)
    grads = torch.autograd.grad((scale_N * logp_N + bonus_N * entropy_N).sum(), wanted)
    logp_NV = (hidden_NH @ weight_VH.T / temperature_N[:, None]).log_softmax(-1)
    plain_N = scale_N * logp_NV.gather(1, target_N[:, None])[:, 0] - bonus_N * (logp_NV.exp() * logp_NV).sum(-1)
    for grad, expected in zip(grads, torch.autograd.grad(plain_N.sum(), wanted), strict=True):
        torch.testing.assert_close(grad, expected, atol=1e-5, rtol=1e-5)
    assert not LogprobHead(weight_VH)(hidden_NH, target_N, temperature_N)[1].requires_grad


def test_temperature_divides_the_logits() -> None:
    hidden_NH, weight_VH = torch.tensor([[1.0]]), torch.nn.Parameter(torch.tensor([[2.0], [0.0]]))
    logp_N, _ = LogprobHead(weight_VH)(hidden_NH, torch.tensor([0]), torch.tensor([0.5]))
    assert logp_N.item() == pytest.approx(torch.sigmoid(torch.tensor(4.0)).log().item(), abs=1e-6)
