"""Saving and loading: HF weights for everyone, ZeRO-3 state for the next update."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from components.core.errors import UserError

_TAG = "state"


def need_space(engine: Any, hf: Path, output: Path) -> None:
    """Refuse to start an update whose result would not fit on the disk.

    Raises:
        UserError: says how much is needed and how much there is.
    """
    trained = sum(getattr(p, "ds_numel", p.numel()) for p in engine.module.parameters() if p.requires_grad)
    weights = sum(path.stat().st_size for path in hf.iterdir())
    need = weights + 12 * trained  # master weights and two moments, float32
    have = shutil.disk_usage(output).free
    if have < 1.05 * need:
        raise UserError(
            f"{output}: the update needs {need / 1e9:.2f} GB for weights and optimizer state, {have / 1e9:.2f} GB are "
            "free. Free some space or change store=, then rerun."
        )


def load_optimizer(engine: Any, folder: Path) -> None:
    """Continue with the optimizer state, master weights included, that `save_optimizer` wrote on as many ranks."""
    path, _ = engine.load_checkpoint(str(folder), tag=_TAG, load_module_strict=False)
    if path is None:
        raise UserError(f"{folder}: holds no ZeRO-3 state. Delete the folder above it, then rerun.")


def save_optimizer(engine: Any, folder: Path) -> None:
    """Write each rank's share. Frozen weights are left out: they are in the HF directory."""
    engine.save_checkpoint(str(folder), tag=_TAG, exclude_frozen_parameters=True)


def export_hf(engine: Any, source: Path, target: Path) -> None:
    """Write the policy as a HF directory: `source` with the trained weights put in place.

    Each tensor keeps its file, name and dtype, so the result loads wherever `source` did; a tied head that `source`
    leaves out stays out. Trained weights come from the float32 master copies.
    """
    weights = _gather_trained(engine)
    if dist.get_rank():
        return
    from safetensors import safe_open
    from safetensors.torch import save_file

    target.mkdir(parents=True, exist_ok=True)
    written: set[str] = set()
    for path in sorted(path for path in source.iterdir() if path.is_file()):
        if path.suffix != ".safetensors":
            shutil.copyfile(path, target / path.name)
            continue
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata()
            tensors: dict[str, Tensor] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        for name in tensors.keys() & weights.keys():
            # Tied names share a tensor, which safetensors would refuse to write twice.
            tensors[name] = weights[name].to(tensors[name].dtype, copy=True)
        written |= tensors.keys() & weights.keys()
        save_file(tensors, target / path.name, metadata=metadata or {"format": "pt"})
    # Of names that share a tensor one may be absent.
    lost = {name for name in weights if not any(weights[other] is weights[name] for other in written)}
    if lost:
        raise UserError(f"{source}: its safetensors files lack the trained weights {', '.join(sorted(lost)[:5])}.")


def _gather_trained(engine: Any) -> dict[str, Tensor]:
    """The trained weights in float32 under their HF names, on rank 0; tied names share one tensor."""
    from deepspeed.utils import safe_get_full_fp32_param

    gathered: dict[int, Tensor] = {}
    weights: dict[str, Tensor] = {}
    for name, parameter in engine.module.policy.named_parameters(remove_duplicate=False):
        if not parameter.requires_grad:
            continue
        if id(parameter) not in gathered:
            full = safe_get_full_fp32_param(parameter)  # a collective: every rank takes part
            gathered[id(parameter)] = full.detach().cpu().contiguous() if dist.get_rank() == 0 else torch.empty(0)
        weights[name] = gathered[id(parameter)]
    return weights
