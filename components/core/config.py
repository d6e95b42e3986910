"""The one configuration of a run: a profile plus overrides, validated before anything starts.

The top level uses the names of the DeepCoder guide, everything below verl's.
"""

from __future__ import annotations

import math
from datetime import date
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from components.core.errors import UserError
from components.core.pods import KubernetesConfig
from components.core.section import Section
from components.core.store import config_hash
from components.core.update_config import PolicyUpdateConfig


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
    mode_options: dict[str, bool | int | float | str] = Field({})
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
    mode_options: dict[str, bool | int | float | str] = Field({})
    """As rollout.mode_options, for evaluation.mode."""
    pass_k: list[int] = Field([1, 4, 8])
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
