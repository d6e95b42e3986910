"""What the update learns from: rollouts joined with their rewards."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.core.errors import UserError
from components.core.schema import REWARD_SCHEMA, ROLLOUT_SCHEMA, read_parquet_dir

# `unfinished` answers are cut off as well, only by something else than the token limit.
_TRUNCATED = {"length", "unfinished"}


@dataclass(frozen=True)
class Sample:
    """One answer and its reward."""

    problem_id: str
    role: str
    sample_id: int
    turn: int
    prompt_ids: list[int]
    response_ids: list[int]
    rollout_logprobs: list[float]
    temperature: float
    finish_reason: str
    """stop, length or unfinished."""
    reward: float | None
    """None: could not be scored."""
    policy_version: str
    loss_mask: list[bool] | None = None
    """One a response token: False where the policy did not write it. None: it wrote all."""

    @property
    def trained(self) -> list[int]:
        """The positions, within the response, of the tokens that the loss is over."""
        mask = self.loss_mask
        return list(range(len(self.response_ids))) if mask is None else [i for i, wrote in enumerate(mask) if wrote]

    @property
    def tokens(self) -> int:
        """How many those are."""
        return len(self.response_ids) if self.loss_mask is None else sum(self.loss_mask)

    @property
    def group(self) -> tuple[str, str]:
        """Whose mean is this sample's baseline."""
        return (self.problem_id, self.role)

    @property
    def truncated(self) -> bool:
        """Whether something cut it off."""
        return self.finish_reason in _TRUNCATED

    @property
    def length(self) -> int:
        """Tokens of prompt and response."""
        return len(self.prompt_ids) + len(self.response_ids)


def _key(row: dict[str, Any]) -> tuple[str, int, int, str]:
    return (row["problem_id"], row["sample_id"], row["turn"], row["role"])


def read_samples(folders: Iterable[tuple[Path, Path]]) -> list[Sample]:
    """The samples of every shard, in an order that does not depend on how the shards were cut.

    Args:
        folders: a rollout folder and its reward folder, a shard each.

    Raises:
        UserError: a row is inconsistent, has no partner, or stands twice.
    """
    samples: dict[tuple[str, int, int, str], Sample] = {}
    for rollout_folder, reward_folder in folders:
        rewards = {_key(row): row["reward"] for row in read_parquet_dir(reward_folder, REWARD_SCHEMA)}
        for row in read_parquet_dir(rollout_folder, ROLLOUT_SCHEMA):
            key = _key(row)
            if key not in rewards:
                raise UserError(f"{reward_folder}: no reward row for {key} of {rollout_folder}: run the reward again.")
            if key in samples:
                raise UserError(f"{rollout_folder}: {key} stands twice in this iteration's rollouts.")
            samples[key] = _sample(row, rewards[key], rollout_folder)
    if not samples:
        raise UserError(
            "this iteration has no sample: no prompt fits. Raise data.max_prompt_length; the rollout step names the "
            "problems that it left out."
        )
    if not any(sample.reward is not None for sample in samples.values()):
        raise UserError(f"none of the {len(samples)} samples has a reward: look at the verdicts of the reward step.")
    return [samples[key] for key in sorted(samples)]


def _sample(row: dict[str, Any], reward: float | None, folder: Path) -> Sample:
    where = f"{folder}: problem {row['problem_id']}, sample {row['sample_id']}"
    if len(row["rollout_logprobs"]) != len(row["response_ids"]):
        raise UserError(
            f"{where}: {len(row['rollout_logprobs'])} log-probs for {len(row['response_ids'])} response tokens."
        )
    if not all(logprob is not None and math.isfinite(logprob) for logprob in row["rollout_logprobs"]):
        raise UserError(f"{where}: a log-prob is not a finite number: look for NaN in the policy that sampled it.")
    if row["temperature"] <= 0:
        raise UserError(
            f"{where}: temperature={row['temperature']:g}: the tokens were not drawn from the policy's distribution; "
            "training needs rollout.temperature above 0."
        )
    if row["loss_mask"] is not None and len(row["loss_mask"]) != len(row["response_ids"]):
        raise UserError(
            f"{where}: a loss mask of {len(row['loss_mask'])} for {len(row['response_ids'])} response tokens."
        )
    if not row["prompt_ids"]:
        raise UserError(f"{where}: the prompt has no token.")
    if row["top_p"] < 1:
        raise UserError(
            f"{where}: top_p={row['top_p']:.3g}, but its log-probs would be those of a truncated distribution; "
            "training needs rollout.top_p=1."
        )
    return Sample(
        problem_id=row["problem_id"],
        role=row["role"],
        sample_id=row["sample_id"],
        turn=row["turn"],
        prompt_ids=row["prompt_ids"],
        response_ids=row["response_ids"],
        rollout_logprobs=row["rollout_logprobs"],
        temperature=row["temperature"],
        finish_reason=row["finish_reason"],
        reward=reward,
        policy_version=row["policy_version"],
        loss_mask=row["loss_mask"],
    )


def scored(samples: Sequence[Sample]) -> list[Sample]:
    """The samples that have a reward; the others take no part in anything that follows."""
    return [sample for sample in samples if sample.reward is not None]
