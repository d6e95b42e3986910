"""Saving and loading: HF weights for everyone, ZeRO-3 state for the next update."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from components.core.errors import UserError

_TAG = "state"
# Of the system's errors, and all that torch.save says of them.
_NO_SPACE = ("No space left", "File too large", "quota exceeded", "inline_container")


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


def load_optimizer(engine: Any, folder: Path, scratch: Path) -> None:
    """Continue with the optimizer state, master weights included, that `save_optimizer` wrote on any number of ranks.

    Args:
        engine: built from the same model with the same weights trained.
        folder: what `save_optimizer` wrote.
        scratch: a folder that all ranks see; for the state in DeepSpeed's universal format, if it was written on
            another number of ranks.

    Raises:
        UserError: the folder holds no state, or the disk has no room to convert it.
    """
    saved_by = len(list((folder / _TAG).glob("*_optim_states.pt")))
    if not saved_by:
        raise UserError(f"{folder}: holds no ZeRO-3 state. Delete the folder above it, then rerun.")
    universal = saved_by != dist.get_world_size()
    if universal:
        scratch = scratch / f"universal-{folder.parent.name}"
        if dist.get_rank() == 0:
            _to_universal(folder / _TAG, scratch)
        _wait_for(scratch / "latest_universal")
        folder = scratch
    # DeepSpeed reads its configuration at this moment only; before it nobody knows what there is to load.
    engine._config.load_universal_checkpoint = universal
    engine.load_checkpoint(str(folder), tag=_TAG, load_module_strict=False)
    dist.barrier()
    if universal and dist.get_rank() == 0:
        shutil.rmtree(scratch)


def _to_universal(state: Path, target: Path) -> None:
    """Convert what all ranks wrote to one file a parameter; `latest_universal` is written last."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    need = 2 * sum(path.stat().st_size for path in state.iterdir())  # and as much in between
    have = shutil.disk_usage(target).free
    if have < need:
        raise UserError(
            f"{target}: the optimizer state was written on another number of ranks; {need / 1e9:.2f} GB are needed to "
            f"convert it, {have / 1e9:.2f} GB are free. Free some space or change store=, then rerun."
        )
    # A process of its own: it loads all shares, and its memory goes with it.
    command = [sys.executable, "-m", "deepspeed.checkpoint.ds_to_universal"]
    command += ["--input_folder", str(state), "--output_folder", str(target / _TAG)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{state}: could not be converted for another number of ranks:\n{done.stderr[-2000:]}")


def _wait_for(path: Path) -> None:
    """A barrier without the collectives' time limit; the launcher ends the wait if rank 0 fails."""
    while not path.exists():
        time.sleep(0.2)


@contextmanager
def saving(output: Path) -> Iterator[None]:
    """Around whatever writes below `output`: a disk that fills up is named as such.

    What was written goes, so that there is room for the message.

    Raises:
        UserError: there was no space.
    """
    from safetensors import SafetensorError

    try:
        yield
    except (OSError, RuntimeError, SafetensorError) as error:
        if not any(sign in str(error) for sign in _NO_SPACE):
            raise
        shutil.rmtree(output, ignore_errors=True)
        raise UserError(
            f"{output}: no space left while the update was saved ({error}). Free some or change store=, then rerun."
        ) from error


def save_optimizer(engine: Any, folder: Path) -> None:
    """Write each rank's share. Frozen weights are left out: they are in the HF directory."""
    zero = engine.optimizer
    for flat in zero.fp32_partitioned_groups_flat:
        if not zero.optimizer.state[flat]:
            # AdamW's own, which it makes at its first step: without them no other number of ranks could load this.
            moments = {"exp_avg": torch.zeros_like(flat), "exp_avg_sq": torch.zeros_like(flat)}
            zero.optimizer.state[flat] = {"step": torch.tensor(0.0), **moments}
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
