"""Starts each task of a compiled graph when what it depends on has ended, as Argo does and kfp.local does not.

kfp.local takes the tasks of a graph one after another; only the items of a ParallelFor run at the same time, two of
them. This stands for its `run_enhanced_dag`; the tasks themselves are run by kfp.local.
"""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

from kfp.local import io, status
from kfp.local.orchestrator import enhanced_dag_orchestrator as kfp_dag
from kfp.local.orchestrator.orchestrator_utils import OrchestratorUtils


def run_dag(
    dag_component_spec: Any, dag_arguments: dict[str, Any], parent_io_store: io.IOStore | None = None, **common: Any
) -> tuple[dict[str, Any], status.Status]:
    """See kfp.local's `run_enhanced_dag`, whose keyword arguments these are."""
    store = io.IOStore(parent=parent_io_store)
    inputs = OrchestratorUtils.join_user_inputs_and_defaults(dag_arguments, dag_component_spec.input_definitions)
    for name, value in inputs.items():
        store.put_parent_input(name, value)
    waiting = dict(dag_component_spec.dag.tasks)
    ended: set[str] = set()
    running: dict[Future[bool], str] = {}
    with ThreadPoolExecutor(len(waiting)) as pool:
        while waiting or running:
            for name in [name for name, task in waiting.items() if ended.issuperset(task.dependent_tasks)]:
                running[pool.submit(_run_task, name, waiting.pop(name), store, common)] = name
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            if not all(future.result() for future in done):
                return {}, status.Status.FAILURE
            ended.update(running.pop(future) for future in done)
    return OrchestratorUtils.get_dag_outputs(dag_component_spec.dag.outputs, store), status.Status.SUCCESS


def _run_task(name: str, spec: Any, store: io.IOStore, common: dict[str, Any]) -> bool:
    given = {"task_name": name, "task_spec": spec, "io_store": store, **common}
    if spec.WhichOneof("iterator"):
        return not kfp_dag._run_parallel_for_task(**given, parallel_executor=kfp_dag.ParallelExecutor())
    outputs, ended = kfp_dag.execute_task(**given)
    for key, output in outputs.items():
        store.put_task_output(name, key, output)
    return bool(ended == status.Status.SUCCESS)
