"""KFP wrapper of the prepare_data step."""

from kfp import dsl

from components.core.images import image


@dsl.component(base_image=image("data"), install_kfp_package=False)
def prepare_data(
    profile: dict,
    parameters: dict,
    overrides: dict,
    config: dsl.Output[dsl.Artifact],
    dataset: dsl.Output[dsl.Dataset],
    policy: dsl.Output[dsl.Model],
    metrics: dsl.Output[dsl.Metrics],
    report: dsl.Output[dsl.HTML],
) -> None:
    """Resolve the configuration, bring in the base policy, merge and verify the problems.

    Args:
        profile: what the pipeline was compiled from.
        parameters: pipeline parameters by configuration key.
        overrides: any other configuration keys.
        config: the resolved configuration, which every later step reads.
        dataset: pointer to the prepared problems.
        policy: pointer to the base policy.
        metrics: counts by source and reason.
        report: what was kept and dropped, and why.
    """
    from components.data_prep.start import run

    run(profile, parameters, overrides, config.path, dataset.path, policy.path, metrics, report.path)
