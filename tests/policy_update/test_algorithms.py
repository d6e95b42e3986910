"""The step with other algorithms than the default: reference policy, value model, dynamic sampling, presets."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from components.core.presets import PRESETS
from components.core.store import Pointer
from components.core.update_config import PolicyUpdateConfig
from components.policy_update.advantages import grpo_advantages
from components.policy_update.rollout_io import Sample
from tests.policy_update.helpers import World, make_samples, tiny_model

GAE: dict[str, Any] = {"adv_estimator": "gae", "critic": {"lr": 1e-2}}


def metrics(pointer: Pointer) -> dict[str, float]:
    values: dict[str, float] = pointer.extra["metrics"]
    return values


def token_logps(model: Any, sample: Sample) -> tuple[Tensor, Tensor]:
    """Log-probs and entropies of a sample's response by the plain model."""
    logits_TV = model(torch.tensor([sample.prompt_ids + sample.response_ids])).logits[0]
    logp_TV = (logits_TV[len(sample.prompt_ids) - 1 : -1] / sample.temperature).log_softmax(-1)
    logp_T = logp_TV.gather(1, torch.tensor(sample.response_ids)[:, None])[:, 0]
    return logp_T, -(logp_TV.exp() * logp_TV).sum(-1)


def test_a_preset_fills_in_and_what_is_set_wins() -> None:
    config = PolicyUpdateConfig(preset="dapo", clip_ratio_high=0.4, filter_groups={"oversample": 3.0})
    assert config.clip_ratio_high == 0.4
    assert config.clip_ratio_c == 10.0
    assert (config.filter_groups.enable, config.filter_groups.oversample) == (True, 3.0)
    assert config.overlong_buffer.enable
    assert PolicyUpdateConfig(preset="ppo").adv_estimator == "gae"
    assert PolicyUpdateConfig(preset="ppo", adv_estimator="rloo").adv_estimator == "rloo"


@pytest.mark.parametrize("preset", PRESETS)
def test_a_resolved_preset_reads_back_as_itself(preset: str) -> None:
    config = PolicyUpdateConfig(preset=preset)
    assert PolicyUpdateConfig.model_validate(config.model_dump(mode="json")) == config
    assert {key: config.model_dump()[key] for key in PRESETS[preset] if not isinstance(PRESETS[preset][key], dict)} == {
        key: value for key, value in PRESETS[preset].items() if not isinstance(value, dict)
    }


def test_the_default_preset_is_the_default_configuration() -> None:
    bare = {name: field.default for name, field in PolicyUpdateConfig.model_fields.items()}
    config = PolicyUpdateConfig()
    assert {name: getattr(config, name) for name in PRESETS["grpo_plus"]} == {
        name: bare[name] for name in PRESETS["grpo_plus"]
    }


def test_kl_and_entropy_in_the_loss_equal_plain_torch(world: World) -> None:
    # The second update's policy is not the first's, so the divergence from the run's initial policy is not 0.
    settings: dict[str, Any] = {
        "use_kl_loss": True, "kl_loss_coef": 0.3, "kl_loss_type": "k2", "entropy_coeff": 0.2, "grad_clip": 1e9,
        "loss_agg_mode": "seq-mean-token-mean", "rollout_is_threshold": None,
    }  # fmt: skip
    config = world.config(**settings)
    first = world.update(config, make_samples())
    samples = make_samples(seed=1)
    samples[:4] = [replace(sample, reward=1.0) for sample in samples[:4]]  # no advantage, but a divergence
    second = world.update(config, samples, policy=first, iteration=1)

    initial, model = tiny_model(), tiny_model()
    model.load_state_dict(world.weights(first), strict=False)
    rewards = torch.tensor([float(sample.reward or 0) for sample in samples])
    advantages = grpo_advantages(rewards, [sample.problem_id for sample in samples])
    loss, kl, tokens = torch.zeros(()), 0.0, sum(sample.tokens for sample in samples)
    for sample, advantage in zip(samples, advantages, strict=True):
        logp_T, entropy_T = token_logps(model, sample)
        kl_T = 0.5 * (logp_T - token_logps(initial, sample)[0].detach()).square()
        policy_T = -(logp_T - logp_T.detach()).exp() * advantage
        loss = loss + (policy_T + 0.3 * kl_T - 0.2 * entropy_T).mean() / len(samples)
        kl += kl_T.sum().item() / tokens
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1e9).item()
    assert metrics(second)["actor/grad_norm"] == pytest.approx(norm, rel=1e-4)
    assert metrics(second)["actor/kl_loss"] == pytest.approx(kl, rel=1e-4)
    assert metrics(second)["actor/loss"] == pytest.approx(loss.item(), rel=1e-4)
    assert metrics(first)["actor/kl_loss"] == 0
    assert kl > 1e-4


def test_kl_in_the_reward_is_what_the_advantages_see(world: World) -> None:
    config = world.config(use_kl_in_reward=True, kl_coef=0.5)
    first = world.update(config, make_samples())
    samples = [replace(sample, reward=1.0) for sample in make_samples(seed=1)]
    second = world.update(config, samples, policy=first, iteration=1)
    assert metrics(first)["critic/reward_kl_penalty"] == pytest.approx(0, abs=1e-6)
    # All rewards are equal: only the divergence tells the answers apart.
    assert metrics(second)["actor/skipped"] == 0
    initial, model = tiny_model(), tiny_model()
    model.load_state_dict(world.weights(first), strict=False)
    kl = [(token_logps(model, s)[0] - token_logps(initial, s)[0]).detach() for s in samples]
    assert metrics(second)["critic/reward_kl_penalty"] == pytest.approx(torch.cat(kl).mean().item(), abs=1e-5)
    scores = torch.stack([1 - 0.5 * kl_T.sum() for kl_T in kl])
    advantages = grpo_advantages(scores, [sample.problem_id for sample in samples])
    assert metrics(second)["critic/advantages/max"] == pytest.approx(advantages.max().item(), abs=1e-3)


def test_the_value_model_learns_the_returns_and_goes_on(world: World) -> None:
    config = world.config(**GAE)
    samples = make_samples()
    pointers = [world.update(config, samples)]
    for iteration in range(1, 5):
        pointers.append(world.update(config, samples, policy=pointers[-1], iteration=iteration))
    values = [metrics(pointer) for pointer in pointers]
    assert values[0]["critic/values/mean"] == 0  # it starts from zero
    assert values[-1]["critic/vf_loss"] < 0.7 * values[0]["critic/vf_loss"]
    assert values[-1]["critic/vf_explained_var"] > values[0]["critic/vf_explained_var"]
    assert all(point["critic/grad_norm"] > 0 for _, point in world.curves.points)
    first, last = world.critic(pointers[-2]), world.critic(pointers[-1])
    assert any(not torch.equal(first[name], last[name]) for name in last)
    kept = [world.store.complete(world.store.rel(pointer.extra["critic"]["uri"])) is not None for pointer in pointers]
    assert kept == [False, False, False, True, True]


def test_the_first_value_loss_and_the_advantages_by_hand(world: World) -> None:
    # Values are 0 and gamma and lambda 1, so every return is the answer's reward, and advantages are those, whitened.
    pointer = world.update(world.config(critic={"cliprange_value": 0.5}, **{"adv_estimator": "gae"}), make_samples())
    samples = make_samples()
    reward_N = torch.cat([torch.full((sample.tokens,), float(sample.reward or 0)) for sample in samples])
    assert metrics(pointer)["critic/vf_loss"] == pytest.approx(0.5 * reward_N.square().mean().item())
    assert metrics(pointer)["critic/returns/mean"] == pytest.approx(reward_N.mean().item())
    whitened_N = (reward_N - reward_N.mean()) / (reward_N.var() + 1e-8).sqrt()
    assert metrics(pointer)["critic/advantages/max"] == pytest.approx(whitened_N.max().item(), abs=1e-5)
    assert metrics(pointer)["critic/advantages/min"] == pytest.approx(whitened_N.min().item(), abs=1e-5)


def test_going_on_with_the_value_model_equals_never_having_stopped(world: World) -> None:
    samples, later = make_samples(), make_samples(seed=1)
    config = world.config(**GAE)
    first = world.update(config, samples)
    through = world.update(config, later, policy=first, iteration=1)
    expected = world.weights(through), world.critic(through)
    # The same again, as after a kill that left nothing of the second update.
    for kind in ("policy", "optimizer", "critic"):
        world.store.delete(f"runs/run/stage-1/iter-01/{kind}")
    again = world.update(config, later, policy=Pointer.read(world.folder / "policy-0.json"), iteration=1)
    for have, want in zip((world.weights(again), world.critic(again)), expected, strict=True):
        assert all(torch.equal(tensor, want[name]) for name, tensor in have.items())
    # Without the moments of the first it would be another value model.
    world.store.delete("runs/run/stage-1/iter-01/policy")
    world.store.delete(f"{world.store.rel(first.extra['critic']['uri'])}")
    fresh = world.update(config, later, policy=first, iteration=1)
    assert any(not torch.equal(tensor, expected[1][name]) for name, tensor in world.critic(fresh).items())


def test_in_the_warm_up_only_the_value_model_learns(world: World) -> None:
    config = world.config(adv_estimator="gae", critic={"lr": 1e-2, "warmup_steps": 1})
    before = world.weights(world.base)
    first = world.update(config, make_samples())
    assert all(torch.equal(tensor, before[name]) for name, tensor in world.weights(first).items())
    assert world.critic(first)["score.weight"].abs().max() > 0
    second = world.update(config, make_samples(seed=1), policy=first, iteration=1)
    assert metrics(second)["actor/skipped"] == 0


def mixed(samples: Sequence[Sample]) -> list[Sample]:
    """Half of the problems say nothing."""
    return [replace(s, reward=1.0) if int(s.problem_id[1:]) % 2 else s for s in samples]


def test_dynamic_sampling_trains_on_full_batches_of_what_says_something(world: World) -> None:
    samples = mixed(make_samples(problems=8))
    settings: dict[str, Any] = {"ppo_mini_batch_size": 2, "batch_size": 4}
    pointer = world.update(world.config(filter_groups={"enable": True, "oversample": 2.0}, **settings), samples)
    told = [sample for sample in samples if int(sample.problem_id[1:]) % 2 == 0]
    only = world.update(world.config(run_name="only", **settings), told)
    assert metrics(pointer)["steps"] == 2
    assert metrics(pointer)["actor/grad_norm"] == pytest.approx(metrics(only)["actor/grad_norm"], rel=1e-5)
    assert (metrics(pointer)["batch/groups_sampled"], metrics(pointer)["batch/groups_kept"]) == (8, 4)
    # What is reported of the reward is about all that was sampled.
    assert metrics(pointer)["critic/score/mean"] == pytest.approx(sum(float(s.reward or 0) for s in samples) / 32)
    assert metrics(only)["critic/score/mean"] < metrics(pointer)["critic/score/mean"]


def test_dynamic_sampling_that_leaves_nothing_leaves_the_policy_alone(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    samples = [replace(sample, reward=0.0) for sample in make_samples()]
    pointer = world.update(world.config(preset="dapo"), samples)
    before = world.weights(world.base)
    assert all(torch.equal(tensor, before[name]) for name, tensor in world.weights(pointer).items())
    assert (metrics(pointer)["steps"], metrics(pointer)["critic/score/mean"]) == (0, 0)
    assert metrics(pointer)["alarm/zero_std"] == 1
    assert "WARNING: stage-1/iter-00/policy: batch/frac_reward_zero_std is 1" in capsys.readouterr().out
    assert world.update(world.config(preset="dapo"), make_samples(), policy=pointer, iteration=1)


def test_the_overlong_penalty_tells_equal_rewards_apart(world: World) -> None:
    samples = [replace(s, reward=1.0) for s in make_samples()]
    assert len({len(s.response_ids) for s in samples if s.problem_id == "p0"}) > 1
    pointer = world.update(world.config(overlong_buffer={"enable": True, "len": 6}), samples)
    assert metrics(pointer)["actor/skipped"] == 0
    assert metrics(pointer)["critic/score/mean"] == 1.0
    assert metrics(pointer)["critic/overlong_penalty/mean"] > 0


def test_deepcoders_own_rule_keeps_the_tokens_in_the_denominator(world: World) -> None:
    samples = make_samples()
    cut = [replace(s, finish_reason="length") if not s.reward else s for s in samples]
    by_rule = {
        rule: metrics(world.update(world.config(run_name=rule, mask_truncated_rule=rule, grad_clip=1e9), cut))
        for rule in ("loss", "advantage")
    }
    kept = sum(s.tokens for s in samples if s.reward)
    share = kept / sum(s.tokens for s in samples)
    assert share < 0.9
    ratio = by_rule["advantage"]["actor/grad_norm"] / by_rule["loss"]["actor/grad_norm"]
    assert ratio == pytest.approx(share, rel=1e-4)


def test_an_alarm_is_a_warning_and_a_metric(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    pointer = world.update(world.config(alarms={"zero_std": 0.2}), mixed(make_samples()))
    assert metrics(pointer)["alarm/zero_std"] == 1
    assert metrics(pointer)["alarm/entropy_collapse"] == 0
    assert re.search(r"WARNING: stage-1/iter-00/policy: batch/frac_reward_zero_std is 0.5", capsys.readouterr().out)
    assert world.curves.points[-1][1]["alarm/zero_std"] == 1
    assert [set(entry) for entry in pointer.extra["history"]] == [
        {"actor/entropy", "critic/score/mean", "response_length/clip_ratio"}
    ]


def test_every_metric_that_is_promised_is_there(world: World, readme: str) -> None:
    samples = [replace(s, finish_reason="length" if s.sample_id == 3 else "stop") for s in make_samples()]
    settings: dict[str, Any] = {"peak_tflops": 1.0, "clip_ratio_c": 3.0, "use_kl_loss": True, "use_kl_in_reward": True}
    settings |= {"ppo_mini_batch_size": 2, "batch_size": 4, "overlong_buffer": {"enable": True}, **GAE}
    pointer = world.update(world.config(**settings), samples)
    promised = set(re.findall(r"`([a-z_]+/[\w/@]+)`", readme[readme.index("## Metrics") :]))
    found = world.curves.points[-1][1].keys() | metrics(pointer).keys()
    found |= {"batch/pass@k", "batch/groups_sampled", "batch/groups_kept"}
    assert len(promised) > 40
    assert promised - found == set()


@pytest.mark.usefixtures("readmes_functions")
def test_the_readmes_own_functions_work(world: World) -> None:
    samples = [replace(s, reward=[0.0, 0.0, 0.25, 1.0][s.sample_id]) for s in make_samples()]
    config = world.config(adv_estimator="my_advantage:median_baseline", loss_mode="my_loss:sapo", ppo_epochs=2)
    pointer = world.update(config, samples)
    # torch's median of an even number is the lower one: 0.
    assert metrics(pointer)["critic/advantages/max"] == 1.0
    assert metrics(pointer)["critic/advantages/min"] == 0.0
    assert 0 < metrics(pointer)["actor/far"] < 1
    assert "actor/pg_clipfrac" not in metrics(pointer)
