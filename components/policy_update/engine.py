"""The DeepSpeed ZeRO-3 engine: how it is configured and built."""

from __future__ import annotations

import logging
import os
import warnings
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from components.core.config import Config
from components.core.update_config import PolicyUpdateConfig
from components.policy_update.critic_model import TokenValues
from components.policy_update.logprob import PolicyLogprobs
from components.policy_update.models import Kind, freeze, load_model
from components.policy_update.parallel import set_up


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
    model = load_model(update, settings, hf, device, kind)
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


def optimizer_settings(config: Config, kind: Kind = "policy") -> dict[str, Any]:
    """AdamW's arguments."""
    update = config.policy_update
    lr = update.critic.lr if kind == "critic" else config.learning_rate
    return {"lr": lr, "betas": update.betas, "weight_decay": update.weight_decay}
