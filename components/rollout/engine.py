"""What a rollout asks of an engine. An engine knows a policy and token ids; problems and trainers it does not know."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from components.core.config import RolloutConfig
from components.core.light_imports import spare_transformers


@dataclass(frozen=True)
class Sampling:
    """How to sample one batch."""

    max_new_tokens: int
    temperature: float
    top_p: float
    stop_at_code_end: bool
    """End an answer at the fence that closes its first code block."""


@dataclass(frozen=True)
class Completion:
    """One sampled answer."""

    token_ids: list[int]
    """Of the answer, the end-of-sequence token included."""
    logprobs: list[float]
    """Natural log of the probability each token was drawn with: temperature and top_p applied."""
    finish_reason: str
    """`stop`: ended by itself or at the code's end. `length`: cut at max_new_tokens."""


class Engine(Protocol):
    """A loaded policy."""

    def generate(self, prompts: list[list[int]], seeds: list[list[int]], sampling: Sampling) -> list[list[Completion]]:
        """Sample answers.

        Args:
            prompts: token ids, one list a prompt.
            seeds: for each prompt one seed a sample; the number of seeds is the number of samples.
            sampling: see Sampling.

        Returns:
            For each prompt its samples, in the order of the seeds. The same call gives the same tokens again.
        """
        ...

    def decode(self, token_ids: list[int]) -> str:
        """The text of token ids, special tokens left out."""
        ...

    def encode_chat(self, system: str | None, user: str) -> list[int]:
        """The prompt's token ids by the policy's chat template, ready for the answer."""
        ...


class Chat:
    """The part of an engine that its tokenizer does."""

    _tokenizer: Any

    def decode(self, token_ids: list[int]) -> str:
        """See Engine."""
        text: str = self._tokenizer.decode(token_ids, skip_special_tokens=True)
        return text

    def encode_chat(self, system: str | None, user: str) -> list[int]:
        """See Engine. The template writes the BOS token where the model has one; none is added here."""
        messages = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": user})
        text = self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False)
        return ids


def load_engine(config: RolloutConfig, policy: Path, context_length: int, seed: int) -> Engine:
    """Load a policy's HF directory into the configured engine.

    Args:
        config: engine, dtype, parallelism.
        policy: the HF directory.
        context_length: tokens of prompt and answer that must fit.
        seed: the engine's own seed, for engines without a seed a request.
    """
    if config.engine == "vllm":
        from components.rollout.vllm_engine import VllmEngine

        return VllmEngine(config, policy, context_length, seed)
    spare_transformers(accelerate=False)
    from components.rollout.transformers_engine import TransformersEngine

    return TransformersEngine(policy, config.dtype, config.threads)


def code_is_closed(text: str) -> bool:
    """Whether the answer's first fenced block has been closed: two fences, the second at the start of a line."""
    start = text.find("```")
    return start >= 0 and "\n```" in text[start + 3 :]
