"""Against an HTTP server that speaks chat completions, in all the ways in which servers differ."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from components.core.config import ServerConfig
from components.core.errors import UserError
from components.rollout.engine import Completion, Request, Sampling
from components.rollout.openai_engine import OpenAIEngine
from tests.rollout.scripted import World

SAMPLING = Sampling(8, 0.7, 0.9, False)


class Server(ThreadingHTTPServer):
    """Answers with the last message, upside down; remembers every body."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.bodies: list[dict[str, Any]] = []
        self.keys: set[str | None] = set()
        self.failures: deque[tuple[int, str]] = deque()
        """Statuses and texts that come before the next answer; status 0 closes the connection."""
        self.message: dict[str, Any] = {}
        self.choice: dict[str, Any] = {}
        self.slow = 0.0
        self.busy = self.busiest = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *arguments: Any) -> None:
        pass

    def do_GET(self) -> None:
        assert self.path == "/v1/models"
        self._reply(200, {"data": [{"id": "served"}]})

    def do_POST(self) -> None:
        assert self.path == "/v1/chat/completions"
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server = self.server
        server.bodies.append(body)
        server.keys.add(self.headers["Authorization"])
        if server.failures:
            status, text = server.failures.popleft()
            if status:
                self._reply(status, {"error": text})
            else:
                self.close_connection = True
            return
        server.busy += 1
        server.busiest = max(server.busiest, server.busy)
        time.sleep(server.slow)
        server.busy -= 1
        text = body["messages"][-1]["content"][::-1]
        choice = {"message": {"content": text, **server.message}, "finish_reason": "stop", **server.choice}
        self._reply(200, {"choices": [choice]})

    def _reply(self, status: int, values: dict[str, Any]) -> None:
        data = json.dumps(values).encode()
        try:
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except ConnectionError:  # nobody waits any more
            pass


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    threading.Thread(target=made.serve_forever, args=[0.02], daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


@pytest.fixture
def policy(world: World) -> Path:
    return world.store.fetch(world.policy) / "hf"


def ask(engine: OpenAIEngine, *texts: str, sampling: Sampling = SAMPLING) -> dict[str, Completion]:
    queue = deque(
        Request((number, 0), engine.encode_chat(messages), number + 1, messages)
        for number, messages in enumerate([{"role": "user", "content": text}] for text in texts)
    )
    found = {request.messages[0]["content"]: answer for request, answer in engine.stream(queue, sampling)}
    assert not queue
    return found


def engine_for(server: Server, policy: Path, **settings: Any) -> OpenAIEngine:
    return OpenAIEngine(ServerConfig(base_url=server.url, **settings), policy)


def test_a_conversation_goes_out_with_its_settings_and_the_text_comes_back(
    server: Server, policy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_KEY", "s3cret")
    engine = engine_for(server, policy, api_key_env="SOME_KEY")
    answer = ask(engine, "abc")["abc"]
    assert answer == Completion(engine.encode("cba"), [], "stop", "cba")
    assert server.bodies == [
        {
            "model": "served",
            "messages": [{"role": "user", "content": "abc"}],
            "max_tokens": 8,
            "temperature": 0.7,
            "top_p": 0.9,
            "seed": 1,
            "logprobs": True,
        }
    ]
    assert server.keys == {"Bearer s3cret"}


def test_token_ids_and_logprobs_are_the_servers_where_it_gives_them(server: Server, policy: Path) -> None:
    content = [{"token": "x", "logprob": -0.5}, {"token": "y", "logprob": -1.5}]
    server.choice = {"token_ids": [7, 9], "logprobs": {"content": content}, "finish_reason": "length"}
    answer = ask(engine_for(server, policy, token_ids=True), "abc")["abc"]
    assert answer == Completion([7, 9], [-0.5, -1.5], "length", "cba")
    assert server.bodies[0]["return_token_ids"] is True


@pytest.mark.parametrize(
    ("content", "text"), [("yes", "<think>\nhm\n</think>\n\nyes"), (None, "<think>\nhm"), ("", "<think>\nhm")]
)
def test_reasoning_that_a_server_takes_out_is_no_answer_but_is_kept(
    server: Server, policy: Path, content: str | None, text: str
) -> None:
    server.message = {"content": content, "reasoning_content": "hm"}
    assert ask(engine_for(server, policy), "a")["a"].text == text


@pytest.mark.parametrize(
    ("content", "finish", "text"),
    [
        ("hm\n</think>\n\nyes", "stop", "<think>\nhm\n</think>\n\nyes"),
        ("hm", "length", "<think>\nhm"),
        ("yes", "stop", "yes"),  # of a server that took an empty thought out
    ],
)
def test_reasoning_that_a_template_opens_and_a_server_leaves_in_is_no_answer(
    server: Server, policy: Path, content: str, finish: str, text: str
) -> None:
    engine = engine_for(server, policy)
    engine._tokenizer.chat_template += "{{ '<think>\\n' if add_generation_prompt }}"
    server.message, server.choice = {"content": content, "reasoning": None}, {"finish_reason": finish}
    assert ask(engine, "a")["a"].text == text
    assert engine.opening == ""


def test_an_answer_ends_where_its_code_does(server: Server, policy: Path) -> None:
    server.message = {"content": "```python\nx\n```\nand so on"}
    stop = Sampling(64, 1.0, 1.0, stop_at_code_end=True)
    assert ask(engine_for(server, policy), "a", sampling=stop)["a"].text == "```python\nx\n```"


def test_no_more_requests_are_under_way_than_allowed_and_each_comes_back_once(server: Server, policy: Path) -> None:
    server.slow = 0.02
    texts = [f"text {number}" for number in range(30)]
    answers = ask(engine_for(server, policy, concurrency=4), *texts)
    assert {text: answer.text[::-1] for text, answer in answers.items()} == {text: text for text in texts}
    assert 2 <= server.busiest <= 4


@pytest.mark.parametrize("status", [429, 500, 503, 0])
def test_what_may_pass_is_tried_again(
    server: Server, policy: Path, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("components.rollout.openai_engine.time.sleep", lambda seconds: None)
    server.failures.extend([(status, "busy")] * 2)
    assert ask(engine_for(server, policy), "abc")["abc"].text == "cba"
    assert len(server.bodies) == 3
    server.failures.extend([(status, "busy")] * 3)
    with pytest.raises(UserError, match="chat/completions: "):
        ask(engine_for(server, policy, retries=2), "abc")


def test_what_is_refused_is_told_at_once_with_the_servers_words(server: Server, policy: Path) -> None:
    server.failures.append((400, "max_tokens is too large"))
    with pytest.raises(UserError, match=r"chat/completions: 400: .*max_tokens is too large.*rollout.server.base_url"):
        ask(engine_for(server, policy), "abc")
    assert len(server.bodies) == 1


def test_at_the_deadline_the_stream_ends(server: Server, policy: Path) -> None:
    engine = engine_for(server, policy)
    server.slow = 3.0
    queue = deque([Request((0, 0), [1], 1, [{"role": "user", "content": "abc"}])])
    start = time.monotonic()
    assert list(engine.stream(queue, SAMPLING, start + 0.3)) == []
    assert time.monotonic() - start < 2.0


def test_a_server_that_is_not_there_and_a_key_that_is_not_set_are_named(policy: Path) -> None:
    with pytest.raises(UserError, match=r"http://127.0.0.1:9/v1/models: ConnectError.*Check rollout.server.base_url"):
        OpenAIEngine(ServerConfig(base_url="http://127.0.0.1:9/v1", retries=0), policy)
    with pytest.raises(UserError, match="NO_SUCH_KEY: this environment variable is not set"):
        OpenAIEngine(ServerConfig(api_key_env="NO_SUCH_KEY"), policy)
