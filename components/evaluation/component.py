"""KFP wrapper of the evaluate step."""

from typing import List  # noqa: UP035  kfp reads this annotation's text and knows only typing.List

from kfp import dsl

from components.core.images import image


@dsl.component(base_image=image("data"), install_kfp_package=False)
def evaluate(
    config: dsl.Input[dsl.Artifact],
    dataset: dsl.Input[dsl.Dataset],
    policy: dsl.Input[dsl.Model],
    rewards: dsl.Input[List[dsl.Dataset]],  # noqa: UP006
    label: str,
    evaluation: dsl.Output[dsl.Artifact],
    metrics: dsl.Output[dsl.Metrics],
    page: dsl.Output[dsl.HTML],
) -> None:
    """Sum up one policy's answers to the held-out problems; see components.evaluation.evaluate.

    Args:
        config: the resolved configuration.
        dataset: pointer to the problems.
        policy: pointer to the policy that answered.
        rewards: pointers to the shards' rewards, which name their rollouts.
        label: names the evaluation: `base` or `stage-1`.
        evaluation: pointer to the numbers.
        metrics: pass@k with its interval, format, truncation.
        page: the same as a page.
    """
    from components.core.config import read_config
    from components.core.step import publish
    from components.core.store import Pointer
    from components.evaluation.evaluate import run

    pointer = run(
        config=read_config(config.path),
        dataset=Pointer.read(dataset.path),
        policy=Pointer.read(policy.path),
        rewards=[Pointer.read(part.path) for part in rewards],
        label=label,
        output=evaluation.path,
        html=page.path,
    )
    publish(pointer, metrics)
