"""Makes `policy_update.json`: what verl, Liger and TRL compute for the same inputs. Again after a version change:

    pip install --no-deps --target /tmp/oracles verl==0.9.1 liger-kernel==0.8.5 trl==1.16.0
    python -m tests.oracles.make_policy_update /tmp/oracles

verl and Liger ask for GPU libraries that the formulas do not use; verl's are replaced by empty modules. TRL runs as it
is, on the environment that `make install` made.
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

from tests.oracles import trl_grpo

CLIP_LOW, CLIP_HIGH, DUAL, THRESHOLD = 0.2, 0.28, 3.0, 2.0
GAMMA, LAM = 0.95, 0.9
SCALE, BETA, VALUE_CLIP = 13, 0.1, 0.5
MODES = ("token-mean", "seq-mean-token-sum", "seq-mean-token-sum-norm", "seq-mean-token-mean")
DIVERGENCES = ("kl", "abs", "mse", "low_var_kl", "k1+", "k3+")


class AlgoConfig(dict[str, Any]):
    """As much of verl's as the advantages read."""

    gamma = GAMMA


class ActorConfig(dict[str, Any]):
    """As much of verl's as the losses read. `clip_ratio_c` is out of reach unless a case sets it."""

    clip_ratio = 0.2
    clip_ratio_low = CLIP_LOW
    clip_ratio_high = CLIP_HIGH

    def __init__(self, dual: float | None = None) -> None:
        super().__init__(clip_ratio_c=dual or 1e9)
        self.global_batch_info = {"loss_scale_factor": SCALE}


def load_verl(folder: Path) -> Any:
    """verl's `core_algos`, without running the package's own `__init__` files."""
    anything: Any = type("Anything", (), {})
    names: dict[str, dict[str, Any]] = {
        "omegaconf": {"DictConfig": anything},
        "tensordict": {"TensorDict": anything},
        "verl.trainer.config": {"AlgoConfig": AlgoConfig},
        "verl.workers.config": {"ActorConfig": ActorConfig},
        "verl.utils.device": {"get_device_name": anything, "get_torch_device": anything},
    }
    for package in ("verl", "verl.utils", "verl.trainer", "verl.trainer.ppo"):
        module = types.ModuleType(package)
        module.__path__ = [str(folder / package.replace(".", "/"))]
        sys.modules[package] = module
    for name, members in names.items():
        module = types.ModuleType(name)
        vars(module).update(members)
        sys.modules[name] = module
    utils: Any = sys.modules["verl.utils"]
    utils.as_torch_index = utils.group_mean_std = None
    imports: Any = types.ModuleType("verl.utils.import_utils")
    imports.deprecated = lambda *_: lambda function: function
    sys.modules["verl.utils.import_utils"] = imports
    return importlib.import_module("verl.trainer.ppo.core_algos")


def advantages(verl: Any) -> dict[str, Any]:
    """Interleaved groups of different sizes, graded rewards, answers with tokens that the policy did not write."""
    generator = torch.Generator().manual_seed(0)
    group_S = [f"p{number % 5}" for number in range(28)]
    reward_S = (torch.rand(28, generator=generator) * 4).round() / 4
    length_S = torch.randint(1, 12, (28,), generator=generator)
    mask_ST = (torch.arange(11)[None] < length_S[:, None]).float()
    mask_ST[4::7, 1:3] = 0.0  # what a tool said between two of the policy's turns
    mask_ST[torch.arange(28), length_S - 1] = 1.0
    token_ST = torch.randn(28, 11, generator=generator) * 0.05 * mask_ST
    value_ST = torch.randn(28, 11, generator=generator) * 0.5
    reward_ST = token_ST.clone()
    reward_ST[torch.arange(28), length_S - 1] += reward_S
    groups = np.array(group_S)
    result: dict[str, Any] = {"reward_S": reward_S.tolist(), "group_S": group_S, "gamma": GAMMA, "lam": LAM}
    result |= {"mask_ST": mask_ST.tolist(), "token_ST": token_ST.tolist(), "value_ST": value_ST.tolist()}
    for name, by_std in (("grpo", True), ("dr_grpo", False)):
        advantage_ST, _ = verl.compute_grpo_outcome_advantage(
            reward_ST.clone(), mask_ST, groups, norm_adv_by_std_in_grpo=by_std
        )
        result[name] = advantage_ST.tolist()
    result["rloo"] = verl.compute_rloo_outcome_advantage(reward_ST.clone(), mask_ST, groups)[0].tolist()
    result["reinforce_plus_plus"] = verl.compute_reinforce_plus_plus_outcome_advantage(
        reward_ST.clone(), mask_ST, AlgoConfig()
    )[0].tolist()
    result["reinforce_plus_plus_baseline"] = verl.compute_reinforce_plus_plus_baseline_outcome_advantage(
        reward_ST.clone(), mask_ST, groups
    )[0].tolist()
    advantage_ST, return_ST = verl.compute_gae_advantage_return(reward_ST, value_ST, mask_ST, GAMMA, LAM)
    result |= {"gae": advantage_ST.tolist(), "gae_returns": return_ST.tolist()}
    return result


def batch() -> dict[str, Tensor]:
    """Answers of different lengths, and log-probs so far apart that every bound bites, of a token and of an answer."""
    generator = torch.Generator().manual_seed(1)
    old_BT = -torch.rand(8, 9, generator=generator) * 3
    # Whole answers move too, with and against their advantage.
    shift_B1 = torch.tensor([0.6, -0.6, 0.1, 0.9, 0.2, -0.5, -0.1, -0.7])[:, None]
    logp_BT = old_BT + torch.randn(8, 9, generator=generator) * 0.7 + shift_B1
    rollout_BT = old_BT + torch.randn(8, 9, generator=generator) * 0.5
    reference_BT = old_BT + torch.randn(8, 9, generator=generator) * 0.6
    length_B = torch.tensor([9, 4, 1, 7, 9, 2, 8, 6])
    mask_BT = (torch.arange(9)[None] < length_B[:, None]).float()
    advantage_B = torch.tensor([1.3, -0.7, 0.4, -1.9, 0.0, 0.8, 2.1, -1.1])
    return {
        "logp": logp_BT,
        "old": old_BT,
        "rollout": rollout_BT,
        "reference": reference_BT,
        "mask": mask_BT,
        "advantage": advantage_B,
    }


def with_gradient(loss: Tensor, wanted: Tensor) -> dict[str, Any]:
    """A scalar and its gradient."""
    (grad,) = torch.autograd.grad(loss, wanted)
    return {"loss": loss.item(), "grad": grad.tolist()}


def verl_losses(verl: Any, data: dict[str, Tensor]) -> dict[str, Any]:
    """Each loss in each aggregation, and once more with importance weights."""
    weight_BT = (data["old"] - data["rollout"]).exp().clamp(max=THRESHOLD)
    functions = {
        "vanilla": (verl.compute_policy_loss_vanilla, None),
        "dual": (verl.compute_policy_loss_vanilla, DUAL),
        "gspo": (verl.compute_policy_loss_gspo, None),
        "cispo": (verl.compute_policy_loss_cispo, None),
    }
    result = {}
    for name, (function, dual) in functions.items():
        cases = [(mode, mode, None) for mode in MODES] + [("weighted", "token-mean", weight_BT)]
        for case, mode, weights in cases:
            logp_BT = data["logp"].clone().requires_grad_()
            advantage_BT = data["advantage"][:, None].expand_as(logp_BT)
            loss, metrics = function(data["old"], logp_BT, advantage_BT, data["mask"], mode, ActorConfig(dual), weights)
            result[f"{name}/{case}"] = with_gradient(loss, logp_BT) | metrics
    return result


def liger_losses(liger: Any, data: dict[str, Tensor]) -> dict[str, Any]:
    """What Liger has of the same, under its own names."""
    weight_BT = (data["old"] - data["rollout"]).exp().clamp(max=THRESHOLD)
    cases: dict[str, dict[str, Any]] = {
        "vanilla/token-mean": {"loss_type": "bnpo"},
        "vanilla/weighted": {"loss_type": "bnpo", "vllm_is_ratio": weight_BT},
        "vanilla/seq-mean-token-mean": {"loss_type": "grpo"},
        "vanilla/seq-mean-token-sum-norm": {"loss_type": "dr_grpo", "max_completion_length": SCALE},
        "dual/token-mean": {"loss_type": "bnpo", "delta": DUAL},
        "gspo/seq-mean-token-mean": {"loss_type": "grpo", "importance_sampling_level": "sequence"},
        "kl_loss/token-mean": {"loss_type": "bnpo", "beta": BETA, "ref_per_token_logps": data["reference"]},
    }
    result = {}
    for name, settings in cases.items():
        logp_BT = data["logp"].clone().requires_grad_()
        loss, _ = liger.ppo_loss_fn(
            logp_BT, data["mask"], data["advantage"], data["mask"],
            **{"old_per_token_logps": data["old"], "epsilon_low": CLIP_LOW, "epsilon_high": CLIP_HIGH, "beta": 0.0}
            | settings,
        )  # fmt: skip
        result[name] = with_gradient(loss, logp_BT)
    return result


def trl_losses(data: dict[str, Tensor]) -> dict[str, Any]:
    """Each case by the configuration that means it; the last part of a name is TRL's `loss_type`.

    TRL names CISPO's upper bound itself and has no lower one; by default it weighs the divergence with the ratio.
    """
    weight_BT = (data["old"] - data["rollout"]).exp().clamp(max=THRESHOLD)
    cases: dict[str, dict[str, Any]] = {
        "vanilla/token-mean/bnpo": {},
        "vanilla/token-mean/dapo": {},
        "vanilla/weighted/dapo": {"weight_BT": weight_BT},
        "vanilla/seq-mean-token-mean/grpo": {},
        "vanilla/seq-mean-token-sum/luspo": {},
        "vanilla/seq-mean-token-sum-norm/dr_grpo": {"max_completion_length": SCALE},
        "dual/token-mean/dapo": {"delta": DUAL},
        "gspo/token-mean/bnpo": {"importance_sampling_level": "sequence"},
        "gspo/seq-mean-token-mean/grpo": {"importance_sampling_level": "sequence"},
        "cispo_above/token-mean/cispo": {"epsilon_high": 1 + CLIP_HIGH},
        "kl_loss/token-mean/dapo": {"beta": BETA, "use_bias_correction_kl": False},
        "sapo/seq-mean-token-mean/sapo": {},
    }
    clip = {"epsilon": CLIP_LOW, "epsilon_high": CLIP_HIGH}
    return {
        name: trl_grpo.loss(data, **{"loss_type": name.split("/")[2], **clip, **settings})
        for name, settings in cases.items()
    }


def trl_advantages() -> dict[str, Any]:
    """Graded rewards, one that could not be scored, a group of equal ones.

    TRL adds 1e-4 to the standard deviation and verl 1e-6: the rewards are so large that neither matters.
    """
    generator = torch.Generator().manual_seed(3)
    rewards: list[float | None] = (torch.rand(16, generator=generator) * 4000).round().tolist()
    rewards[4:8] = [1000.0] * 4
    rewards[9] = None
    names = {"grpo": "group", "dr_grpo": "none"}
    return {
        "reward_S": rewards,
        "group_S": [f"p{number // trl_grpo.GROUP}" for number in range(16)],
        **{name: trl_grpo.advantages(rewards, scale) for name, scale in names.items()},
    }


def divergences(verl: Any, data: dict[str, Tensor]) -> dict[str, Any]:
    """Each estimate, a token, and the gradient of their sum. In one place the two policies are far apart."""
    reference_BT = data["reference"].clone()
    reference_BT[0, 0] = data["logp"][0, 0] + 30.0
    result: dict[str, Any] = {"reference": reference_BT.tolist()}
    for kind in DIVERGENCES:
        logp_BT = data["logp"].clone().requires_grad_()
        value_BT = verl.kl_penalty(logp_BT, reference_BT, kind)
        result[kind] = {"value": value_BT.tolist(), "grad": with_gradient(value_BT.sum(), logp_BT)["grad"]}
    # Tokens of the rollout engine, so its log-probs take the first place.
    result["mismatch_k3"] = verl.kl_penalty(data["rollout"], data["old"], "k3").tolist()
    return result


def values(verl: Any, data: dict[str, Tensor]) -> dict[str, Any]:
    """The value loss, with values that have moved beyond the clip and such that have not."""
    generator = torch.Generator().manual_seed(2)
    old_BT = torch.randn(8, 9, generator=generator)
    return_BT = old_BT + torch.randn(8, 9, generator=generator)
    value_BT = (old_BT + torch.randn(8, 9, generator=generator) * 0.6).requires_grad_()
    result: dict[str, Any] = {"value": value_BT.tolist(), "old": old_BT.tolist(), "return": return_BT.tolist()}
    for mode in MODES:
        loss, fraction = verl.compute_value_loss(
            value_BT, return_BT, old_BT, data["mask"], VALUE_CLIP, mode, loss_scale_factor=SCALE
        )
        result[mode] = with_gradient(loss, value_BT) | {"vf_clipfrac": fraction.item()}
    return result


def main(folder: Path) -> None:
    """Compute and write everything."""
    sys.path.insert(0, str(folder))
    data = batch()
    # Before verl, whose replaced modules other packages would stumble over.
    trl, trl_advantage = trl_losses(data), trl_advantages()
    verl = load_verl(folder)
    liger = importlib.import_module("liger_kernel.chunked_loss.grpo_loss").LigerFusedLinearGRPOFunction
    golden = {
        "versions": {dist.name: dist.version for dist in distributions(path=[str(folder)])},
        "settings": {
            "clip_low": CLIP_LOW, "clip_high": CLIP_HIGH, "dual": DUAL, "threshold": THRESHOLD, "scale": SCALE,
            "beta": BETA, "value_clip": VALUE_CLIP,
        },
        "advantages": advantages(verl),
        "batch": {name: tensor.tolist() for name, tensor in data.items()},
        "verl": verl_losses(verl, data),
        "liger": liger_losses(liger, data),
        "trl": trl,
        "trl_advantages": trl_advantage,
        "divergences": divergences(verl, data),
        "values": values(verl, data),
    }  # fmt: skip
    lines = [f"{json.dumps(name)}: {json.dumps(part, sort_keys=True)}" for name, part in golden.items()]
    path = Path(__file__).with_name("policy_update.json")
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{path}: written with {golden['versions']}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
