"""Makes `policy_update.json`: what verl and Liger compute for the same inputs. Run it again after a version change.

    pip install --no-deps --target /tmp/oracles verl==0.9.1 liger-kernel==0.8.5
    python tests/oracles/make_policy_update.py /tmp/oracles

Both packages ask for GPU libraries that the formulas do not use; verl's are replaced by empty modules.
"""

from __future__ import annotations

import importlib
import json
import sys
import types
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

CLIP_LOW, CLIP_HIGH, THRESHOLD = 0.2, 0.28, 2.0


def load_verl(folder: Path) -> Any:
    """verl's `core_algos`, without running the package's own `__init__` files."""
    sys.path.insert(0, str(folder))
    anything: Any = type("Anything", (), {})
    names = {
        "omegaconf": ["DictConfig"],
        "tensordict": ["TensorDict"],
        "verl.trainer.config": ["AlgoConfig"],
        "verl.workers.config": ["ActorConfig"],
        "verl.utils.device": ["get_device_name", "get_torch_device"],
    }
    for package in ("verl", "verl.utils", "verl.trainer", "verl.trainer.ppo"):
        module = types.ModuleType(package)
        module.__path__ = [str(folder / package.replace(".", "/"))]
        sys.modules[package] = module
    for name, members in names.items():
        module = types.ModuleType(name)
        for member in members:
            setattr(module, member, anything)
        sys.modules[name] = module
    utils: Any = sys.modules["verl.utils"]
    utils.as_torch_index = utils.group_mean_std = None
    imports: Any = types.ModuleType("verl.utils.import_utils")
    imports.deprecated = lambda *_: lambda function: function
    sys.modules["verl.utils.import_utils"] = imports
    return importlib.import_module("verl.trainer.ppo.core_algos")


class ActorConfig(dict[str, Any]):
    """As much of verl's as the loss reads. `clip_ratio_c` is out of reach: DeepCoder has no dual clip."""

    clip_ratio = 0.2
    clip_ratio_low = CLIP_LOW
    clip_ratio_high = CLIP_HIGH
    global_batch_info: dict[str, Any] = {}  # noqa: RUF012


def advantages(verl: Any) -> dict[str, Any]:
    """Groups of different sizes, interleaved, with graded rewards."""
    generator = torch.Generator().manual_seed(0)
    group_S = [f"p{number % 5}" for number in range(28)]
    reward_S = (torch.rand(28, generator=generator) * 4).round() / 4
    result: dict[str, Any] = {"reward_S": reward_S.tolist(), "group_S": group_S}
    for name, by_std in (("grpo", True), ("dr_grpo", False)):
        advantage_ST, _ = verl.compute_grpo_outcome_advantage(
            reward_S[:, None].clone(), torch.ones(28, 1), np.array(group_S), norm_adv_by_std_in_grpo=by_std
        )
        result[name] = {"norm_adv_by_std_in_grpo": by_std, "advantage_S": advantage_ST[:, 0].tolist()}
    return result


def batch() -> dict[str, Tensor]:
    """Log-probs far enough apart that both bounds bite, and answers of different lengths."""
    generator = torch.Generator().manual_seed(1)
    old_BT = -torch.rand(6, 9, generator=generator) * 3
    logp_BT = old_BT + torch.randn(6, 9, generator=generator) * 0.4
    rollout_BT = old_BT + torch.randn(6, 9, generator=generator) * 0.5
    length_B = torch.tensor([9, 4, 1, 7, 9, 2])
    mask_BT = (torch.arange(9)[None] < length_B[:, None]).float()
    advantage_B = torch.tensor([1.3, -0.7, 0.4, -1.9, 0.0, 0.8])
    return {"logp": logp_BT, "old": old_BT, "rollout": rollout_BT, "mask": mask_BT, "advantage": advantage_B}


def losses(verl: Any, liger: Any) -> dict[str, Any]:
    """Value and gradient of the clipped loss, token-mean, with and without importance weights."""
    data = batch()
    weight_BT = (data["old"] - data["rollout"]).exp().clamp(max=THRESHOLD)
    result: dict[str, Any] = {name: tensor.tolist() for name, tensor in data.items()}
    result |= {"clip_low": CLIP_LOW, "clip_high": CLIP_HIGH, "threshold": THRESHOLD}
    for name, weights in (("plain", None), ("weighted", weight_BT)):
        logp_BT = data["logp"].clone().requires_grad_()
        loss, metrics = verl.compute_policy_loss_vanilla(
            data["old"], logp_BT, data["advantage"][:, None].expand_as(logp_BT), data["mask"], "token-mean",
            ActorConfig(clip_ratio_c=1e9), weights,
        )  # fmt: skip
        (grad_BT,) = torch.autograd.grad(loss, logp_BT)
        result[f"verl_{name}"] = {"loss": loss.item(), "grad": grad_BT.tolist(), **metrics}
        logp_BT = data["logp"].clone().requires_grad_()
        loss, _ = liger.ppo_loss_fn(
            logp_BT, data["mask"], data["advantage"], data["mask"], old_per_token_logps=data["old"],
            epsilon_low=CLIP_LOW, epsilon_high=CLIP_HIGH, beta=0.0, loss_type="bnpo", vllm_is_ratio=weights,
        )  # fmt: skip
        (grad_BT,) = torch.autograd.grad(loss, logp_BT)
        result[f"liger_{name}"] = {"loss": loss.item(), "grad": grad_BT.tolist()}
    # Tokens of the rollout engine, so its log-probs take the first place.
    result["verl_k3"] = verl.kl_penalty(data["rollout"], data["old"], "k3").tolist()
    return result


def main(folder: Path) -> None:
    """Compute and write everything."""
    verl = load_verl(folder)
    liger = importlib.import_module("liger_kernel.chunked_loss.grpo_loss").LigerFusedLinearGRPOFunction
    versions = {dist.name: dist.version for dist in distributions(path=[str(folder)])}
    golden = {"versions": versions, "advantages": advantages(verl), "losses": losses(verl, liger)}
    path = Path(__file__).with_name("policy_update.json")
    path.write_text(json.dumps(golden, indent=1, sort_keys=True) + "\n")
    print(f"{path}: written with {versions}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
