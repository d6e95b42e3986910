"""Saving and loading: HF weights for everyone, ZeRO-3 state for the next update."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

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
    leaves out stays out. Trained weights come from the float32 master copies, gathered one file at a time.

    Raises:
        UserError: a trained weight is in none of the files.
    """
    from safetensors import safe_open
    from safetensors.torch import save_file

    first = dist.get_rank() == 0
    named = engine.module.policy.named_parameters(remove_duplicate=False)
    trained = {name: parameter for name, parameter in named if parameter.requires_grad}
    written: set[int] = set()
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(path for path in source.iterdir() if path.is_file()):
        if path.suffix != ".safetensors":
            if first:
                shutil.copyfile(path, target / path.name)
            continue
        with safe_open(path, framework="pt") as file:
            names = sorted(file.keys())
            tensors: dict[str, Tensor] = {name: file.get_tensor(name) for name in names} if first else {}
            metadata = file.metadata() or {"format": "pt"}
        for name in names:
            if name in trained:
                written.add(id(trained[name]))
                full = _gather(trained[name])
                if first:
                    tensors[name] = full.to(tensors[name].dtype)
        if first:
            save_file(tensors, target / path.name, metadata=metadata)
    lost = [name for name, parameter in trained.items() if id(parameter) not in written]
    if lost:
        raise UserError(f"{source}: its safetensors files lack the trained weights {', '.join(lost[:5])}.")


def _gather(parameter: Tensor) -> Tensor:
    """A whole parameter in float32, from the master copies of all ranks; every rank must ask for it."""
    from deepspeed.utils import safe_get_full_fp32_param

    full: Tensor = safe_get_full_fp32_param(parameter).detach().cpu().contiguous()
    return full
