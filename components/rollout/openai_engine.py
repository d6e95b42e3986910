"""Answers of a served model, from any server with OpenAI's chat completions. For evaluation: no update reaches it."""

from __future__ import annotations

import math
import os
import random
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import httpx2

from components.core.config import ServerConfig
from components.core.errors import UserError
from components.rollout.engine import Chat, Completion, Request, Sampling, cut_at_code_end

_AGAIN = {408, 409, 429, 500, 502, 503, 504}


class OpenAIEngine(Chat):
    """See `Engine`.

    Token ids are the server's where it gives them (`token_ids: true`, on vLLM). Else the answer's text is tokenized
    with the policy's own tokenizer, to be counted; there are no log-probs then, since they would not be those of
    these tokens.
    """

    continuous = True

    @property
    def opening(self) -> str:
        """Nothing: what the template opens is put back below, where a server has not taken it out as reasoning."""
        return ""

    def __init__(self, config: ServerConfig, policy: Path, client: httpx2.Client | None = None) -> None:
        """Ask the server which model it has.

        Args:
            config: the server.
            policy: a HF directory with the served model's tokenizer.
            client: for tests.

        Raises:
            UserError: the server cannot be reached, or refuses.
        """
        from transformers import AutoTokenizer

        self._tokenizer = AutoTokenizer.from_pretrained(policy)
        self._config = config
        key = os.environ.get(config.api_key_env) if config.api_key_env else None
        if config.api_key_env and not key:
            raise UserError(f"rollout.server.api_key_env={config.api_key_env}: this environment variable is not set")
        self._client = client or httpx2.Client(
            limits=httpx2.Limits(max_connections=config.concurrency),
            headers={"Authorization": f"Bearer {key}"} if key else {},
        )
        self._model = config.model or self._first_model()

    def _first_model(self) -> str:
        listed = self._send("GET", "models").get("data") or []
        if not listed:
            raise UserError(f"{self._config.base_url}/models: lists no model; set rollout.server.model")
        return str(listed[0]["id"])

    def stream(
        self, queue: deque[Request], sampling: Sampling, deadline: float = math.inf
    ) -> Iterator[tuple[Request, Completion]]:
        """See Engine. A request an answer, `concurrency` of them at a time.

        Raises:
            UserError: the server refuses a request, or has failed it too often.
        """
        pool = ThreadPoolExecutor(self._config.concurrency)
        running: dict[Future[Completion], Request] = {}
        try:
            while queue or running:
                while queue and len(running) < self._config.concurrency:
                    request = queue.popleft()
                    running[pool.submit(self._answer, request, sampling, deadline)] = request
                left = deadline - time.monotonic()
                if left <= 0:
                    return
                done, _ = wait(running, timeout=None if left == math.inf else left, return_when=FIRST_COMPLETED)
                for future in [future for future in running if future in done]:
                    yield running.pop(future), future.result()
        finally:
            # Nobody waits for the requests under way: they end at the deadline, or with their own limit.
            pool.shutdown(wait=False, cancel_futures=True)

    def _answer(self, request: Request, sampling: Sampling, deadline: float) -> Completion:
        body: dict[str, Any] = {
            "model": self._model,
            "messages": request.messages,
            "max_tokens": sampling.max_new_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "seed": request.seed % 2**31,
        }
        if self._config.logprobs:
            body["logprobs"] = True
        if self._config.token_ids:
            body["return_token_ids"] = True
        answer = self._send("POST", "chat/completions", body, deadline)
        try:
            completion = self._completion(answer["choices"][0])
        except (KeyError, IndexError, TypeError) as error:
            url = f"{self._config.base_url}/chat/completions"
            raise UserError(f"{url}: not a chat completion ({error!r}): {answer!r:.300}") from error
        return cut_at_code_end(completion, sampling, self.decode)

    def _completion(self, choice: dict[str, Any]) -> Completion:
        message = choice["message"]
        text = message.get("content") or ""
        reason = "length" if choice.get("finish_reason") == "length" else "stop"
        thoughts = message.get("reasoning_content") or message.get("reasoning")
        # A draft in the reasoning must not count as the answer, whether the server has taken the reasoning out or not.
        if thoughts:
            text = f"<think>\n{thoughts}\n</think>\n\n{text}" if text else f"<think>\n{thoughts}"
        elif "</think>" in text or reason == "length":
            text = self._opened + text
        ids = choice.get("token_ids")
        logprobs = [entry["logprob"] for entry in (choice.get("logprobs") or {}).get("content") or []]
        if ids is None:
            return Completion(self.encode(text), [], reason, text)
        return Completion(list(ids), logprobs if len(logprobs) == len(ids) else [], reason, text)

    def _send(
        self, method: str, path: str, body: dict[str, Any] | None = None, deadline: float = math.inf
    ) -> dict[str, Any]:
        """One request, sent again while that may help."""
        url = f"{self._config.base_url.rstrip('/')}/{path}"
        for attempt in range(self._config.retries + 1):
            try:
                # Past the deadline nobody waits for the answer, so the connection must not outlive it.
                limit = min(self._config.timeout_s, max(deadline - time.monotonic(), 1.0))
                response = self._client.request(method, url, json=body, timeout=limit)
                if response.status_code < 400:
                    values: dict[str, Any] = response.json()
                    return values
                problem, again = f"{response.status_code}: {response.text[:300]}", response.status_code in _AGAIN
            except httpx2.TransportError as error:
                problem, again = f"{type(error).__name__}: {error}", True
            except ValueError as error:
                raise UserError(f"{url}: the answer is not JSON ({error})") from error
            if not again or attempt == self._config.retries:
                break
            pause = min(2.0**attempt, 30.0) * random.uniform(0.5, 1.0)  # spread out what failed together
            if time.monotonic() + pause >= deadline:
                break
            time.sleep(pause)
        raise UserError(f"{url}: {problem}. Check rollout.server.base_url, its model and key, and the server's log.")
