"""The configuration of the PPO update, `policy_update`; names and meanings are verl's."""

from __future__ import annotations

import re
from typing import Any, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from components.core.presets import apply_preset
from components.core.section import Section

ADV_ESTIMATORS = ("grpo", "rloo", "reinforce_plus_plus", "reinforce_plus_plus_baseline", "gae")
LOSS_MODES = ("vanilla", "gspo", "cispo")

Divergence = Literal["kl", "k1", "abs", "mse", "k2", "low_var_kl", "k3", "kl+", "k1+", "abs+", "low_var_kl+", "k3+"]
"""verl's names; `+` takes the gradient of k2, the only one that is the gradient of the divergence."""


class CriticConfig(Section):
    """The value model of `adv_estimator: gae`; what is not here it shares with the policy."""

    lr: float = Field(1e-5, gt=0)
    """AdamW's, constant."""
    cliprange_value: float = Field(0.5, gt=0)
    """A value may move this far from the one before the update before its loss is clipped."""
    grad_clip: float = Field(1.0, gt=0)
    """Largest gradient norm."""
    warmup_steps: int = Field(0, ge=0)
    """Optimizer steps from the start of the run in which only the value model learns."""


class FilterGroupsConfig(Section):
    """DAPO's dynamic sampling: groups whose answers all have the same reward are left out."""

    enable: bool = False
    """Drop them before the mini-batches are made."""
    oversample: float = Field(1.0, ge=1)
    """Problems sampled an iteration, as a multiple of batch_size; of those left, at most batch_size are trained on."""


class OverlongBufferConfig(Section):
    """DAPO's soft overlong punishment: a reward falls linearly over the last tokens before the limit."""

    enable: bool = False
    """Lower the rewards of answers that reach into the buffer."""
    len: int | None = Field(None, ge=1)
    """Tokens before the stage's max_response_length; null takes a fifth of it."""
    penalty_factor: float = Field(1.0, gt=0)
    """What an answer at the limit loses."""


class AlarmsConfig(Section):
    """When an update warns; each alarm is a metric `alarm/...` too."""

    entropy: float = Field(0.2, ge=0)
    """Entropy below this share of the run's first update's: the policy collapses."""
    mismatch_kl: float = Field(0.01, gt=0)
    """KL between rollout engine and trainer above this."""
    clip_fraction: float = Field(0.2, gt=0)
    """Share of clipped tokens above this."""
    zero_std: float = Field(0.7, gt=0)
    """Share of groups whose rewards are all equal above this."""
    window: int = Field(3, ge=1)
    """Updates averaged when truncation is seen to rise while the reward falls."""


class PolicyUpdateConfig(Section):
    """The PPO update; names and meanings are verl's."""

    preset: Literal["grpo_plus", "dr_grpo", "dapo", "ppo"] = "grpo_plus"
    """Fills in what is not set here: DeepCoder's algorithm, or another; see components/core/presets.py."""
    adv_estimator: str = "grpo"
    """`grpo`, `rloo`, `reinforce_plus_plus`, `reinforce_plus_plus_baseline`, `gae` (trains a value model), or your own
    `package.module:function`."""
    norm_adv_by_std_in_grpo: bool = True
    """False leaves out the division by std (Dr. GRPO)."""
    gamma: float = Field(1.0, gt=0, le=1)
    """Discount a token (`gae`, `reinforce_plus_plus`)."""
    lam: float = Field(1.0, ge=0, le=1)
    """The lambda of `gae`."""
    loss_mode: str = "vanilla"
    """`vanilla` (PPO's clip), `gspo` (one ratio an answer: its clip ratios are about 3e-4), `cispo`, or your own
    `package.module:function`."""
    clip_ratio_low: float = Field(0.2, ge=0, lt=1)
    """The ratio is clipped at 1 - this."""
    clip_ratio_high: float = Field(0.28, ge=0)
    """The ratio is clipped at 1 + this (clip-higher)."""
    clip_ratio_c: float | None = Field(None, gt=1)
    """Dual clip: bounds the loss of a token with a negative advantage at this times the advantage; null for none."""
    loss_agg_mode: Literal["token-mean", "seq-mean-token-sum", "seq-mean-token-sum-norm", "seq-mean-token-mean"] = (
        "token-mean"
    )
    """How token losses become one: over all tokens or all answers of the mini-batch, over all ranks."""
    loss_scale_factor: float | None = Field(None, gt=0)
    """The constant of `seq-mean-token-sum-norm`; null takes the stage's max_response_length."""
    mask_truncated_samples: bool = True
    """Overlong filtering: truncated answers do not teach."""
    mask_truncated_rule: Literal["loss", "advantage"] = "loss"
    """`loss`: they are out of the loss and its denominator. `advantage`: DeepCoder's own rule, the advantage becomes 0
    if the reward is 0 too, and the tokens stay in the denominator."""
    filter_groups: FilterGroupsConfig = FilterGroupsConfig()
    overlong_buffer: OverlongBufferConfig = OverlongBufferConfig()
    entropy_coeff: float = Field(0.0, ge=0)
    """The entropy bonus's weight in the loss."""
    use_kl_loss: bool = False
    """Add the divergence from the run's initial policy to the loss."""
    kl_loss_coef: float = Field(0.001, ge=0)
    """Its weight."""
    kl_loss_type: Divergence = "low_var_kl"
    """Its estimator."""
    use_kl_in_reward: bool = False
    """Subtract the divergence from the run's initial policy from each token's reward."""
    kl_coef: float = Field(0.001, ge=0)
    """Its weight."""
    kl_penalty: Divergence = "kl"
    """Its estimator."""
    critic: CriticConfig = CriticConfig()
    ppo_mini_batch_size: int = Field(64, ge=1)
    """Problems (groups) in one optimizer step, over all ranks."""
    ppo_epochs: int = Field(1, ge=1)
    """Passes over the rollout batch."""
    ppo_max_token_len_per_gpu: int = Field(20000, ge=1)
    """Tokens in one micro-batch of one rank; sequences are packed without padding."""
    old_logprobs: Literal["recompute", "rollout"] = "recompute"
    """The denominator of the ratio: recomputed by the trainer, or taken from a rollout engine of equal precision."""
    rollout_is_threshold: float | None = Field(2.0, gt=0)
    """Truncated importance sampling: token weights min(p_old / p_rollout, this); null for none."""
    grad_clip: float = Field(1.0, gt=0)
    """Largest gradient norm."""
    weight_decay: float = Field(0.01, ge=0)
    """AdamW's."""
    betas: tuple[float, float] = (0.9, 0.999)
    """AdamW's."""
    train_last_layers: int | None = Field(None, ge=1)
    """Train only the last so many transformer layers and the final norm; null trains everything."""
    dtype: Literal["float32", "bfloat16"] = "bfloat16"
    """Of forward and backward; the master weights are float32 in any case."""
    attn_implementation: Literal["auto", "sdpa", "flash_attention_2", "flash_attention_3"] = "auto"
    """Attention over packed sequences; `auto` takes flash_attention_2 on a GPU where it is installed, else torch's."""
    ulysses_sequence_parallel_size: int = Field(1, ge=1)
    """Ranks that share a micro-batch, each with a part of its tokens; a micro-batch then holds as many times
    ppo_max_token_len_per_gpu."""
    use_liger: bool = False
    """Liger's Triton kernels for RMSNorm, rotary embedding and SwiGLU; needs a GPU."""
    gradient_checkpointing: bool = True
    """Recompute activations in the backward pass."""
    offload_optimizer: bool = False
    """Keep optimizer states in CPU memory."""
    launcher: Literal["inprocess", "deepspeed", "trainjob"] = "inprocess"
    """One rank in the step's process; or one a GPU (or CPU rank) of its pod, started with torch's launcher; or those of
    several pods, which a Kubeflow TrainJob runs."""
    ranks: int = Field(1, ge=1)
    """Ranks of one pod; with `inprocess` 1."""
    nodes: int = Field(1, ge=1)
    """Pods of the TrainJob; with the other launchers 1."""
    training_runtime: str = "deepcoder-update"
    """The TrainingRuntime that the TrainJob refers to, in the run's namespace; manifests/ installs this one."""
    max_nan_steps: int = Field(3, ge=0)
    """Steps whose gradient is not finite are skipped and counted; more than this many in a row, over updates too, fail
    the update."""
    keep_last: int = Field(2, ge=1)
    """Optimizer states and value models kept; older ones are pruned once a newer one is complete. HF weights are
    kept."""
    peak_tflops: float | None = Field(None, gt=0)
    """Of one rank's device in `dtype`, for perf/mfu; null takes the data sheet's number of a known GPU."""
    alarms: AlarmsConfig = AlarmsConfig()

    @model_validator(mode="before")
    @classmethod
    def _fill_in_the_preset(cls, values: Any) -> Any:
        return apply_preset(values) if isinstance(values, dict) else values

    @field_validator("adv_estimator", "loss_mode")
    @classmethod
    def _known_or_a_function(cls, value: str, info: ValidationInfo) -> str:
        known = ADV_ESTIMATORS if info.field_name == "adv_estimator" else LOSS_MODES
        if value not in known and not re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", value):
            raise ValueError(f"neither one of {', '.join(known)} nor package.module:function")
        return value

    @property
    def needs_reference(self) -> bool:
        """Whether the run's initial policy is compared with."""
        return self.use_kl_loss or self.use_kl_in_reward

    @model_validator(mode="after")
    def _ranks_need_a_launcher(self) -> Self:
        if self.launcher == "inprocess" and self.ranks != 1:
            raise ValueError(f"policy_update.ranks={self.ranks} needs policy_update.launcher=deepspeed")
        if (self.nodes * self.ranks) % self.ulysses_sequence_parallel_size:
            raise ValueError(
                f"policy_update.ulysses_sequence_parallel_size={self.ulysses_sequence_parallel_size} does not divide "
                f"the {self.nodes * self.ranks} ranks"
            )
        if self.launcher != "trainjob" and self.nodes != 1:
            raise ValueError(f"policy_update.nodes={self.nodes} needs policy_update.launcher=trainjob")
        return self
