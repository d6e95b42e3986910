"""The evaluate step: from the rewards of one policy on the held-out problems to numbers with intervals."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from components.core.config import Config
from components.core.errors import UserError
from components.core.page import span
from components.core.paths import evaluation_path
from components.core.progress import say
from components.core.step import Step
from components.core.store import Pointer, Store
from components.evaluation.numbers import headline_metrics, summarize
from components.evaluation.output import About, write_files
from components.evaluation.samples import attach_failing_tests, read_graded, read_questions


def run(
    *,
    config: Config,
    dataset: Pointer,
    policy: Pointer,
    rewards: list[Pointer],
    label: str,
    output: str,
    html: str | None = None,
) -> Pointer:
    """Sum up one policy's answers to the held-out problems.

    Args:
        config: the run's configuration.
        dataset: what `prepare_data` wrote; its `test/` is the held-out split.
        policy: the policy that answered.
        rewards: one reward folder a shard; `extra["rollouts"]` is the pointer of the answers.
        label: names the policy in the run: `base`, `stage-1`.
        output: where the pointer goes.
        html: where a copy of the page goes, or None.

    Returns:
        The pointer of `result.json`, `samples.parquet`, `problems.parquet`, `report.html` and `summary.md`;
        `extra` holds label, global_step (optimizer steps the policy has had) and the dataset's pointer.

    Raises:
        UserError: inputs that do not belong together, or nothing that could be judged.
    """
    rollouts = [Pointer(**reward.extra["rollouts"]) for reward in rewards]
    inputs = {"dataset": dataset, "policy": policy}
    inputs |= {f"reward-{index}": reward for index, reward in enumerate(rewards)}
    inputs |= {f"rollout-{index}": rollout for index, rollout in enumerate(rollouts)}
    where = f"{evaluation_path(config, label)}/result"
    settings = [label, config.evaluation.model_dump(mode="json"), config.reward.mode]
    with Step(config, "evaluate", where, settings=settings, inputs=inputs, output=output) as step:
        if step.pointer is None:
            step.track()  # importing MLflow is start-up, not work
            step.ready()
            held_out = _held_out(step.store, dataset)
            folders = [(step.store.fetch(a), step.store.fetch(b)) for a, b in zip(rollouts, rewards, strict=True)]
            graded = read_graded(read_questions(held_out), folders)
            attach_failing_tests(graded.samples, held_out)
            try:
                result = summarize(
                    graded,
                    pass_k=config.evaluation.pass_k,
                    confidence=config.evaluation.confidence,
                    mode=config.reward.mode,
                )
            except ValueError as error:
                raise UserError(f"{where}: {error}") from error
            steps_done = optimizer_steps(policy)
            result |= {"label": label, "global_step": steps_done, "policy": policy.uri}
            metrics = headline_metrics(result)
            with step.store.scratch() as folder:
                write_files(folder, result, graded, _about(config, label, policy))
                for name in ("report.html", "summary.md"):
                    step.artifact(folder / name)
                step.store.put_dir(folder, where)
            step.log_curve({f"eval/{name}": value for name, value in metrics.items()}, steps_done)
            say(label, f"held-out pass@1 {span(result['pass@1'])} %, right format {span(result['format_share'])} %")
            step.commit(
                kind="evaluation",
                rows=len(graded.samples),
                metrics=metrics,
                label=label,
                global_step=steps_done,
                policy_uri=policy.uri,
                dataset=asdict(dataset),
            )
        if html is not None:
            copy_page(step.store, where, html)
    assert step.pointer is not None
    return step.pointer


def _about(config: Config, label: str, policy: Pointer) -> About:
    settings = config.evaluation
    return About(
        title=f"{config.run}: {label}",
        policy=policy.uri,
        sampling=f"T {settings.temperature:g}, top-p {settings.top_p:g}, at most {settings.max_response_length} tokens",
        trained_until=config.data.train_until.isoformat(),
        seed=config.seed,
    )


def optimizer_steps(policy: Pointer) -> int:
    """How many optimizer steps a policy has had; 0 for a base policy."""
    curve = policy.extra.get("curve") or [{}]
    return int(policy.extra.get("global_step", curve[-1].get("global_step", 0)))


def copy_page(store: Store, where: str, html: str) -> None:
    """Copy `report.html` of a complete folder to a KFP artifact's path."""
    Path(html).parent.mkdir(parents=True, exist_ok=True)
    Path(html).write_bytes(store.read_bytes(f"{where}/report.html") or b"")


def _held_out(store: Store, dataset: Pointer) -> Path:
    """The `test/` folder alone: the training split may be many gigabytes away on S3."""
    rel = store.rel(dataset.uri)
    found = store.complete(rel)
    if found is None or found.sha256 != dataset.sha256:
        raise UserError(f"{dataset.uri}: not the complete dataset that the pointer names. Run prepare_data again.")
    return store.local_dir(f"{rel}/test")
