"""Finds what a finished run left in the store, and reports on it."""

from __future__ import annotations

from components.core.config import Config
from components.core.errors import UserError
from components.core.paths import evaluation_labels, evaluation_path, iteration_path
from components.core.store import Pointer, Store, open_store
from components.report import report


def run(*, config: Config, output: str, html: str) -> Pointer:
    """Report on the run of a configuration; see components.report.report.run.

    Raises:
        UserError: an evaluation or a policy of the run is not complete.
    """
    store = open_store(config.store)
    evaluations = [_need(store, f"{evaluation_path(config, label)}/result") for label in evaluation_labels(config)]
    policies = [
        _need(store, f"{iteration_path(config, number, iteration)}/policy")
        for number, stage in enumerate(config.stages, start=1)
        for iteration in range(stage.iterations)
    ]
    return report.run(config=config, evaluations=evaluations, policies=policies, output=output, html=html)


def _need(store: Store, where: str) -> Pointer:
    found = store.complete(where)
    if found is None:
        raise UserError(f"{store.uri(where)}: not complete; run the pipeline again, it goes on where it stopped")
    return found
