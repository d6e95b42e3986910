"""KFP wrapper of the reward step."""

from kfp import dsl

from components.core.images import image


@dsl.component(base_image=image("sandbox"), install_kfp_package=False)
def reward(
    config: dsl.Input[dsl.Artifact],
    dataset: dsl.Input[dsl.Dataset],
    rollouts: dsl.Input[dsl.Dataset],
    rewards: dsl.Output[dsl.Dataset],
    metrics: dsl.Output[dsl.Metrics],
) -> None:
    """Run every answer of one shard in the sandbox; see components.reward.score.

    Args:
        config: the resolved configuration.
        dataset: pointer to the problems with their tests.
        rollouts: pointer to the answers.
        rewards: pointer to verdicts and rewards.
        metrics: mean reward and the share of each verdict.
    """
    from components.core.config import read_config
    from components.core.step import publish
    from components.core.store import Pointer
    from components.reward.score import run

    pointer = run(
        config=read_config(config.path),
        dataset=Pointer.read(dataset.path),
        rollouts=Pointer.read(rollouts.path),
        output=rewards.path,
    )
    publish(pointer, metrics)
