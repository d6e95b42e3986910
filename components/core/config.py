"""The one configuration of a run: a profile plus overrides, validated before anything starts.

The top level uses the names of the DeepCoder guide, everything below verl's.
"""

from __future__ import annotations

import math
import re
from datetime import date
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator

from components.core.errors import UserError
from components.core.pods import KubernetesConfig
from components.core.presets import apply_preset
from components.core.store import config_hash

ADV_ESTIMATORS = ("grpo", "rloo", "reinforce_plus_plus", "reinforce_plus_plus_baseline", "gae")
LOSS_MODES = ("vanilla", "gspo", "cispo")


class Section(BaseModel):
    """Base of every section: unknown keys are errors, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class SourceConfig(Section):
    """One raw source of problems."""

    format: Literal[
        "taco", "primeintellect", "livecodebench", "deepcoder", "humaneval", "mbpp", "codeforces", "problems"
    ]
    """The schema of its rows; `problems` is this project's own (PROBLEM_SCHEMA)."""
    path: str
    """A local file or directory of jsonl/parquet/arrow, an `s3://` prefix, or a hub data set name."""
    name: str | None = None
    """Hub configuration (for example `release_v5`), where the data set has several."""
    split: str = "train"
    """Hub split to read."""
    since: date | None = None
    """Only problems of contests on this date or later; one without a date stays out."""
    until: date | None = None
    """Only problems of contests on this date or earlier."""
    solutions: str | None = None
    """A jsonl of {question_id, solution} for sources whose rows carry no reference solution."""
    trusted: bool = False
    """Keep its training problems that come without a reference solution."""
    exclude: str | None = None
    """A JSON list of row numbers or question ids that are left out as known to be bad."""
    special_judge: str | None = None
    """TACO's labels, a jsonl of {idx, special_judge, case}, idx a row number."""
    license: str | None = None
    """Its licence, for the manifest; null takes what the published data set says."""


class DataConfig(Section):
    """How the raw sources become the training and evaluation problems."""

    sources: list[SourceConfig] = Field(min_length=1)
    """In order of precedence: of two duplicates the one of the earlier source stays."""
    train_from: date = date(2023, 5, 1)
    """First contest date of LiveCodeBench problems that may be trained on."""
    train_until: date = date(2024, 7, 31)
    """Last one, inclusive."""
    test_from: date = date(2024, 8, 1)
    """First contest date of the held-out problems."""
    test_until: date = date(2025, 1, 31)
    """Last one, inclusive."""
    min_tests: int = Field(5, ge=1)
    """Problems with fewer tests are dropped."""
    max_prompt_length: int = Field(2048, ge=16)
    """Tokens; problems whose prompt is longer are dropped."""
    near_duplicate_threshold: float = Field(0.8, gt=0, le=1)
    """Jaccard similarity of word shingles from which two statements count as the same problem."""
    verify: bool = True
    """Run the reference solutions; a problem stays only if one passes all its tests."""
    keep_unverified_test: bool = True
    """Keep held-out problems that come without any reference solution (LiveCodeBench has none)."""
    keep_special_judge: bool = False
    """Keep problems with many right answers and LiveCodeBench's errata: published scores include them."""
    solve_rates: str | None = None
    """A jsonl of {problem_id, solve_rate}, or a folder of reward rows: training problems that a policy always or
    never solved are dropped."""
    max_train_problems: int | None = Field(None, ge=1)
    """A seeded sample of the training problems; null keeps all."""
    max_test_problems: int | None = Field(None, ge=1)
    """A seeded sample of the held-out problems; null keeps all."""

    @model_validator(mode="after")
    def _windows_do_not_overlap(self) -> Self:
        if self.train_until >= self.test_from:
            raise ValueError(
                f"data.train_until={self.train_until} is not before data.test_from={self.test_from}: "
                "a contest in both windows would be trained on and tested on"
            )
        return self


class ServerConfig(Section):
    """An OpenAI-compatible server, for rollout.engine=openai."""

    base_url: str = ""
    """Where `/chat/completions` is, as `https://host:8000/v1`."""
    model: str | None = None
    """The name it serves the model under; null takes the first that it lists."""
    api_key_env: str | None = None
    """The environment variable that holds the key; null sends none. The key itself stands in no configuration."""
    concurrency: int = Field(64, ge=1)
    """Requests under way at a time."""
    timeout_s: float = Field(3600.0, gt=0)
    """Seconds that one answer may take."""
    retries: int = Field(5, ge=0)
    """Times that a request is sent again after a lost connection, 408, 429 or 5xx, with growing pauses."""
    logprobs: bool = True
    """Ask for the log-prob of each token."""
    token_ids: bool = False
    """Ask for token ids (`return_token_ids`, which vLLM knows and others may refuse)."""


class RolloutConfig(Section):
    """How completions are sampled from the policy."""

    engine: Literal["transformers", "vllm", "openai"] = "vllm"
    """`vllm` on a GPU; `transformers` starts in seconds on a CPU; `openai` asks a server, for evaluation only."""
    server: ServerConfig = ServerConfig()
    mode: str = "single"
    """How a sample comes about: `single`, `refine`, `solver_judge`, `debate`, or `package.module:function`, yours."""
    mode_options: dict[str, bool | int | float | str] = {}
    """Keyword arguments of the mode's function, as {turns: 3}; see components/rollout/README.md."""
    answer_prefix: str = ""
    """Text that every answer begins with, as `<think>`; given to the policy, so it is left out of the loss."""
    n: int = Field(8, ge=1)
    """Samples a problem in training; a group of one has no baseline."""
    temperature: float = Field(0.6, gt=0)
    """The trainer divides its logits by the same number."""
    top_p: float = Field(1.0, gt=0, le=1)
    """Below 1 the log-probs are those of a truncated distribution; training refuses that."""
    shards: int = Field(1, ge=1)
    """Rollout steps that run side by side; problems are assigned by a hash."""
    chunk_prompts: int = Field(32, ge=1)
    """Problems in one batch of the `transformers` engine; the others take a whole shard at once."""
    exact_resume: bool = False
    """Generate a batch that was cut off again as a whole, so that a resumed run is the same bit for bit. Else only
    the samples that are missing, whose log-probs differ in the last digits, since a batch's shape decides these."""
    wall_limit_s: float | None = Field(None, gt=0)
    """Seconds of one shard's generation; samples that are not done by then are `unfinished`: counted, no reward."""
    dtype: Literal["float32", "bfloat16"] = "bfloat16"
    """Of the engine's weights and activations."""
    threads: int | None = Field(None, ge=1)
    """CPU threads of one shard's `transformers` engine; null takes all. Two shards of one thread beat one of two."""
    tensor_parallel_size: int = Field(1, ge=1)
    """GPUs one engine spans (vllm)."""
    gpu_memory_utilization: float = Field(0.8, gt=0, lt=1)
    """Share of a GPU's memory that the engine may take (vllm)."""
    stdin_template: str = "{question}"
    """User message for a problem that reads stdin; may use {question}."""
    function_template: str = "{question}"
    """User message for a function problem; may use {question}, {starter_code}, {fn_name}."""
    system_prompt: str | None = None
    """A system message; null sends none of ours (a chat template may add its own)."""
    stop_at_code_end: bool = False
    """End an answer at the fence that closes its first code block. For models that do not think first."""

    @model_validator(mode="after")
    def _a_server_is_named_and_begins_its_answers_itself(self) -> Self:
        if self.engine == "openai" and not self.server.base_url:
            raise ValueError("rollout.engine=openai needs rollout.server.base_url")
        if self.engine == "openai" and self.answer_prefix:
            raise ValueError("rollout.answer_prefix: a chat server cannot be told how to begin; leave it empty")
        return self


class StageConfig(Section):
    """One context stage."""

    name: str = Field(pattern=r"^[A-Za-z0-9.-]+$")
    """For people: `16K`."""
    max_response_length: int = Field(ge=1)
    """Tokens one answer may take; one that reaches it counts as truncated."""
    iterations: int = Field(ge=1)
    """Rollout, reward and update, this many times."""


class RewardConfig(Section):
    """How completions are graded."""

    function: str = "components.reward.functions:all_tests"
    """`module:function` that turns verdicts into rewards; yours goes here."""
    mode: Literal["real", "lcb"] = "real"
    """`real` runs programs as a process would; `lcb` agrees with the LiveCodeBench harness, quirks included."""
    workers: int | None = Field(None, ge=1)
    """Sandbox processes; null takes one a core."""
    time_limit_s: float | None = Field(None, gt=0)
    """CPU seconds a test; null takes each problem's own limit."""
    shuffle: bool = False
    """Negative control: permute the rewards over the whole batch, so that nothing can be learned from them."""


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
    """Steps whose gradient is not finite are skipped and counted; more than this many fail the update."""
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


class EvaluationConfig(Section):
    """How held-out problems are sampled and summed up."""

    n: int = Field(8, ge=1)
    """Samples a problem."""
    temperature: float = Field(0.6, gt=0)
    """Sampling temperature."""
    top_p: float = Field(0.95, gt=0, le=1)
    """Nucleus sampling; evaluation may truncate."""
    max_response_length: int = Field(ge=1)
    """Tokens; may exceed the last stage's (DeepCoder: trained to 32K, evaluated at 64K)."""
    mode: str | None = None
    """As rollout.mode; null takes that one, with its options."""
    mode_options: dict[str, bool | int | float | str] = {}
    """As rollout.mode_options, for evaluation.mode."""
    pass_k: list[int] = [1, 4, 8]
    """Which pass@k to report; those above `n` are left out."""
    confidence: float = Field(0.95, gt=0, lt=1)
    """Of the intervals, which are clustered by problem."""
    both_modes: bool = True
    """Judge the held-out answers in the other mode too (see `reward.mode`) and name the programs that differ."""


class Config(Section):
    """A whole run."""

    profile: str
    """The profile's name."""
    run_name: str | None = None
    """Names the run's folder in the store; null derives it from the profile and the configuration."""
    model_name: str
    """The base policy: a hub id, a local or `s3://` directory, `package:MODULE/FILE.gguf` for weights that an
    installed package ships, or `random:LAYERSxWIDTH` for a tiny untrained one."""
    learning_rate: float = Field(gt=0)
    """AdamW's, constant."""
    batch_size: int = Field(ge=1)
    """Problems sampled an iteration; each is answered rollout.n times."""
    max_steps: int | None = Field(None, ge=1)
    """Optimizer steps after which updates stop; null runs what the stages say."""
    context_length: int = Field(ge=2)
    """Tokens of prompt and answer together that the engines must hold, evaluation included."""
    seed: int = 0
    """All randomness derives from it."""
    store: str
    """Where bulk data lives: a directory or `s3://bucket/prefix`."""
    experiment: str = "deepcoder"
    """The MLflow experiment."""
    tracking_uri: str | None = None
    """MLflow's tracking URI; null takes MLFLOW_TRACKING_URI, else SQLite in a store that is a directory."""
    staleness: Literal[0, 1] = 0
    """1: a rollout uses the policy of one update ago, so that generation and training overlap."""
    data: DataConfig
    rollout: RolloutConfig = RolloutConfig()
    stages: list[StageConfig] = Field(min_length=1)
    """Context stages, in order."""
    reward: RewardConfig = RewardConfig()
    policy_update: PolicyUpdateConfig = PolicyUpdateConfig()
    evaluation: EvaluationConfig
    kubernetes: KubernetesConfig = KubernetesConfig()

    @model_validator(mode="after")
    def _parts_fit_together(self) -> Self:
        longest = max([stage.max_response_length for stage in self.stages] + [self.evaluation.max_response_length])
        needed = self.data.max_prompt_length + longest
        if needed > self.context_length:
            raise ValueError(
                f"context_length={self.context_length} is less than data.max_prompt_length="
                f"{self.data.max_prompt_length} + the longest max_response_length={longest}: set it to {needed}"
            )
        mini = self.policy_update.ppo_mini_batch_size
        if self.batch_size % mini:
            raise ValueError(
                f"batch_size={self.batch_size} is not a multiple of policy_update.ppo_mini_batch_size={mini}"
            )
        update = self.policy_update
        if self.staleness and update.old_logprobs == "recompute" and update.rollout_is_threshold is None:
            raise ValueError(
                "staleness=1 samples from another policy than the one that is updated: set "
                "policy_update.rollout_is_threshold, or policy_update.old_logprobs=rollout, to correct for that"
            )
        if self.evaluation.mode is None and self.evaluation.mode_options:
            raise ValueError("evaluation.mode_options needs evaluation.mode; without it both are rollout's")
        if self.rollout.top_p < 1:
            raise ValueError("rollout.top_p must be 1 in training: below it the stored log-probs are biased")
        names = [stage.name for stage in self.stages]
        if len(set(names)) < len(names):
            raise ValueError(f"stages: names repeat ({', '.join(names)})")
        wrong = self.kubernetes.contradiction(self.store, self.rollout, self.policy_update)
        if wrong:
            raise ValueError(wrong)
        return self

    def hash(self) -> str:
        """Over everything that can change a result; not where it is stored, shown or run."""
        return config_hash(
            self.model_dump(mode="json", exclude={"run_name", "store", "experiment", "tracking_uri", "kubernetes"})
        )

    @property
    def sampled_problems(self) -> int:
        """Problems sampled an iteration: batch_size, and more for groups that will be filtered out."""
        groups = self.policy_update.filter_groups
        return math.ceil(self.batch_size * groups.oversample) if groups.enable else self.batch_size

    @property
    def run(self) -> str:
        """The run's folder name below `runs/`."""
        return self.run_name or f"{self.profile}-{self.hash()[:8]}"

    def shared_tracking_uri(self) -> str | None:
        """The configured MLflow URI, else SQLite beside a store that is a directory, else None (environment)."""
        if self.tracking_uri or self.store.startswith("s3://"):
            return self.tracking_uri
        return f"sqlite:///{self.store}/mlflow.db"


def parse_config(values: dict[str, Any], origin: str) -> Config:
    """Validate a nested dictionary.

    Args:
        values: the configuration as plain data.
        origin: what to call it in an error, usually the profile's path.

    Raises:
        UserError: names each bad key, its value and what it should be.
    """
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        lines = [f"{origin}: the configuration is not valid:"]
        for problem in error.errors():
            key = ".".join(str(part) for part in problem["loc"])
            message = problem["msg"].removeprefix("Value error, ")
            if problem["type"] == "extra_forbidden":
                message = "no such key"
            elif key and not isinstance(problem["input"], dict):
                message += f" (got {problem['input']!r})"
            lines.append(f"  {key + ': ' if key else ''}{message}")
        raise UserError("\n".join(lines)) from error


def read_config(path: str) -> Config:
    """The resolved configuration that `prepare_data` wrote as an artifact."""
    try:
        return Config.model_validate_json(Path(path).read_text())
    except (OSError, ValidationError) as error:
        raise UserError(f"{path}: not a resolved configuration ({error})") from error
