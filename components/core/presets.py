"""Named algorithms: each fills in defaults of `policy_update`; a key that a profile or an override sets wins."""

from __future__ import annotations

from typing import Any

PRESETS: dict[str, dict[str, Any]] = {
    # DeepCoder (rLLM, May 2025): GRPO with its std, clip-higher, no KL, no entropy bonus, no dual clip. Different here:
    # the upper clip ratio is applied, and a truncated answer is out of the loss altogether (see mask_truncated_rule).
    "grpo_plus": {
        "adv_estimator": "grpo",
        "norm_adv_by_std_in_grpo": True,
        "clip_ratio_low": 0.2,
        "clip_ratio_high": 0.28,
        "clip_ratio_c": None,
        "loss_agg_mode": "token-mean",
        "mask_truncated_samples": True,
    },
    # arXiv:2503.20783: neither the group's std nor an answer's length weighs a token.
    "dr_grpo": {
        "adv_estimator": "grpo",
        "norm_adv_by_std_in_grpo": False,
        "clip_ratio_low": 0.2,
        "clip_ratio_high": 0.2,
        "clip_ratio_c": None,
        "loss_agg_mode": "seq-mean-token-sum-norm",
        "mask_truncated_samples": False,
    },
    # arXiv:2503.14476; the dual clip is that of verl's recipe.
    "dapo": {
        "adv_estimator": "grpo",
        "norm_adv_by_std_in_grpo": True,
        "clip_ratio_low": 0.2,
        "clip_ratio_high": 0.28,
        "clip_ratio_c": 10.0,
        "loss_agg_mode": "token-mean",
        "mask_truncated_samples": False,
        "filter_groups": {"enable": True, "oversample": 1.5},
        "overlong_buffer": {"enable": True},
    },
    # arXiv:1707.06347 with verl's defaults: a value model, gamma and lambda 1, dual clip 3 (arXiv:1912.09729).
    "ppo": {
        "adv_estimator": "gae",
        "gamma": 1.0,
        "lam": 1.0,
        "clip_ratio_low": 0.2,
        "clip_ratio_high": 0.2,
        "clip_ratio_c": 3.0,
        "loss_agg_mode": "token-mean",
        "mask_truncated_samples": False,
    },
}


def apply_preset(values: dict[str, Any]) -> dict[str, Any]:
    """The section with its preset's values where it has none of its own; an unknown name is left to validation."""
    result = dict(values)
    for key, default in PRESETS.get(str(values.get("preset", "grpo_plus")), {}).items():
        given = result.get(key)
        if isinstance(default, dict) and isinstance(given, dict):
            result[key] = {**default, **given}
        elif key not in result:
            result[key] = default
    return result
