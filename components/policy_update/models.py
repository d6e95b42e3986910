"""The transformers models of an update, and how they are loaded."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any, Literal

import torch
import torch.distributed as dist

from components.core.errors import UserError
from components.core.update_config import PolicyUpdateConfig
from components.policy_update import packing
from components.policy_update.parallel import ulysses

Kind = Literal["policy", "critic", "frozen"]

_FLASH = {"flash_attention_2": "flash_attn", "flash_attention_3": "flash_attn_interface"}


def load_model(config: PolicyUpdateConfig, settings: dict[str, Any], hf: Path, device: torch.device, kind: Kind) -> Any:
    """A transformers model with packed attention, sharded over the ranks as it is loaded.

    Args:
        config: the update's configuration.
        settings: DeepSpeed's.
        hf: the model's HF directory.
        device: this rank's.
        kind: a value model (`critic`) has a head of its own.

    Raises:
        UserError: the configuration asks for what the model, the device or the installed packages do not allow.
    """
    import transformers
    from transformers.integrations import HfDeepSpeedConfig
    from transformers.utils import logging as hf_logging

    hf_logging.disable_progress_bar()
    # While this object lives, from_pretrained shards each weight as it loads it.
    sharded_loading = HfDeepSpeedConfig(settings) if dist.get_world_size() > 1 else None
    model_config = transformers.AutoConfig.from_pretrained(hf, local_files_only=True)
    for name, value in model_config.to_dict().items():
        # With dropout the log-probs would differ from the sampler's, and the ratio from 1.
        if ("dropout" in name or "pdrop" in name) and isinstance(value, float) and value > 0:
            setattr(model_config, name, 0.0)
    family = transformers.AutoModelForTokenClassification if kind == "critic" else transformers.AutoModelForCausalLM
    model = family.from_pretrained(
        hf,
        config=model_config,
        dtype=torch.bfloat16 if config.dtype == "bfloat16" else torch.float32,
        attn_implementation=packing.register(_attention(config, model_config, hf, device), ulysses),
        local_files_only=True,
    )
    del sharded_loading
    if config.use_liger:
        if device.type == "cpu" and os.environ.get("TRITON_INTERPRET") != "1":
            raise UserError("policy_update.use_liger=true needs a GPU: its kernels are Triton's.")
        from liger_kernel.transformers.monkey_patch import _apply_liger_kernel_to_instance

        # RMSNorm, rotary embedding and SwiGLU. The loss is not the model's own, and its head is fused here.
        _apply_liger_kernel_to_instance(model=model, cross_entropy=False, fused_linear_cross_entropy=False)
    return model


def _attention(config: PolicyUpdateConfig, model_config: Any, hf: Path, device: torch.device) -> str:
    """Which attention to use."""
    implementation = config.attn_implementation
    flash = {
        name
        for name, package in _FLASH.items()
        if device.type == "cuda" and config.dtype == "bfloat16" and importlib.util.find_spec(package) is not None
    }
    if implementation == "auto":
        implementation = "flash_attention_2" if "flash_attention_2" in flash else "sdpa"
    elif implementation in _FLASH and implementation not in flash:
        raise UserError(
            f"policy_update.attn_implementation={implementation} needs a GPU, the package {_FLASH[implementation]} and "
            "dtype=bfloat16. Set it to sdpa."
        )
    if implementation == "sdpa" and "sliding_attention" in (getattr(model_config, "layer_types", None) or []):
        raise UserError(f"{hf}: has sliding-window layers; set policy_update.attn_implementation=flash_attention_2.")
    heads, size = model_config.num_attention_heads, config.ulysses_sequence_parallel_size
    kv_heads = getattr(model_config, "num_key_value_heads", heads)
    if heads % size or (kv_heads % size and size % kv_heads):
        raise UserError(
            f"{hf}: {heads} attention and {kv_heads} key-value heads cannot be dealt out to "
            f"policy_update.ulysses_sequence_parallel_size={size} ranks."
        )
    return implementation


def freeze(policy: Any, train_last_layers: int | None) -> None:
    """Leave trainable only the last layers, the final norm and a value model's head; None leaves all.

    The layers below need no gradient and keep no activations; embeddings and a tied head stay as they are.
    """
    if train_last_layers is None:
        return
    layers = policy.base_model.layers
    if train_last_layers > len(layers):
        raise UserError(
            f"policy_update.train_last_layers={train_last_layers}, but the policy has {len(layers)} layers."
        )
    policy.requires_grad_(False)
    head = [policy.score] if hasattr(policy, "score") else []
    for module in [*layers[-train_last_layers:], policy.base_model.norm, *head]:
        module.requires_grad_(True)
