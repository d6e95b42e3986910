"""KFP wrappers of the rollout step: for training, and for the held-out problems."""

from kfp import dsl

from components.core.images import image


@dsl.component(base_image=image("rollout"), install_kfp_package=False)
def rollout(
    config: dsl.Input[dsl.Artifact],
    dataset: dsl.Input[dsl.Dataset],
    policy: dsl.Input[dsl.Model],
    stage: int,
    iteration: int,
    shard: int,
    rollouts: dsl.Output[dsl.Dataset],
    metrics: dsl.Output[dsl.Metrics],
) -> None:
    """Sample answers to one shard of an iteration's problems; see components.rollout.generate.

    Args:
        config: the resolved configuration.
        dataset: pointer to the problems.
        policy: pointer to the policy that answers.
        stage: context stage, from 1.
        iteration: from 0, within the stage.
        shard: from 0.
        rollouts: pointer to the answers.
        metrics: tokens, lengths, truncation.
    """
    from components.core.config import read_config
    from components.core.step import publish
    from components.core.store import Pointer
    from components.rollout.generate import run_training

    pointer = run_training(
        config=read_config(config.path),
        dataset=Pointer.read(dataset.path),
        policy=Pointer.read(policy.path),
        stage=stage,
        iteration=iteration,
        shard=shard,
        output=rollouts.path,
    )
    publish(pointer, metrics)


@dsl.component(base_image=image("rollout"), install_kfp_package=False)
def rollout_eval(
    config: dsl.Input[dsl.Artifact],
    dataset: dsl.Input[dsl.Dataset],
    policy: dsl.Input[dsl.Model],
    label: str,
    shard: int,
    rollouts: dsl.Output[dsl.Dataset],
    metrics: dsl.Output[dsl.Metrics],
) -> None:
    """Sample answers to one shard of the held-out problems; see components.rollout.generate.

    Args:
        config: the resolved configuration.
        dataset: pointer to the problems.
        policy: pointer to the policy that answers.
        label: names the evaluation: `base` or `stage-1`.
        shard: from 0.
        rollouts: pointer to the answers.
        metrics: tokens, lengths, truncation.
    """
    from components.core.config import read_config
    from components.core.step import publish
    from components.core.store import Pointer
    from components.rollout.generate import run_evaluation

    pointer = run_evaluation(
        config=read_config(config.path),
        dataset=Pointer.read(dataset.path),
        policy=Pointer.read(policy.path),
        label=label,
        shard=shard,
        output=rollouts.path,
    )
    publish(pointer, metrics)
