"""The `policy_update` step: rewards in, a better policy out."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path

from components.core.config import Config
from components.core.paths import iteration_path
from components.core.progress import say
from components.core.step import Step
from components.core.store import Pointer, Store
from components.policy_update.carried import commit_critic, fetch_critic, named_reference, reference
from components.policy_update.job import Job, Outcome
from components.policy_update.launch import launch

# Where and in which order the same numbers are computed: a run may go on with others, and keeps what is complete.
_HOW_COMPUTED = {
    "launcher",
    "ranks",
    "nodes",
    "ulysses_sequence_parallel_size",
    "ppo_max_token_len_per_gpu",
    "attn_implementation",
    "use_liger",
    "gradient_checkpointing",
    "offload_optimizer",
}


def run(*, config: Config, policy: Pointer, rewards: list[Pointer], stage: int, iteration: int, output: str) -> Pointer:
    """Train the policy on one iteration's rewards.

    The result is two folders of the iteration: `policy` (`hf/`, `state.json`), kept, and `optimizer` (`zero/`),
    which is completed before it, and pruned once `policy_update.keep_last` newer ones are complete. With a value model
    there is a third, `critic` (`hf/`, `zero/`), that comes and goes with `optimizer`.

    Args:
        config: the run's configuration.
        policy: the policy to train, and where its optimizer state is if an earlier update made it.
        rewards: the shards' rewards; each names its rollouts.
        stage: from 1.
        iteration: from 0, within the stage.
        output: where the pointer to the new policy goes.

    Raises:
        UserError: an input is missing or does not fit, the disk is too small, or gradients are not finite.
    """
    base = iteration_path(config, stage, iteration)
    initial = reference(policy)
    inputs = {"policy": policy} | {f"rewards-{number:02d}": pointer for number, pointer in enumerate(rewards)}
    if config.policy_update.needs_reference:
        inputs["reference"] = initial
    with Step(
        config, "policy_update", f"{base}/policy", settings=_settings(config, stage, iteration), inputs=inputs,
        output=output,
    ) as step:  # fmt: skip
        if step.pointer is not None:
            prune(step.store, config, stage, iteration)  # in case it was killed between the commit and this
            return step.pointer
        version = f"stage-{stage}/iter-{iteration:02d}"
        global_step = int(policy.extra.get("global_step", 0))
        with step.store.scratch(step.where) as scratch:
            if config.max_steps is not None and global_step >= config.max_steps:
                return _pass_through(step, policy, scratch, version)
            shards = [
                (str(step.store.fetch(Pointer(**reward.extra["rollouts"]))), str(step.store.fetch(reward)))
                for reward in rewards
            ]
            optimizer = _usable_optimizer(step.store, config, policy)
            has_critic = config.policy_update.adv_estimator == "gae"
            critic = fetch_critic(step.store, policy, _shape(config), scratch) if has_critic else None
            job = Job(
                config=config,
                stage=stage,
                iteration=iteration,
                global_step=global_step,
                policy=str(step.store.fetch(policy)),
                policy_version=str(policy.extra.get("version", "")),
                optimizer=str(step.store.fetch(optimizer)) if optimizer else None,
                shards=shards,
                output=str(scratch / "output"),
                reference=str(step.store.fetch(initial)) if config.policy_update.needs_reference else None,
                critic=str(critic) if critic else None,
                history=policy.extra.get("history", []),
                nan_steps=policy.extra.get("nan_steps", {}),
            )
            outcome = launch(job, step, scratch)
            pointer = _commit(step, policy, scratch / "output", outcome, base, version)
        prune(step.store, config, stage, iteration)
        return pointer


def _settings(config: Config, stage: int, iteration: int) -> dict[str, object]:
    """What the new weights depend on, besides the inputs."""
    no_matter = {"keep_last", "max_nan_steps", "training_runtime", "alarms", "peak_tflops"} | _HOW_COMPUTED
    update = config.policy_update.model_dump(mode="json", exclude=no_matter)
    return {
        "policy_update": update,
        "learning_rate": config.learning_rate,
        "max_steps": config.max_steps,
        "seed": config.seed,
        "stage": stage,
        "iteration": iteration,
    }


def _shape(config: Config) -> dict[str, object]:
    """What optimizer state must have in common with the engine that loads it; the number of ranks may differ."""
    update = config.policy_update
    return {"train_last_layers": update.train_last_layers, "dtype": update.dtype}


def _usable_optimizer(store: Store, config: Config, policy: Pointer) -> Pointer | None:
    """The optimizer state that belongs to a policy; None, with a warning if that is a loss, to start afresh."""
    if "optimizer" not in policy.extra:
        return None
    pointer = Pointer(**policy.extra["optimizer"])
    reason = ""
    found = store.complete(store.rel(pointer.uri))
    if found is None or found.sha256 != pointer.sha256:
        reason = "it has been pruned or replaced"
    elif pointer.extra["shape"] != _shape(config):
        reason = f"it was made for {pointer.extra['shape']}, this update needs {_shape(config)}"
    if not reason:
        return pointer
    say(
        "WARNING",
        f"{pointer.uri}: the optimizer state cannot be used ({reason}). Training goes on from the weights in "
        f"{policy.uri}/hf with fresh AdamW moments.",
    )
    return None


def _commit(step: Step, policy: Pointer, built: Path, outcome: Outcome, base: str, version: str) -> Pointer:
    """Complete the folders of the optimizer and of the value model, then the policy's, which names them."""
    store, shape = step.store, _shape(step.config)
    optimizer_path = f"{base}/optimizer"
    store.delete(optimizer_path)
    store.put_dir(built / "zero", f"{optimizer_path}/zero")
    optimizer = store.commit(optimizer_path, kind="optimizer", step=step.name, rows=0, key=step.key, shape=shape)
    carried = {"optimizer": asdict(optimizer), "reference": named_reference(policy)}
    if (built / "critic").exists():
        critic = commit_critic(store, built / "critic", f"{base}/critic", step=step.name, key=step.key, shape=shape)
        carried["critic"] = asdict(critic)
    state = {"global_step": outcome.global_step, "version": version, "optimizer": optimizer_path}
    (built / "state.json").write_text(json.dumps(state, indent=1) + "\n")
    store.put(built / "state.json", f"{step.where}/state.json")
    store.put_dir(built / "hf", f"{step.where}/hf")
    return step.commit(
        kind="policy",
        rows=outcome.samples,
        metrics=outcome.metrics | {"steps": outcome.steps},
        global_step=outcome.global_step,
        version=version,
        history=outcome.history,
        nan_steps=outcome.nan_steps,
        **carried,
    )


def _pass_through(step: Step, policy: Pointer, scratch: Path, version: str) -> Pointer:
    """`max_steps` is reached: the policy stays what it is, its optimizer state stays where it is."""
    say(step.label, f"max_steps={step.config.max_steps} is reached, the policy stays as it is")
    step.ready()
    global_step = int(policy.extra["global_step"])
    shutil.copytree(step.store.fetch(policy) / "hf", scratch / "hf")
    step.store.put_dir(scratch / "hf", f"{step.where}/hf")
    (scratch / "state.json").write_text(json.dumps({"global_step": global_step, "version": version}) + "\n")
    step.store.put(scratch / "state.json", f"{step.where}/state.json")
    names = ("optimizer", "critic", "reference", "history", "nan_steps")
    carried = {name: policy.extra[name] for name in names if name in policy.extra}
    return step.commit(
        kind="policy", rows=0, metrics={"steps": 0.0}, global_step=global_step, version=version, **carried
    )


def prune(store: Store, config: Config, stage: int, iteration: int) -> None:
    """Delete the optimizer states and value models of this run that are older than the newest `keep_last`.

    Looks at what is in the store, not at what this process remembers, so that a restart prunes as well, and finishes
    what was cut off half deleted.
    """
    for kind in ("optimizer", "critic"):
        folders = [
            f"{iteration_path(config, s, i)}/{kind}"
            for s, settings in enumerate(config.stages, 1)
            for i in range(settings.iterations)
            if (s, i) <= (stage, iteration)
        ]
        complete = [place for place, folder in enumerate(folders) if store.complete(folder) is not None]
        oldest_kept = complete[-config.policy_update.keep_last :][:1]
        for folder in folders[: oldest_kept[0]] if oldest_kept else []:
            if store.list(folder):
                store.delete(folder)
