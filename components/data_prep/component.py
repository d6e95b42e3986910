"""KFP wrapper of the prepare_data step."""

from kfp import dsl

from components.core.images import image


@dsl.component(base_image=image("data"), install_kfp_package=False)
def prepare_data(
    profile: str,
    model_name: str,
    learning_rate: float,
    batch_size: int,
    max_steps: int,
    context_length: int,
    temperature: float,
    seed: int,
    store: str,
    experiment: str,
    overrides: dict,
    config: dsl.Output[dsl.Artifact],
    dataset: dsl.Output[dsl.Dataset],
    policy: dsl.Output[dsl.Model],
    metrics: dsl.Output[dsl.Metrics],
    report: dsl.Output[dsl.HTML],
) -> None:
    """Resolve the configuration, bring in the base policy, merge and verify the problems.

    Args:
        profile: what the pipeline was compiled from, as JSON.
        model_name: the base policy; see components.core.config for this and the others.
        learning_rate: AdamW's.
        batch_size: problems an iteration.
        max_steps: optimizer steps at most; 0 for no limit.
        context_length: tokens of prompt and answer.
        temperature: of training rollouts.
        seed: of all randomness.
        store: where bulk data lives.
        experiment: the MLflow experiment.
        overrides: any other configuration keys.
        config: the resolved configuration, which every later step reads.
        dataset: pointer to the prepared problems.
        policy: pointer to the base policy.
        metrics: counts by source and reason.
        report: what was kept and dropped, and why.
    """
    import json

    from components.data_prep.start import run

    parameters = {
        "model_name": model_name,
        "learning_rate": learning_rate,
        "batch_size": batch_size,
        "max_steps": max_steps,
        "context_length": context_length,
        "rollout.temperature": temperature,
        "seed": seed,
        "store": store,
        "experiment": experiment,
    }
    run(json.loads(profile), parameters, overrides, config.path, dataset.path, policy.path, metrics, report.path)
