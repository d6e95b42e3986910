"""The graph: prepare data, then for each context stage and iteration rollout, reward and policy update.

Stages and iterations are loops at compile time, shards a ParallelFor at run time. See README.md for the picture.
"""

# No `from __future__ import annotations` here: kfp reads the annotations as objects.
import json
from functools import partial
from typing import Any

from kfp import dsl

from components.core.config import Config
from components.core.errors import UserError
from components.core.paths import evaluation_labels
from components.core.resolve import get
from components.data_prep.component import prepare_data
from components.evaluation.component import evaluate
from components.policy_update.component import policy_update
from components.report.component import report
from components.reward.component import reward
from components.rollout.component import rollout, rollout_eval
from pipelines.placement import place

PARAMETERS: dict[str, type] = {
    "model_name": str,
    "learning_rate": float,
    "batch_size": int,
    "max_steps": int,
    "context_length": int,
    "temperature": float,
    "seed": int,
    "store": str,
    "experiment": str,
}
"""Pipeline parameters that a person changes when cloning a run; `temperature` is rollout.temperature."""


def configuration_key(parameter: str) -> str:
    """The configuration key of a pipeline parameter."""
    return "rollout.temperature" if parameter == "temperature" else parameter


def defaults(config: Config) -> dict[str, Any]:
    """The compiled values of the pipeline parameters; max_steps 0 stands for no limit."""
    values = config.model_dump(mode="json")
    result = {name: get(values, configuration_key(name)) for name in PARAMETERS}
    return {**result, "max_steps": result["max_steps"] or 0}


def build(profile: dict[str, Any], config: Config) -> Any:
    """The pipeline of a profile, ready to compile.

    Args:
        profile: the profile as plain data, which the pipeline carries in it.
        config: the same, validated; its stages, shards and staleness shape the graph.

    Raises:
        UserError: the engine is a server.
    """
    if config.rollout.engine == "openai":
        raise UserError(
            "rollout.engine=openai is for evaluation: a server does not get the updated weights. Train with vllm or "
            "transformers."
        )
    shards = list(range(config.rollout.shards))
    default = defaults(config)
    settle = partial(place, config=config)

    def sample_and_grade(
        config: Any, dataset: Any, policy: Any, stage: Any, iteration: Any, *, name: str = "shards"
    ) -> Any:
        """A shard's reward starts when its rollout is done, whatever the other shards do."""
        with dsl.ParallelFor(items=shards, name=name) as shard:
            sampled = rollout(
                config=config, dataset=dataset, policy=policy, stage=stage, iteration=iteration, shard=shard
            )
            graded = reward(config=config, dataset=dataset, rollouts=sampled.outputs["rollouts"])
            settle(sampled, "rollout")
            settle(graded, "reward")
        return dsl.Collected(graded.outputs["rewards"])

    @dsl.pipeline(name="training-iteration", description="Rollout and reward a shard, then one policy update.")
    def training_iteration(
        config: dsl.Input[dsl.Artifact],
        dataset: dsl.Input[dsl.Dataset],
        policy: dsl.Input[dsl.Model],
        stage: int,
        iteration: int,
    ) -> dsl.Model:
        rewards = sample_and_grade(config, dataset, policy, stage, iteration)
        updated = policy_update(config=config, policy=policy, rewards=rewards, stage=stage, iteration=iteration)
        settle(updated, "policy_update")
        return updated.outputs["new_policy"]

    @dsl.pipeline(name="evaluation", description="Answers to the held-out problems, graded and summed up.")
    def evaluation(
        config: dsl.Input[dsl.Artifact], dataset: dsl.Input[dsl.Dataset], policy: dsl.Input[dsl.Model], label: str
    ) -> dsl.Artifact:
        with dsl.ParallelFor(items=shards, name="shards") as shard:
            sampled = rollout_eval(config=config, dataset=dataset, policy=policy, label=label, shard=shard)
            graded = reward(config=config, dataset=dataset, rollouts=sampled.outputs["rollouts"])
            settle(sampled, "rollout")
            settle(graded, "reward")
        summed = evaluate(
            config=config,
            dataset=dataset,
            policy=policy,
            rewards=dsl.Collected(graded.outputs["rewards"]),
            label=label,
        )
        settle(summed, "evaluate")
        return summed.outputs["evaluation"]

    stages = config.stages
    labels = evaluation_labels(config)
    staleness = config.staleness

    @dsl.pipeline(name=f"deepcoder-{config.profile}", description=describe(config))
    def deepcoder(
        model_name: str = default["model_name"],
        learning_rate: float = default["learning_rate"],
        batch_size: int = default["batch_size"],
        max_steps: int = default["max_steps"],
        context_length: int = default["context_length"],
        temperature: float = default["temperature"],
        seed: int = default["seed"],
        store: str = default["store"],
        experiment: str = default["experiment"],
        overrides: dict = {},  # noqa: B006  kfp needs a literal default
    ) -> None:
        """Parameters are shown, and may be changed, when a run is made or cloned in the UI.

        Args:
            model_name: The base policy: a hub id, a directory of the pods, s3://..., or package:MODULE/FILE.gguf.
            learning_rate: AdamW's, constant.
            batch_size: Problems sampled an iteration; a multiple of policy_update.ppo_mini_batch_size.
            max_steps: Optimizer steps after which updates stop; 0 runs what the stages say.
            context_length: Tokens of prompt and answer together that the engines must hold, evaluation included.
            temperature: Of training rollouts (rollout.temperature).
            seed: All randomness derives from it.
            store: Where bulk data lives: s3://bucket/prefix, or a directory on a volume that all pods mount.
            experiment: The MLflow experiment.
            overrides: Any other configuration key, dotted or nested, such as {"rollout.n": 16}. What shapes the graph
                is refused: compile it anew.
        """
        prepared = prepare_data(
            profile=json.dumps(profile),  # as text: kfp's structs have no null
            model_name=model_name,
            learning_rate=learning_rate,
            batch_size=batch_size,
            max_steps=max_steps,
            context_length=context_length,
            temperature=temperature,
            seed=seed,
            store=store,
            experiment=experiment,
            overrides=overrides,
        )
        settle(prepared, "prepare_data")
        shared = {"config": prepared.outputs["config"], "dataset": prepared.outputs["dataset"]}
        policies = [prepared.outputs["policy"]]
        evaluations = [named(evaluation(policy=policies[0], label=labels[0], **shared), "evaluate base")]
        for number, stage in enumerate(stages, start=1):
            for iteration in range(stage.iterations):
                title = f"stage {number} ({stage.name}), iteration {iteration}"
                where = {**shared, "stage": number, "iteration": iteration}
                if staleness == 0:
                    policies.append(named(training_iteration(policy=policies[-1], **where), title).output)
                    continue
                # The rollout takes the policy of one update ago, and so runs beside the update before its own. That
                # needs tasks of this graph: a nested pipeline starts only when all of its inputs are there.
                sampler = policies[max(0, len(policies) - 1 - staleness)]
                name = f"shards-{number}-{iteration}"
                updated = policy_update(
                    policy=policies[-1],
                    rewards=sample_and_grade(policy=sampler, name=name, **where),
                    config=shared["config"],
                    stage=number,
                    iteration=iteration,
                ).set_display_name(title)
                settle(updated, "policy_update")
                policies.append(updated.outputs["new_policy"])
            evaluated = evaluation(policy=policies[-1], label=labels[number], **shared)
            evaluations.append(named(evaluated, f"evaluate stage {number} ({stage.name})"))
        # The report finds every evaluation in the store, so it comes after them all, not only after its input.
        reported = report(config=shared["config"], last=evaluations[-1].output).after(*evaluations)
        settle(reported, "report")

    return deepcoder


def named(nested: Any, title: str) -> Any:
    """A nested pipeline with a title in the UI; like the steps in it, never taken from KFP's cache."""
    return nested.set_caching_options(False).set_display_name(title)


def describe(config: Config) -> str:
    """What is fixed in the graph, for the list of pipelines in the UI."""
    stages = ", ".join(f"{stage.name} x {stage.iterations}" for stage in config.stages)
    return (
        f"Trains a code-reasoning policy by reinforcement learning, profile {config.profile}. "
        f"Fixed in this graph: stages {stages}; {config.rollout.shards} rollout shard(s); staleness {config.staleness}."
    )
