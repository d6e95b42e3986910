"""A short `make chaos`."""

from pathlib import Path

import pytest

from tests.chaos.proxy import Proxy
from tests.chaos.run import BAD_NETWORK, Run, difference, disturb, results
from tests.chaos.s3_server import S3Server
from tests.small_run import FEW_PROBLEMS

# One stage and few problems: what is under test is the store, not the policy.
SMALL = [
    "stages=[{name: '16', max_response_length: 16, iterations: 1}]",
    "data.max_train_problems=4",
    *FEW_PROBLEMS,
]


@pytest.mark.long
def test_a_run_on_s3_behind_a_bad_network_that_is_killed_makes_what_an_undisturbed_local_run_makes(
    tmp_path: Path,
) -> None:
    plain = Run(tmp_path / "plain", SMALL)
    plain.finish()
    expected = results(plain.files())
    assert any(name.endswith("policy/hf/model.safetensors") for name in expected)

    with S3Server() as server:
        with Proxy(server.port, BAD_NETWORK) as proxy:
            run = Run(tmp_path / "s3", SMALL, server)
            assert disturb(run, 2, 0, 40, proxy.url)
            run.finish(proxy.url, tries=3)
            assert set(proxy.happened) == {"drop", "delay", "corrupt request", "corrupt answer"}
        assert difference(expected, results(run.files())) == []
