"""The step on one rank, from pointers to a policy."""

from __future__ import annotations

import json
import math
import resource
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import LlamaForCausalLM

from components.core.config import Config
from components.core.errors import UserError
from components.core.seeds import derive_seed
from components.core.store import Pointer
from components.policy_update import checkpoint
from components.policy_update import train as train_module
from components.policy_update import update as update_module
from components.policy_update.rollout_io import Sample
from components.policy_update.schedule import mini_batches
from tests.policy_update.helpers import World, make_samples, save_policy, tiny_model


def metrics(pointer: Pointer) -> dict[str, float]:
    values: dict[str, float] = pointer.extra["metrics"]
    return values


def by_autograd(samples: Sequence[Sample], config: Config) -> tuple[float, dict[str, Tensor]]:
    """The first step's loss and clipped gradient with nothing but torch: the ratio is 1, so L = -w A / tokens."""
    update = config.policy_update
    model = tiny_model()
    groups: dict[str, list[float]] = {}
    for sample in samples:
        groups.setdefault(sample.problem_id, []).append(float(sample.reward or 0.0))
    loss, tokens = torch.zeros(()), sum(len(sample.response_ids) for sample in samples)
    for sample in samples:
        rewards = torch.tensor(groups[sample.problem_id])
        advantage = (float(sample.reward or 0.0) - rewards.mean()) / (rewards.std() + 1e-6)
        logits_TV = model(torch.tensor([sample.prompt_ids + sample.response_ids])).logits[0]
        logp_TV = (logits_TV[len(sample.prompt_ids) - 1 : -1] / sample.temperature).log_softmax(-1)
        logp_T = logp_TV.gather(1, torch.tensor(sample.response_ids)[:, None])[:, 0]
        assert update.rollout_is_threshold is not None
        weight_T = (logp_T.detach() - torch.tensor(sample.rollout_logprobs)).exp().clamp(max=2.0)
        loss = loss - (weight_T * (logp_T - logp_T.detach()).exp() * advantage).sum() / tokens
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), update.grad_clip)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=config.learning_rate, betas=update.betas, weight_decay=update.weight_decay
    )
    optimizer.step()
    return norm.item(), {name: parameter.detach() for name, parameter in model.named_parameters()}


def test_a_step_equals_plain_torch(world: World) -> None:
    config, samples = world.config(), make_samples()
    # Equal rewards: these tokens are not computed, but count in the denominator.
    samples[:4] = [replace(sample, reward=1.0) for sample in samples[:4]]
    norm, weights = by_autograd(samples, config)
    pointer = world.update(config, samples)
    assert metrics(pointer)["actor/grad_norm"] == pytest.approx(norm, rel=1e-4)
    assert metrics(pointer)["perf/total_num_tokens"] == sum(sample.length for sample in samples[4:])
    for name, tensor in world.weights(pointer).items():
        torch.testing.assert_close(tensor, weights[name], atol=1e-4, rtol=0)


def test_the_split_into_micro_batches_does_not_matter(world: World) -> None:
    samples = make_samples()
    results = [
        world.update(world.config(run_name=f"run-{budget}", ppo_max_token_len_per_gpu=budget), samples, shards=shards)
        for budget, shards in ((1, 1), (40, 2), (10_000, 3))
    ]
    norms = [metrics(pointer)["actor/grad_norm"] for pointer in results]
    assert norms == pytest.approx([norms[0]] * 3, rel=1e-5)
    first, *others = [world.weights(pointer) for pointer in results]
    for other in others:
        for name, tensor in first.items():
            torch.testing.assert_close(tensor, other[name], atol=1e-5, rtol=0)


def test_the_first_step_is_on_policy_and_later_ones_are_clipped(world: World) -> None:
    config = world.config(ppo_mini_batch_size=2, ppo_epochs=4, batch_size=4)
    world.update(config, make_samples())
    points = [point for _, point in world.curves.points]
    assert [x for x, _ in world.curves.points] == list(range(1, 9))
    assert points[0]["actor/ppo_kl"] == 0
    assert points[0]["actor/pg_clipfrac"] == 0
    assert all(abs(point["actor/ppo_kl"]) > 0 for point in points[2:])
    assert max(point["actor/pg_clipfrac_low"] for point in points) > 0
    assert max(point["actor/pg_clipfrac_high"] for point in points) > 0


def test_the_result_loads_without_a_warning_and_keeps_the_other_files(world: World) -> None:
    pointer = world.update(world.config(), make_samples())
    hf = world.store.fetch(pointer) / "hf"
    model, info = LlamaForCausalLM.from_pretrained(hf, output_loading_info=True)
    assert not any(info[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys", "error_msgs"))
    assert model.lm_head.weight is model.model.embed_tokens.weight
    assert (hf / "chat_template.jinja").read_text() == "{{ messages }}"
    assert {path.name for path in hf.iterdir()} == {
        path.name for path in (world.store.fetch(world.base) / "hf").iterdir()
    }
    assert pointer.kind == "policy"
    assert pointer.extra["version"] == "stage-1/iter-00"
    assert pointer.extra["global_step"] == 1
    state = json.loads((world.store.fetch(pointer) / "state.json").read_text())
    assert state["global_step"] == 1


def test_a_tied_head_that_is_in_the_file_follows_the_embedding(world: World) -> None:
    source = world.folder / "cloned"
    shutil.copytree(world.store.fetch(world.base) / "hf", source / "hf")
    tensors = load_file(source / "hf" / "model.safetensors")
    tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].clone()
    save_file(tensors, source / "hf" / "model.safetensors", metadata={"format": "pt"})
    world.store.put_dir(source / "hf", "policies/cloned/hf")
    policy = world.store.commit("policies/cloned", kind="policy", step="test", rows=0, key="cloned")
    pointer = world.update(world.config(), make_samples(), policy=policy)
    after = load_file(world.store.fetch(pointer) / "hf" / "model.safetensors")
    assert torch.equal(after["lm_head.weight"], after["model.embed_tokens.weight"])
    assert not torch.equal(after["lm_head.weight"], tensors["lm_head.weight"])


def test_a_bfloat16_policy_stays_bfloat16_and_learns_in_float32(world: World) -> None:
    policy = save_policy(world.store, tiny_model().bfloat16(), "half")
    config = world.config(dtype="bfloat16", learning_rate=1e-5)
    first = world.update(config, make_samples(), policy=policy)
    tensors = load_file(world.store.fetch(first) / "hf" / "model.safetensors")
    assert {tensor.dtype for tensor in tensors.values()} == {torch.bfloat16}
    # 1e-5 is below bfloat16's resolution at 0.02: only the master weights that are carried on can add it up.
    pointer = first
    for iteration in range(1, 4):
        pointer = world.update(config, make_samples(seed=iteration), policy=pointer, iteration=iteration)
    assert pointer.extra["global_step"] == 4
    state = torch.load(
        next((world.store.fetch(Pointer(**pointer.extra["optimizer"])) / "zero" / "state").glob("*optim_states.pt")),
        weights_only=False,
    )
    flat = state["optimizer_state_dict"]["fp32_flat_groups"][0]
    assert flat.dtype == torch.float32
    assert not torch.equal(flat, flat.bfloat16().float())


def test_only_the_last_layers_move(world: World) -> None:
    before = world.weights(world.base)
    after = world.weights(world.update(world.config(train_last_layers=1), make_samples()))
    moved = {name for name, tensor in after.items() if not torch.equal(tensor, before[name])}
    assert moved == {name for name in after if name.startswith("model.layers.1.") or name == "model.norm.weight"}


def test_checkpointing_and_offloading_leave_the_update_of_untied_weights_as_it_is(world: World) -> None:
    policy = save_policy(world.store, tiny_model(tied=False), "untied")
    results = [
        world.update(
            world.config(run_name=f"run-{saving}", gradient_checkpointing=saving, offload_optimizer=saving),
            make_samples(),
            policy=policy,
        )
        for saving in (False, True)
    ]
    assert metrics(results[0])["actor/grad_norm"] == pytest.approx(metrics(results[1])["actor/grad_norm"], rel=1e-5)
    before, plain, saving = (world.weights(pointer) for pointer in (policy, *results))
    for name, tensor in plain.items():
        torch.testing.assert_close(tensor, saving[name], atol=1e-5, rtol=0)
        assert not torch.equal(tensor, before[name])


@pytest.mark.parametrize("case", ["truncated", "equal rewards", "groups of one"])
def test_nothing_to_learn_leaves_the_weights_alone(world: World, case: str) -> None:
    samples = make_samples(n=1 if case == "groups of one" else 4)
    if case == "truncated":
        samples = [replace(sample, finish_reason="length") for sample in samples]
    elif case == "equal rewards":
        samples = [replace(sample, reward=0.7) for sample in samples]
    before = world.weights(world.base)
    pointer = world.update(world.config(), samples)
    assert metrics(pointer)["actor/skipped"] == 1
    assert all(math.isfinite(value) for value in metrics(pointer).values())
    assert pointer.extra["global_step"] == 1
    assert all(torch.equal(tensor, before[name]) for name, tensor in world.weights(pointer).items())


def test_truncated_samples_count_in_the_baseline_but_not_in_the_loss(world: World) -> None:
    samples = make_samples(problems=1)
    cut = [replace(samples[0], finish_reason="length"), *samples[1:]]
    masked = world.update(world.config(run_name="masked"), cut)
    unmasked = world.update(world.config(run_name="unmasked", mask_truncated_samples=False), cut)
    # Without the truncated answer the rewards would have another mean.
    dropped = world.update(world.config(run_name="dropped"), [replace(samples[0], reward=None), *samples[1:]])
    norms = [metrics(pointer)["actor/grad_norm"] for pointer in (masked, unmasked, dropped)]
    assert len({round(norm, 6) for norm in norms}) == 3
    assert metrics(masked)["response_length/clip_ratio"] == 0.25


def test_tokens_that_the_policy_did_not_write_are_context_and_no_more(world: World) -> None:
    # The same tokens, once as the masked opening of the answer, once as the end of the prompt.
    samples = make_samples(longest=4)
    opened = [
        replace(
            sample,
            response_ids=[7, 9, *sample.response_ids],
            rollout_logprobs=[0.0, 0.0, *sample.rollout_logprobs],
            loss_mask=[False, False, *[True] * len(sample.response_ids)],
        )
        for sample in samples
    ]
    prompted = [replace(sample, prompt_ids=[*sample.prompt_ids, 7, 9]) for sample in samples]
    masked = world.update(world.config(run_name="masked"), opened)
    plain = world.update(world.config(run_name="plain"), prompted)
    unmasked = world.update(world.config(run_name="unmasked"), [replace(s, loss_mask=None) for s in opened])
    for name in ("actor/grad_norm", "actor/entropy", "sampling/mismatch_k3_kl"):
        assert metrics(masked)[name] == pytest.approx(metrics(plain)[name], rel=1e-5)
        assert metrics(unmasked)[name] != pytest.approx(metrics(plain)[name], rel=1e-4)  # the control
    expected = world.weights(plain)
    for name, tensor in world.weights(masked).items():
        torch.testing.assert_close(tensor, expected[name], atol=1e-5, rtol=0)


def test_a_null_reward_is_as_if_the_sample_were_not_there(world: World) -> None:
    samples = make_samples(problems=1, n=5)
    without = world.update(world.config(run_name="without"), samples[:3] + samples[4:])
    null = world.update(world.config(run_name="null"), [*samples[:3], replace(samples[3], reward=None), samples[4]])
    assert metrics(null)["actor/grad_norm"] == pytest.approx(metrics(without)["actor/grad_norm"], rel=1e-5)
    assert metrics(null)["batch/unscored"] == 1


def test_old_log_probs_of_the_rollout_are_the_denominator(world: World) -> None:
    pointer = world.update(world.config(old_logprobs="rollout"), make_samples())
    assert metrics(pointer)["actor/ppo_kl"] != 0
    assert metrics(pointer)["sampling/mismatch_k3_kl"] > 0
    assert metrics(pointer)["sampling/importance_weight_mean"] == 1


def test_going_on_from_a_checkpoint_equals_never_having_stopped(world: World) -> None:
    samples = make_samples()
    # With the rollout's log-probs as denominator the two mini-batches do not depend on where the update was cut.
    settings: dict[str, Any] = {"old_logprobs": "rollout", "ppo_mini_batch_size": 2, "batch_size": 4}
    through = world.update(world.config(run_name="through", **settings), samples)
    config = world.config(run_name="stopped", **settings)
    first, second = mini_batches(samples, 2, derive_seed(config.seed, "update", 1, 0, 0))
    pointer = world.update(config, [samples[index] for index in sorted(first)])
    pointer = world.update(config, [samples[index] for index in sorted(second)], policy=pointer, iteration=1)
    assert pointer.extra["global_step"] == through.extra["global_step"] == 2
    expected = world.weights(through)
    assert all(torch.equal(tensor, expected[name]) for name, tensor in world.weights(pointer).items())


def test_fresh_moments_would_be_another_result(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    config = world.config()
    first = world.update(config, make_samples())
    kept = world.update(config, make_samples(seed=1), policy=first, iteration=1)
    world.store.delete(world.store.rel(first.extra["optimizer"]["uri"]))
    world.store.delete("runs/run/stage-1/iter-01/policy")
    fresh = world.update(config, make_samples(seed=1), policy=first, iteration=1)
    assert "fresh AdamW moments" in capsys.readouterr().out
    assert fresh.sha256 != kept.sha256


def test_a_finished_update_is_not_run_again(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    config, samples = world.config(), make_samples()
    first = world.update(config, samples)
    assert world.update(config, samples).sha256 == first.sha256
    assert "complete already" in capsys.readouterr().out
    assert len(world.curves.points) == 1


def test_max_steps_ends_within_an_update_and_keeps_what_was_done(world: World) -> None:
    samples = make_samples()
    config = world.config(ppo_mini_batch_size=1, batch_size=4, max_steps=3)
    first = world.update(config, samples)
    assert first.extra["global_step"] == 3
    assert metrics(first)["steps"] == 3
    second = world.update(config, make_samples(seed=1), policy=first, iteration=1)
    assert second.extra["global_step"] == 3
    assert metrics(second)["steps"] == 0
    assert second.extra["optimizer"] == first.extra["optimizer"]
    before = world.weights(first)
    assert all(torch.equal(tensor, before[name]) for name, tensor in world.weights(second).items())


def test_a_gradient_that_is_not_finite_is_skipped_and_too_many_fail(world: World) -> None:
    model = tiny_model()
    with torch.no_grad():
        model.model.layers[0].mlp.up_proj.weight[0, 0] = math.nan
    policy = save_policy(world.store, model, "nan")
    before = world.weights(policy)
    pointer = world.update(world.config(max_nan_steps=1), make_samples(), policy=policy)
    assert metrics(pointer)["actor/nan_step"] == 1
    assert all(math.isfinite(value) for point in pointer.extra["curve"] for value in point.values())
    name = "model.layers.1.mlp.up_proj.weight"
    assert torch.equal(world.weights(pointer)[name], before[name])
    # They are counted in a row, over updates too: most have few steps.
    with pytest.raises(UserError, match=r"2 actor steps in a row .* more than policy_update.max_nan_steps=1"):
        world.update(world.config(max_nan_steps=1), make_samples(seed=1), policy=pointer, iteration=1)


def test_old_optimizer_states_go_once_newer_ones_are_complete(world: World) -> None:
    config = world.config(keep_last=2)
    pointer = world.base
    policies = []
    for iteration in range(4):
        pointer = world.update(config, make_samples(seed=iteration), policy=pointer, iteration=iteration)
        policies.append(pointer)
    kept = [world.store.complete(world.store.rel(p.extra["optimizer"]["uri"])) is not None for p in policies]
    assert kept == [False, False, True, True]
    assert all(world.store.fetch(policy) for policy in policies)


def test_state_of_a_policy_that_never_took_a_step_can_be_converted_for_other_ranks(
    world: World, tmp_path: Path
) -> None:
    pointer = world.update(world.config(), [replace(sample, finish_reason="length") for sample in make_samples()])
    state = world.store.fetch(Pointer(**pointer.extra["optimizer"])) / "zero" / "state"
    checkpoint._to_universal(state, tmp_path / "universal")
    moments = [torch.load(path) for path in (tmp_path / "universal").rglob("exp_avg.pt")]
    assert len(moments) == len(world.weights(pointer))
    assert not any(moment.any() for moment in moments)


def test_state_of_other_trained_weights_is_left_and_the_step_says_so(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    pointer = world.update(world.config(train_last_layers=1), make_samples())
    assert update_module._usable_optimizer(world.store, world.config(), pointer) is None
    assert "'train_last_layers': 1" in capsys.readouterr().out
    assert update_module._usable_optimizer(world.store, world.config(train_last_layers=1), pointer) is not None


def test_the_same_update_computed_elsewhere_is_complete_already(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    first = world.update(world.config(), make_samples())
    elsewhere = world.config(launcher="deepspeed", ranks=2, ulysses_sequence_parallel_size=2, offload_optimizer=True)
    assert world.update(elsewhere, make_samples()).sha256 == first.sha256
    assert "complete already" in capsys.readouterr().out
    assert world.update(world.config(grad_clip=0.1), make_samples()).sha256 != first.sha256


def test_a_full_disk_is_told_before_the_work(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "components.policy_update.checkpoint.shutil.disk_usage", lambda path: SimpleNamespace(free=1000)
    )
    with pytest.raises(UserError, match=r"needs .* GB for weights and optimizer state, .* GB are free"):
        world.update(world.config(), make_samples())
    assert world.curves.points == []


@pytest.mark.parametrize("part", ["save_optimizer", "export_hf"])
def test_a_disk_that_fills_up_while_saving_is_named_and_nothing_is_left(
    world: World, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    save = getattr(train_module, part)

    def on_a_full_disk(*arguments: Any) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
        try:
            save(*arguments)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    with monkeypatch.context() as patch:
        patch.setattr(train_module, part, on_a_full_disk)
        with pytest.raises(UserError, match="no space left while the update was saved"):
            world.update(world.config(), make_samples())
    assert world.store.complete("runs/run/stage-1/iter-00/policy") is None
    assert list((Path(world.store.root) / ".scratch").iterdir()) == []
    assert world.update(world.config(), make_samples()).extra["global_step"] == 1


def test_more_layers_than_there_are_is_an_error(world: World) -> None:
    with pytest.raises(UserError, match=r"train_last_layers=3, but the policy has 2 layers"):
        world.update(world.config(train_last_layers=3), make_samples())
