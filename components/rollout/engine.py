"""What a rollout asks of an engine. An engine knows a policy and token ids; problems and trainers it does not know."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from jinja2 import TemplateError

from components.core.config import RolloutConfig
from components.core.errors import UserError
from sandbox.extract import opened_thought

Message = dict[str, str]
"""`role` (system, user, assistant) and `content`, as chat templates take them."""


@dataclass(frozen=True)
class Sampling:
    """How to sample; the same for all requests of one stream."""

    max_new_tokens: int
    temperature: float
    top_p: float
    stop_at_code_end: bool
    """End an answer at the fence that closes its first code block."""
    prefix: str = ""
    """Text that every prompt ends with and that belongs to the answer: a code block may be open already."""


@dataclass(frozen=True)
class Request:
    """One answer that is wanted."""

    key: tuple[int, int]
    """The caller's name for it, unique among the requests of one stream."""
    prompt_ids: list[int]
    seed: int
    """The same request with the same seed gives the same tokens again."""
    messages: list[Message] = field(default_factory=list)
    """What the prompt was made from: servers apply the chat template themselves."""


@dataclass(frozen=True)
class Completion:
    """One sampled answer."""

    token_ids: list[int]
    """Of the answer, the end-of-sequence token included."""
    logprobs: list[float]
    """Natural log of the probability each token was drawn with: temperature and top_p applied."""
    finish_reason: str
    """`stop`: ended by itself or at the code's end. `length`: cut at max_new_tokens."""
    text: str
    """The tokens as text, special ones left out."""


class Engine(Protocol):
    """A loaded policy."""

    continuous: bool
    """Whether a request that comes while others are under way is begun at once, instead of after them all."""

    @property
    def opening(self) -> str:
        """What the chat template begins every answer with, as `<think>`: tokens of the prompt, text of the answer."""
        ...

    def stream(
        self, queue: deque[Request], sampling: Sampling, deadline: float = math.inf
    ) -> Iterator[tuple[Request, Completion]]:
        """Answer requests, each answer as it is finished.

        Args:
            queue: what to answer; the engine takes from its left, and the caller may append between two answers.
            sampling: see Sampling.
            deadline: of time.monotonic(); then the stream ends, and what is under way is dropped.

        The stream ends when the queue is empty and nothing is under way. Closing it drops what is.
        """
        ...

    def encode(self, text: str) -> list[int]:
        """The token ids of a text, no special token added."""
        ...

    def encode_chat(self, messages: list[Message]) -> list[int]:
        """A conversation's token ids by the policy's chat template, ready for the next answer."""
        ...


class Chat:
    """The part of an engine that its tokenizer does."""

    _tokenizer: Any

    def decode(self, token_ids: list[int]) -> str:
        """The text of token ids, special tokens left out."""
        text: str = self._tokenizer.decode(token_ids, skip_special_tokens=True)
        return text

    def encode(self, text: str) -> list[int]:
        """See Engine."""
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False)
        return ids

    def encode_chat(self, messages: list[Message]) -> list[int]:
        """See Engine. The template writes the BOS token where the model has one; none is added here.

        Raises:
            UserError: the policy has no chat template, or it refuses the conversation, or makes nothing of it.
        """
        ids = self.encode(self._render(messages))
        if not ids:
            raise UserError(f"model_name: the policy's chat template makes an empty prompt of {messages!r:.200}")
        return ids

    @property
    def opening(self) -> str:
        """See Engine. DeepSeek-R1's templates open the reasoning, so that an answer only ends it."""
        return self._opened

    @cached_property
    def _opened(self) -> str:
        return opened_thought(self._render([{"role": "user", "content": "Hello"}]))

    def _render(self, messages: list[Message]) -> str:
        if not self._tokenizer.chat_template:
            raise UserError(
                "model_name: this policy's tokenizer has no chat template, so nothing says how to put a problem to it. "
                "Add chat_template.jinja to its directory, or start from an instruction-tuned model."
            )
        try:
            text: str = self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        except TemplateError as error:  # some want no system message, or turns that alternate strictly
            roles = ", ".join(message["role"] for message in messages)
            raise UserError(f"model_name: the policy's chat template refuses the turns {roles}: {error}") from error
        return text


def load_engine(config: RolloutConfig, policy: Path, context_length: int, seed: int) -> Engine:
    """Load a policy's HF directory into the configured engine.

    Args:
        config: engine, dtype, parallelism.
        policy: the HF directory; of a served model only the tokenizer is read.
        context_length: tokens of prompt and answer that must fit.
        seed: the engine's own seed, for engines without a seed a request.
    """
    if config.engine == "vllm":
        from components.rollout.vllm_engine import VllmEngine

        return VllmEngine(config, policy, context_length, seed)
    if config.engine == "openai":
        from components.rollout.openai_engine import OpenAIEngine

        return OpenAIEngine(config.server, policy)
    from components.rollout.transformers_engine import TransformersEngine

    return TransformersEngine(policy, config.dtype, config.threads)


def generate(
    engine: Engine, prompts: list[list[int]], seeds: list[list[int]], sampling: Sampling
) -> list[list[Completion]]:
    """Answer a batch of prompts: for each prompt a completion a seed, in the order of the seeds."""
    queue = deque(
        Request((p, s), prompt, seed)
        for p, (prompt, group) in enumerate(zip(prompts, seeds, strict=True))
        for s, seed in enumerate(group)
    )
    found = {request.key: completion for request, completion in engine.stream(queue, sampling)}
    return [[found[p, s] for s in range(len(group))] for p, group in enumerate(seeds)]


def code_is_closed(text: str) -> bool:
    """Whether the answer's first fenced block has been closed: two fences, the second at the start of a line."""
    start = text.find("```")
    return start >= 0 and "\n```" in text[start + 3 :]


def cut_at_code_end(completion: Completion, sampling: Sampling, decode: Callable[[list[int]], str]) -> Completion:
    """The completion up to the token that closes its first code block; unchanged if none is closed."""
    ids = completion.token_ids
    if not sampling.stop_at_code_end or not code_is_closed(sampling.prefix + decode(ids)):
        return completion
    low, high = 1, len(ids)
    while low < high:
        middle = (low + high) // 2
        if code_is_closed(sampling.prefix + decode(ids[:middle])):
            high = middle
        else:
            low = middle + 1
    kept = ids[:low]
    return replace(
        completion, token_ids=kept, logprobs=completion.logprobs[:low], finish_reason="stop", text=decode(kept)
    )
