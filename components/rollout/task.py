"""What one rollout step samples, and the prompts it begins with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from components.core.config import Config, RolloutConfig
from components.core.errors import UserError
from components.core.paths import evaluation_path, iteration_path
from components.core.schema import Problem
from components.rollout.engine import Message, Sampling


@dataclass(frozen=True)
class Task:
    """What one rollout step samples."""

    phase: Literal["train", "eval"]
    where: str
    """The folder of the iteration or evaluation."""
    seed_path: tuple[str | int, ...]
    """Sets the random numbers of this task apart. Evaluations of different policies share theirs, which makes
    their difference more precise."""
    n: int
    """Samples a problem."""
    sampling: Sampling
    mode: str
    mode_options: dict[str, Any]


def training_task(config: Config, stage: int, iteration: int) -> Task:
    """Sampling for one training iteration. Stages count from 1, iterations from 0."""
    rollout = config.rollout
    limit = config.stages[stage - 1].max_response_length
    sampling = Sampling(limit, rollout.temperature, rollout.top_p, rollout.stop_at_code_end, rollout.answer_prefix)
    return Task(
        "train",
        iteration_path(config, stage, iteration),
        ("rollout", stage, iteration),
        rollout.n,
        sampling,
        rollout.mode,
        rollout.mode_options,
    )


def evaluation_task(config: Config, label: str) -> Task:
    """Sampling for one evaluation on the held-out problems."""
    evaluation, rollout = config.evaluation, config.rollout
    sampling = Sampling(
        evaluation.max_response_length,
        evaluation.temperature,
        evaluation.top_p,
        rollout.stop_at_code_end,
        rollout.answer_prefix,
    )
    own = evaluation.mode is not None
    return Task(
        "eval",
        evaluation_path(config, label),
        ("eval",),
        evaluation.n,
        sampling,
        evaluation.mode or rollout.mode,
        evaluation.mode_options if own else rollout.mode_options,
    )


def first_messages(rollout: RolloutConfig, problem: Problem) -> list[Message]:
    """A problem as the configured templates put it.

    Raises:
        UserError: a template uses a name that does not exist.
    """
    template = rollout.function_template if problem.fn_name else rollout.stdin_template
    try:
        user = template.format(question=problem.question, starter_code=problem.starter_code, fn_name=problem.fn_name)
    except (KeyError, IndexError, ValueError) as error:
        raise UserError(
            f"rollout templates may use {{question}}, {{starter_code}} and {{fn_name}} and write other braces twice; "
            f"{template!r} fails with {error!r}"
        ) from error
    system = [{"role": "system", "content": rollout.system_prompt}] if rollout.system_prompt else []
    return [*system, {"role": "user", "content": user}]
