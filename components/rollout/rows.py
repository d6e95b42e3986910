"""A trajectory as rows of ROLLOUT_SCHEMA, one a turn."""

from __future__ import annotations

from typing import Any

from components.rollout.drive import Record, Trajectory
from components.rollout.engine import Completion, Sampling

_NOTHING = Completion([], [], "unfinished", "")


def rows_of(trajectory: Trajectory, sampling: Sampling, version: str, prefix_ids: list[int]) -> list[dict[str, Any]]:
    """The rows of one sample.

    All turns of a trajectory that was cut off are `unfinished`, also those that had been answered: what they would
    have been graded by may be missing.

    Args:
        trajectory: finished, or given up.
        sampling: how it was sampled.
        version: the policy's.
        prefix_ids: of the text that every answer begins with.
    """
    return [
        _row(trajectory, number, record, sampling, version, prefix_ids)
        for number, record in enumerate(trajectory.records)
    ]


def _row(
    trajectory: Trajectory, number: int, record: Record, sampling: Sampling, version: str, prefix_ids: list[int]
) -> dict[str, Any]:
    completion = record.completion or _NOTHING
    return {
        "policy_version": version,
        "problem_id": trajectory.problem.problem_id,
        "sample_id": trajectory.sample_id,
        "turn": number,
        "role": record.role,
        "prompt_ids": record.prompt_ids,
        "response_ids": prefix_ids + completion.token_ids,
        # The policy did not choose the prefix: its log-probs are not needed, and its tokens are left out of the loss.
        "rollout_logprobs": [0.0] * len(prefix_ids) + completion.logprobs,
        "finish_reason": completion.finish_reason if trajectory.finished else "unfinished",
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "text": record.text,
        "seconds": record.seconds,
        "answer": record.turn.answer if record.turn is not None else None,
        "loss_mask": [False] * len(prefix_ids) + [True] * len(completion.token_ids) if prefix_ids else None,
    }
