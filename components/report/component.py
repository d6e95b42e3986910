"""KFP wrapper of the report step."""

from kfp import dsl

from components.core.images import image


@dsl.component(base_image=image("data"), install_kfp_package=False)
def report(
    config: dsl.Input[dsl.Artifact],
    last: dsl.Input[dsl.Artifact],
    summary: dsl.Output[dsl.Artifact],
    metrics: dsl.Output[dsl.Metrics],
    page: dsl.Output[dsl.HTML],
) -> None:
    """The run's page: pass@1 by stage, curves, times, trajectories; see components.report.report.

    Args:
        config: the resolved configuration.
        last: pointer to the last evaluation, so that this step comes after it.
        summary: pointer to the numbers.
        metrics: the gain and its interval.
        page: the page.
    """
    from components.core.config import read_config
    from components.core.step import publish
    from components.report.start import run

    publish(run(config=read_config(config.path), output=summary.path, html=page.path), metrics)
