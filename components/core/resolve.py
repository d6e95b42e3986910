"""A profile, `key=value` overrides and pipeline parameters become one validated configuration."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import yaml

from components.core.config import Config, parse_config
from components.core.errors import UserError

GRAPH_KEYS = ("stages", "staleness", "rollout.shards", "rollout.mode", "evaluation.mode", "kubernetes")
"""What shapes the graph, or says which of its pods run programs: fixed when the pipeline is compiled."""


def read_profile(path: Path) -> dict[str, Any]:
    """A profile as plain data; `extends: NAME` takes another profile of the same folder as its base.

    Raises:
        UserError: the file is absent, or not a YAML mapping.
    """
    try:
        values = yaml.safe_load(path.read_text())
    except OSError as error:
        known = ", ".join(sorted(file.stem for file in path.parent.glob("*.yaml"))) or "none"
        raise UserError(f"{path}: no such profile; there are: {known}") from error
    except yaml.YAMLError as error:
        raise UserError(f"{path}: not valid YAML: {error}") from error
    if not isinstance(values, dict):
        raise UserError(f"{path}: a profile is a mapping of keys to values")
    base = values.pop("extends", None)
    values = merge(read_profile(path.with_name(f"{base}.yaml")), values) if base else values
    values["profile"] = path.stem
    return values


def merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """`over` laid on `base`, mappings key by key; neither is changed."""
    result = dict(base)
    for key, value in over.items():
        old = result.get(key)
        result[key] = merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return result


def parse_overrides(pairs: list[str]) -> dict[str, Any]:
    """`a.b=1 c=x` as a nested mapping; values are YAML, so `null`, `1e-5` and `[1, 2]` mean what they say.

    Raises:
        UserError: a pair has no `=`, or no key.
    """
    result: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise UserError(f"{pair!r}: write overrides as key=value, for example learning_rate=1e-6")
        result = merge(result, parse_nested(key, scalar(text)))
    return result


def scalar(text: str) -> Any:
    """A value as YAML reads it, and `1e-5` as a number, which YAML 1.1 takes for a word."""
    value = yaml.safe_load(text)
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    return value


def get(values: dict[str, Any], key: str) -> Any:
    """The value at a dotted key, or None."""
    node: Any = values
    for part in key.split("."):
        node = node.get(part) if isinstance(node, dict) else None
    return node


def resolve(profile: dict[str, Any], parameters: dict[str, Any], overrides: dict[str, Any]) -> Config:
    """The configuration of a run, as the first step of the pipeline computes it.

    Args:
        profile: what the pipeline was compiled from.
        parameters: pipeline parameters, by configuration key (dotted); 0 for max_steps stands for null.
        overrides: the rest, nested or dotted.

    Raises:
        UserError: a key is wrong, or an override would need another graph.
    """
    values = dict(profile)
    for key, value in parameters.items():
        values = merge(values, parse_nested(key, None if key == "max_steps" and value == 0 else value))
    for key, value in overrides.items():
        values = merge(values, parse_nested(key, value))
    compiled = parse_config(profile, "the compiled profile").model_dump(mode="json")
    config = parse_config(values, "pipeline parameters")
    asked = config.model_dump(mode="json")
    for key in GRAPH_KEYS:
        if get(asked, key) != get(compiled, key):
            raise UserError(
                f"{key}: shapes the graph and cannot change in a compiled pipeline; compile it anew with {key}="
            )
    return config


def parse_nested(key: str, value: Any) -> dict[str, Any]:
    """`a.b` and a value as {"a": {"b": value}}."""
    nested: Any = value
    for part in reversed(key.split(".")):
        nested = {part: nested}
    result: dict[str, Any] = nested
    return result


def absolute_paths(values: dict[str, Any]) -> dict[str, Any]:
    """Relative directories of a profile made absolute for steps that run elsewhere on this machine."""
    result = dict(values)
    for key in ("store", "model_name"):
        text = str(result.get(key, ""))
        if (
            key in result
            and (key == "store" or text.startswith((".", "~")) or Path(text).is_dir())
            and "://" not in text
        ):
            result[key] = os.path.abspath(os.path.expanduser(text))
    sources = get(result, "data.sources")
    if isinstance(sources, list):
        fixed = []
        for source in sources:
            source = dict(source)
            for key in ("path", "solutions"):
                path = source.get(key)
                if isinstance(path, str) and Path(path).expanduser().exists():
                    source[key] = os.path.abspath(os.path.expanduser(path))
            fixed.append(source)
        result["data"] = {**result["data"], "sources": fixed}
    return result
