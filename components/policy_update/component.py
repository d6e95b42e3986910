"""KFP wrapper of the policy_update step."""

from typing import List  # noqa: UP035  kfp reads this annotation's text and knows only typing.List

from kfp import dsl

from components.core.images import image


@dsl.component(base_image=image("trainer"), install_kfp_package=False)
def policy_update(
    config: dsl.Input[dsl.Artifact],
    policy: dsl.Input[dsl.Model],
    rewards: dsl.Input[List[dsl.Dataset]],  # noqa: UP006
    stage: int,
    iteration: int,
    new_policy: dsl.Output[dsl.Model],
    metrics: dsl.Output[dsl.Metrics],
) -> None:
    """Train the policy on one iteration's answers; see components.policy_update.update.

    Args:
        config: the resolved configuration.
        policy: pointer to the policy to train.
        rewards: pointers to the shards' rewards, which name their rollouts.
        stage: context stage, from 1.
        iteration: from 0, within the stage.
        new_policy: pointer to the trained policy.
        metrics: loss, clip fractions, entropy, gradient norm, lengths.
    """
    from components.core.config import read_config
    from components.core.step import publish
    from components.core.store import Pointer
    from components.policy_update.update import run

    pointer = run(
        config=read_config(config.path),
        policy=Pointer.read(policy.path),
        rewards=[Pointer.read(part.path) for part in rewards],
        stage=stage,
        iteration=iteration,
        output=new_policy.path,
    )
    publish(pointer, metrics)
