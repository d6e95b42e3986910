"""What fits into a GPU: the policy update's states and activations, the rollout engine's weights and KV cache."""

from __future__ import annotations

from dataclasses import dataclass

from components.core.config import Config
from pipelines.plan.architecture import Architecture
from pipelines.plan.hardware import Assumptions, Gpu

_LOGITS_HELD = 3 * (128 << 20)
"""components/policy_update/logprob.py holds this much of logits, probabilities and slopes at a time."""
_BUCKET = 500_000_000
_LIVE_PARAMETERS = 1_000_000_000
"""DeepSpeed's defaults: reduce_bucket_size, and stage3_max_live_parameters."""


@dataclass(frozen=True)
class Memory:
    """Bytes by what they are for, on one GPU."""

    parts: dict[str, float]
    limit: float

    @property
    def total(self) -> float:
        """All parts."""
        return sum(self.parts.values())

    @property
    def fits(self) -> bool:
        """Whether the GPU holds them."""
        return self.total <= self.limit


def zero3_states(arch: Architecture, *, ranks: int, trained: int, bytes_per_weight: int, offload: bool) -> float:
    """Weights, gradients and AdamW's states on one GPU, with the largest module gathered.

    Of 2 bytes a weight for bf16 weights, 4 for float32 gradients, 12 for float32 master weights and two moments, a rank
    holds 1/ranks; offloading leaves it the weights. The largest module is gathered whole, with its gradient.

    Source: DeepSpeed, estimate_zero3_model_states_mem_needs (18 bytes a weight, 2 with offloading).

    Args:
        arch: the policy.
        ranks: GPUs of the update.
        trained: weights that are trained.
        bytes_per_weight: 2 for bf16, 4 for float32.
        offload: optimizer states and gradients are in CPU memory.
    """
    states = arch.parameters * bytes_per_weight + (0 if offload else 16 * trained)
    return 2 * bytes_per_weight * arch.largest_module + states / ranks


def layer_activations(arch: Architecture, tokens: int, bytes_per_value: int) -> float:
    """What autograd keeps of one layer's forward pass, in bytes.

    Counted over the modules of transformers' Qwen2 and Llama: the inputs of both norms, in float32 and as given, and
    their normalised copies; the inputs of the projections; q and k before and after the rotation, and v; the
    attention's output and its row sums; gate, up, the activated gate, and their product. Attention that keeps its
    T x T scores is not meant: FlashAttention recomputes them (arXiv:2205.14135).
    """
    q, kv = arch.heads * arch.head_dim, arch.kv_heads * arch.head_dim
    values = 4 * arch.hidden + 2 * (q + kv) + kv + q + 4 * arch.intermediate
    float32 = 2 * 2 * arch.hidden + arch.heads
    return tokens * (values * bytes_per_value + float32 * 4)


def update_memory(config: Config, arch: Architecture, gpu: Gpu, assume: Assumptions) -> Memory:
    """The policy update on one GPU.

    With gradient checkpointing a layer keeps its input, 2 bytes a token and unit, and one layer at a time is
    recomputed (arXiv:1604.06174); without, all layers keep all. A value model is counted as a policy without its
    activations: the two take turns.
    """
    update = config.policy_update
    width = 2 if update.dtype == "bfloat16" else 4
    layers = min(update.train_last_layers or arch.layers, arch.layers)
    trained = arch.parameters if update.train_last_layers is None else layers * arch.layer_parameters + arch.hidden
    tokens = micro_batch_tokens(config)
    one_layer = layer_activations(arch, tokens, width)
    kept = layers * tokens * arch.hidden * width + one_layer if update.gradient_checkpointing else layers * one_layer
    head = _LOGITS_HELD + (4 * arch.vocab * arch.hidden if update.train_last_layers is None else 0)
    ranks = update.ranks * update.nodes
    states = zero3_states(arch, ranks=ranks, trained=trained, bytes_per_weight=width, offload=update.offload_optimizer)
    buffers = width * (min(_BUCKET, trained) + (min(_LIVE_PARAMETERS, arch.parameters) if ranks > 1 else 0))
    gathered = 2 * width * arch.largest_module
    return Memory(
        {
            "weights, gradients, AdamW": states - gathered,
            "value model": (states - gathered) if update.adv_estimator == "gae" else 0.0,
            "reference": width * arch.parameters / ranks if needs_reference(config) else 0.0,
            "gathered weights, buckets": gathered + buffers,
            "activations": kept,
            "logits, head gradient": head,
            "reserved": assume.reserved_gb * 1e9,
        },
        gpu.memory_gb * 1e9,
    )


def needs_reference(config: Config) -> bool:
    """Whether the update compares the policy with the initial one."""
    return config.policy_update.use_kl_loss or config.policy_update.use_kl_in_reward


def micro_batch_tokens(config: Config) -> int:
    """One rank's tokens of the largest micro-batch: the budget, or its part of one longest sequence.

    With Ulysses (arXiv:2309.14509) ulysses_sequence_parallel_size ranks have equal parts of a micro-batch.
    """
    longest = config.data.max_prompt_length + max(stage.max_response_length for stage in config.stages)
    parts = config.policy_update.ulysses_sequence_parallel_size
    return max(config.policy_update.ppo_max_token_len_per_gpu, -(-longest // parts))


def rollout_memory(config: Config, arch: Architecture, gpu: Gpu, assume: Assumptions) -> Memory:
    """The rollout engine on one GPU: the KV cache takes what gpu_memory_utilization leaves.

    vLLM gives its cache gpu_memory_utilization of the GPU, less the weights and what a profiled forward pass needs;
    for that `reserved_gb` stands here. Source: docs.vllm.ai, "Conserving Memory".
    """
    width = 2 if config.rollout.dtype == "bfloat16" else 4
    weights = arch.parameters * width / config.rollout.tensor_parallel_size
    limit = config.rollout.gpu_memory_utilization * gpu.memory_gb * 1e9
    reserved = assume.reserved_gb * 1e9
    return Memory({"weights": weights, "reserved": reserved, "KV cache": max(0.0, limit - weights - reserved)}, limit)


def kv_tokens(config: Config, arch: Architecture, memory: Memory) -> int:
    """Tokens that one engine's KV cache holds, over its GPUs; keys and values are in the engine's precision.

    KV heads are split over the GPUs; with fewer heads than GPUs they are held more than once.
    """
    width = 2 if config.rollout.dtype == "bfloat16" else 4
    split = min(config.rollout.tensor_parallel_size, arch.kv_heads)
    return int(memory.parts["KV cache"] * split / arch.kv_bytes_per_token(width))
