from pathlib import Path

import pytest

from components.core.errors import UserError
from components.core.resolve import parse_overrides, resolve
from pipelines.compile import PROFILES, load_profile


@pytest.mark.parametrize("path", sorted(PROFILES.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_shipped_profile_is_valid(path: Path) -> None:
    _, config = load_profile(path.stem, [])
    assert config.profile == path.stem


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("learnign_rate=1", r"learnign_rate: no such key"),
        ("rollout.temperature=0", r"rollout\.temperature: Input should be greater than 0 \(got 0\)"),
        ("rollout.top_p=0.9", r"rollout\.top_p must be 1 in training"),
        ("batch_size=7", r"batch_size=7 is not a multiple of policy_update\.ppo_mini_batch_size=8"),
        ("context_length=100", r"context_length=100 is less than .* set it to \d+"),
        ("data.train_until=2024-09-01", r"data.*not before data\.test_from"),
        ("policy_update.ranks=2", r"policy_update\.ranks=2 needs policy_update\.launcher=deepspeed"),
        ("noequals", r"'noequals': write overrides as key=value"),
    ],
)
def test_a_bad_key_or_value_is_named_with_what_to_do(override: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        load_profile("demo", [override])


def test_an_unknown_profile_lists_those_that_exist() -> None:
    with pytest.raises(UserError, match=r"nope\.yaml: no such profile; there are: .*demo"):
        load_profile("nope", [])


def test_overrides_keep_their_types() -> None:
    assert parse_overrides(["a.b=1e-5", "a.c=null", "d=[1, 2]", "e=x=y", "f=true"]) == {
        "a": {"b": 1e-5, "c": None},
        "d": [1, 2],
        "e": "x=y",
        "f": True,
    }


def test_pipeline_parameters_change_values_but_not_the_graph() -> None:
    profile, _ = load_profile("demo", [])
    config = resolve(profile, {"rollout.temperature": 0.5, "max_steps": 0}, {"reward.shuffle": True})
    assert (config.rollout.temperature, config.max_steps, config.reward.shuffle) == (0.5, None, True)
    with pytest.raises(UserError, match=r"rollout\.shards: shapes the graph"):
        resolve(profile, {}, {"rollout.shards": 3})


def test_the_run_name_follows_results_not_places() -> None:
    names = [load_profile("demo", [o])[1].run for o in ("seed=0", "store=/elsewhere", "experiment=x", "seed=1")]
    assert names[0] == names[1] == names[2] != names[3]
