"""A decoder's shape: how many weights it has, how large its KV cache is, how many operations a token costs."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from components.core.errors import UserError

_TABLE = Path(__file__).with_name("models.yaml")
_MODEL_TYPES = ("llama", "mistral", "qwen2", "qwen3")


@dataclass(frozen=True)
class Architecture:
    """A decoder with grouped-query attention and a gated MLP (Llama, Qwen2, Qwen3)."""

    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    tied: bool
    """The output matrix is the embedding."""
    qkv_bias: bool = False
    qk_norm: bool = False

    @property
    def layer_parameters(self) -> int:
        """Weights of one layer: q, k, v, o and their biases; gate, up, down; two norms, and those of q and k."""
        q, kv = self.heads * self.head_dim, self.kv_heads * self.head_dim
        attention = self.hidden * (2 * q + 2 * kv) + self.qkv_bias * (q + 2 * kv) + self.qk_norm * 2 * self.head_dim
        return attention + 3 * self.hidden * self.intermediate + 2 * self.hidden

    @property
    def parameters(self) -> int:
        """All weights: layers, the last norm, the embedding, and the output matrix if it is another."""
        matrices = 1 if self.tied else 2
        return self.layers * self.layer_parameters + self.hidden + matrices * self.vocab * self.hidden

    @property
    def largest_module(self) -> int:
        """Weights of the largest single module, which ZeRO-3 gathers as a whole."""
        return self.hidden * max(self.vocab, self.intermediate)

    def kv_bytes_per_token(self, bytes_per_value: int = 2) -> int:
        """One token's keys and values in all layers."""
        return 2 * self.layers * self.kv_heads * self.head_dim * bytes_per_value

    def forward_flops(self, tokens: float, mean_context: float) -> float:
        """Floating-point operations of a forward pass.

        2 operations a weight and token, the embedding's look-up excepted, and in each layer 4 h for each token that a
        token attends to: one product for the scores, one for the values. A causal answer of T tokens attends to T / 2
        on average.

        Source: PaLM, arXiv:2204.02311, appendix B, its 12 L H Q T for forward and backward without the causal mask.

        Args:
            tokens: how many.
            mean_context: tokens that one attends to, on average.
        """
        weights = self.layers * self.layer_parameters + self.vocab * self.hidden
        attention = 4 * self.layers * self.heads * self.head_dim * mean_context
        return tokens * (2 * weights + attention)


def find_architecture(model_name: str) -> Architecture:
    """The shape of a policy: of a local directory by its config.json, else from models.yaml.

    Args:
        model_name: as in the configuration, or a short name such as `Qwen2.5-14B`.

    Raises:
        UserError: it is neither, or of a kind whose formulas are not here.
    """
    random = re.fullmatch(r"random:(\d+)x(\d+)", model_name)
    if random:  # see components/core/policy.py
        layers, width = int(random[1]), int(random[2])
        heads = max(1, width // 32)
        return Architecture(layers, width, 2 * width, heads, heads, 32, 258, tied=True)
    file = Path(model_name).expanduser() / "config.json"
    if file.is_file():
        return from_config(json.loads(file.read_text()), str(file))
    known: dict[str, dict[str, Any]] = {
        name: entry["shape"] for entry in yaml.safe_load(_TABLE.read_text()) for name in entry["names"]
    }
    for name, shape in known.items():
        if model_name in (name, name.rpartition("/")[2]):
            return Architecture(**shape)
    raise UserError(
        f"model_name={model_name}: no architecture is known for it. Give a directory that holds its config.json, or "
        f"the name of one of equal shape, with --architecture; there are: {', '.join(sorted(known))}"
    )


def from_config(config: dict[str, Any], origin: str) -> Architecture:
    """The shape that a Hugging Face config.json describes.

    Args:
        config: its content.
        origin: its path, for errors.

    Raises:
        UserError: another kind of model, or a key is missing.
    """
    kind = config.get("model_type")
    if kind not in _MODEL_TYPES:
        raise UserError(f"{origin}: model_type={kind!r}; formulas are there for {', '.join(_MODEL_TYPES)}")
    try:
        heads = config["num_attention_heads"]
        return Architecture(
            layers=config["num_hidden_layers"],
            hidden=config["hidden_size"],
            intermediate=config["intermediate_size"],
            heads=heads,
            kv_heads=config.get("num_key_value_heads") or heads,
            head_dim=config.get("head_dim") or config["hidden_size"] // heads,
            vocab=config["vocab_size"],
            tied=bool(config.get("tie_word_embeddings", False)),
            qkv_bias=kind == "qwen2" or bool(config.get("attention_bias", False)),
            qk_norm=kind == "qwen3",
        )
    except KeyError as error:
        raise UserError(f"{origin}: has no {error.args[0]}") from error
