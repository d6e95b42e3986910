"""Log-probs and entropies of response tokens, computed inside the engine's forward, where ZeRO-3 gathers weights."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from components.policy_update.packing import Packing
from components.policy_update.parallel import token_states, whole

# Logits held at one time: 128 MiB in float32.
_CHUNK_LOGITS = 32 << 20


class _LinearLogprob(torch.autograd.Function):
    """log softmax(h W^T / temperature)[target] and the entropy, without ever holding all the logits.

    With z the logits over temperature, p their softmax and H the entropy,

        d logp / dz = onehot(target) - p          d H / dz = -p (log p + H)

    The gradients in h are made in the forward pass when W itself is frozen: they have the size of h and save a second
    product with the vocabulary. The entropy has one only if it is asked for.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden_NH: Tensor,
        weight_VH: Tensor,
        target_N: Tensor,
        temperature_N: Tensor,
        entropy_grad: bool,
    ) -> tuple[Tensor, Tensor]:
        ctx.weight_trained, ctx.entropy_grad = weight_VH.requires_grad, entropy_grad
        early = hidden_NH.requires_grad and not ctx.weight_trained
        count, vocab = len(target_N), weight_VH.shape[0]
        logp_N = torch.empty(count, dtype=torch.float32, device=hidden_NH.device)
        entropy_N = torch.empty_like(logp_N)
        slopes_NH = [torch.empty_like(hidden_NH) for _ in range(early * (1 + entropy_grad))]
        for part in _parts(count, vocab):
            logits_CV = _logits(hidden_NH[part], weight_VH, temperature_N[part])
            lse_C = torch.logsumexp(logits_CV, dim=-1)
            logp_N[part] = logits_CV.gather(1, target_N[part, None]).squeeze(1) - lse_C
            p_CV = (logits_CV - lse_C[:, None]).exp_()
            entropy_N[part] = lse_C - torch.linalg.vecdot(p_CV, logits_CV)
            if early:
                expected_CH = p_CV.to(weight_VH.dtype) @ weight_VH
                slopes_NH[0][part] = (weight_VH[target_N[part]] - expected_CH) / temperature_N[part, None]
            if early and entropy_grad:
                slope_CV = p_CV.mul_(lse_C[:, None] - entropy_N[part, None] - logits_CV)
                slopes_NH[1][part] = (slope_CV.to(weight_VH.dtype) @ weight_VH) / temperature_N[part, None]
        if ctx.weight_trained:
            ctx.save_for_backward(hidden_NH, weight_VH, target_N, temperature_N)
        else:
            ctx.save_for_backward(*slopes_NH)
        if not entropy_grad:
            ctx.mark_non_differentiable(entropy_N)
        return logp_N, entropy_N

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None, None, None, None]:
        if not ctx.weight_trained:
            parts = [grad_N[:, None] * slope_NH for grad_N, slope_NH in zip(grads, ctx.saved_tensors, strict=False)]
            return sum(parts[1:], parts[0]).to(ctx.saved_tensors[0].dtype), None, None, None, None
        hidden_NH, weight_VH, target_N, temperature_N = ctx.saved_tensors
        grad_hidden_NH = torch.empty_like(hidden_NH)
        grad_weight_VH = torch.zeros(weight_VH.shape, dtype=torch.float32, device=weight_VH.device)
        for part in _parts(len(target_N), weight_VH.shape[0]):
            logp_CV = _logits(hidden_NH[part], weight_VH, temperature_N[part]).log_softmax(dim=-1)
            slope_CV = logp_CV.exp()
            if ctx.entropy_grad:
                entropy_C1 = -torch.linalg.vecdot(slope_CV, logp_CV)[:, None]
                slope_CV.mul_(-grads[0][part, None] - grads[1][part, None] * (logp_CV + entropy_C1))
            else:
                slope_CV.mul_(-grads[0][part, None])
            slope_CV.scatter_add_(1, target_N[part, None], grads[0][part, None])
            slope_CV.div_(temperature_N[part, None])
            grad_hidden_NH[part] = slope_CV.to(weight_VH.dtype) @ weight_VH
            grad_weight_VH += (slope_CV.to(hidden_NH.dtype).T @ hidden_NH[part]).float()
        return grad_hidden_NH, grad_weight_VH.to(weight_VH.dtype), None, None, None


def _parts(count: int, vocab: int) -> list[slice]:
    size = max(1, _CHUNK_LOGITS // vocab)
    return [slice(start, start + size) for start in range(0, count, size)]


def _logits(hidden_CH: Tensor, weight_VH: Tensor, temperature_C: Tensor) -> Tensor:
    return (hidden_CH @ weight_VH.T).float().div_(temperature_C[:, None])


class LogprobHead(nn.Module):
    """The language-model head, fused with the log-prob; it shares the model's own output matrix."""

    def __init__(self, weight_VH: nn.Parameter, *, entropy_grad: bool = False) -> None:
        super().__init__()
        self.weight, self._entropy_grad = weight_VH, entropy_grad

    def forward(self, hidden_NH: Tensor, target_N: Tensor, temperature_N: Tensor) -> tuple[Tensor, Tensor]:
        """Log-prob and entropy of N tokens, in float32."""
        logp_N, entropy_N = _LinearLogprob.apply(hidden_NH, self.weight, target_N, temperature_N, self._entropy_grad)
        return logp_N, entropy_N


class PolicyLogprobs(nn.Module):
    """A causal language model that answers with the log-probs of chosen tokens instead of logits."""

    def __init__(self, policy: Any, *, entropy_grad: bool = False) -> None:
        """`entropy_grad`: the entropies are differentiable too."""
        super().__init__()
        head = policy.get_output_embeddings()
        if head.bias is not None:
            raise ValueError(f"{type(policy).__name__}: an output layer with a bias is not supported")
        self.policy = policy
        self.head = LogprobHead(head.weight, entropy_grad=entropy_grad)

    def forward(
        self,
        input_1T: Tensor,
        position_1T: Tensor,
        packing: Packing,
        source_N: Tensor,
        target_N: Tensor,
        temperature_N: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """See MicroBatch for the arguments.

        Returns:
            Log-prob of each target under logits / temperature, and the entropy of that distribution; N each.
        """
        hidden_MH, own_M = token_states(self.policy, input_1T, position_1T, packing, source_N)
        if own_M is not None:
            target_N, temperature_N = target_N[own_M], temperature_N[own_M]
        logp_M, entropy_M = self.head(hidden_MH, target_N, temperature_N)
        count = len(source_N)
        return whole(logp_M, own_M, count), whole(entropy_M, own_M, count)
