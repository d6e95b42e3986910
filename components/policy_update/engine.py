"""The DeepSpeed ZeRO-3 engine: how it is configured and built."""

from __future__ import annotations

import importlib.util
import logging
import os
import warnings
from pathlib import Path
from typing import Any, Literal

import torch
import torch.distributed as dist

from components.core.config import Config
from components.core.errors import UserError
from components.core.update_config import PolicyUpdateConfig
from components.policy_update import packing
from components.policy_update.critic_model import TokenValues
from components.policy_update.logprob import PolicyLogprobs
from components.policy_update.parallel import set_up, ulysses

Kind = Literal["policy", "critic", "frozen"]

_FLASH = {"flash_attention_2": "flash_attn", "flash_attention_3": "flash_attn_interface"}


def start_ranks(config: PolicyUpdateConfig) -> torch.device:
    """Join the process group that the launcher describes, or be the only rank. Returns this rank's device.

    Raises:
        UserError: the ranks do not divide into sequence-parallel groups.
    """
    use_gpu = torch.cuda.is_available()
    _import_lightly(use_gpu)
    import deepspeed

    logging.getLogger("DeepSpeed").setLevel(logging.WARNING)
    # No compiled kernel is used, so none is probed for with a compiler. Joining the group would else build the
    # shared-memory one, which serves inference only and leaks 66 MiB of /dev/shm a run.
    deepspeed.ops.__compatible_ops__ = {}
    backend = "nccl" if use_gpu else "gloo"
    local_rank = int(os.environ.setdefault("LOCAL_RANK", "0"))
    if use_gpu:
        torch.cuda.set_device(local_rank)
    if not dist.is_initialized():
        if "RANK" in os.environ:
            dist.init_process_group(backend)
        else:
            dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    deepspeed.init_distributed(dist_backend=backend, auto_mpi_discovery=False, verbose=False)
    set_up(config.ulysses_sequence_parallel_size)
    return torch.device("cuda", local_rank) if use_gpu else torch.device("cpu")


def _import_lightly(use_gpu: bool) -> None:
    """Settings that must stand before DeepSpeed is imported; they halve the step's start-up."""
    if not use_gpu:
        os.environ["DS_ACCELERATOR"] = "cpu"
        # DeepSpeed decorates functions with torch.compile that are not used here; that alone imports inductor.
        os.environ["TORCHDYNAMO_DISABLE"] = "1"
    warnings.filterwarnings("ignore", category=FutureWarning)


def engine_settings(config: PolicyUpdateConfig, *, ranks: int, gpu: bool) -> dict[str, Any]:
    """DeepSpeed's configuration.

    `reduce_scatter` is what the loss's scale relies on: with it ZeRO-3 divides a gradient by the number of ranks.
    `managed_gradient_accumulation: false` makes our `step()` the boundary, after any number of micro-batches.
    """
    zero: dict[str, Any] = {
        "stage": 3,
        "reduce_scatter": True,
        "contiguous_gradients": True,
        "overlap_comm": gpu,
        "stage3_gather_16bit_weights_on_model_save": True,
    }
    if ranks == 1:
        # Nothing is sharded, so there is nothing to gather for each micro-batch: parameters stay whole.
        zero["stage3_param_persistence_threshold"] = 1 << 60
    if config.offload_optimizer:
        zero["offload_optimizer"] = {"device": "cpu", "pin_memory": gpu}
    return {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 1,
        "managed_gradient_accumulation": False,
        "gradient_clipping": config.grad_clip,
        "bf16": {"enabled": config.dtype == "bfloat16"},
        "data_types": {"grad_accum_dtype": "fp32"},
        "communication_data_type": "fp32",
        # torch's AdamW needs no compiler; DeepSpeed's own would be built at run time.
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,
        "zero_optimization": zero,
        "steps_per_print": 1 << 30,
    }


def build_engine(config: Config, hf: Path, device: torch.device, kind: Kind = "policy") -> Any:
    """Load a model and wrap it.

    Args:
        config: the run's configuration.
        hf: the model's HF directory.
        device: this rank's.
        kind: a `policy` or a value model (`critic`) to train, or a `frozen` policy whose log-probs are wanted.

    Returns:
        A DeepSpeed engine around `PolicyLogprobs` or `TokenValues`.

    Raises:
        UserError: the model's attention does not go with the configuration.
    """
    import deepspeed

    update = config.policy_update
    settings = engine_settings(update, ranks=dist.get_world_size(), gpu=device.type == "cuda")
    if kind == "critic":
        settings["gradient_clipping"] = update.critic.grad_clip
    model = _load_model(update, settings, hf, device, kind)
    if kind == "frozen":
        model.requires_grad_(False)
        engine, *_ = deepspeed.initialize(model=PolicyLogprobs(model.eval()), config=settings)
        return engine
    freeze(model, update.train_last_layers)
    model.train()
    if update.gradient_checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    entropy_grad = update.entropy_coeff > 0
    module = TokenValues(model) if kind == "critic" else PolicyLogprobs(model, entropy_grad=entropy_grad)
    trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, **optimizer_settings(config, kind))
    engine, *_ = deepspeed.initialize(model=module, optimizer=optimizer, config=settings)
    return engine


def _load_model(
    config: PolicyUpdateConfig, settings: dict[str, Any], hf: Path, device: torch.device, kind: Kind
) -> Any:
    """A transformers model with packed attention, sharded over the ranks as it is loaded."""
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


def optimizer_settings(config: Config, kind: Kind = "policy") -> dict[str, Any]:
    """AdamW's arguments."""
    update = config.policy_update
    lr = update.critic.lr if kind == "critic" else config.learning_rate
    return {"lr": lr, "betas": update.betas, "weight_decay": update.weight_decay}


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
