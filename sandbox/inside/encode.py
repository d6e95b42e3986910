"""What a function returned, as JSON of exact built-in types with the others tagged.

Lists, strings, numbers, booleans and None are themselves; {"t": [...]} is a tuple, {"s": [...]} a set,
{"d": [[k, v], ...]} a dict, {"o": name} anything that has no plain value. A subclass of a built-in is read through the
built-in's own methods, so an overridden __eq__ or __iter__ never reaches the judge.
"""

from __future__ import annotations

import json
from typing import Any

MAX_DEPTH = 200


class TooLarge(Exception):
    """The value is deeper or longer than the cap."""


def encode(value: object, max_bytes: int) -> bytes:
    """Canonical JSON of a value; raises TooLarge above max_bytes or MAX_DEPTH."""
    budget = [max_bytes]
    text = json.dumps(_plain(value, 0, budget), ensure_ascii=True, separators=(",", ":"))
    if len(text) > max_bytes:
        raise TooLarge
    return text.encode("ascii")


def _spend(budget: list[int], count: int) -> None:
    budget[0] -= count
    if budget[0] < 0:
        raise TooLarge


def _items(values: Any, depth: int, budget: list[int]) -> list[Any]:
    return [_plain(value, depth + 1, budget) for value in values]


def _plain(value: Any, depth: int, budget: list[int]) -> Any:
    if depth > MAX_DEPTH:
        raise TooLarge
    _spend(budget, 2)
    kind = type(value)
    if value is None or kind is bool or kind is float:
        return value
    if kind is int:
        _spend(budget, value.bit_length() // 4)
        return value
    if kind is str:
        _spend(budget, len(value))
        return value
    if kind is list:
        return _items(value, depth, budget)
    if kind is tuple:
        return {"t": _items(value, depth, budget)}
    if kind is set or kind is frozenset:
        return {"s": _items(value, depth, budget)}
    if kind is dict:
        return {"d": [_items(pair, depth, budget) for pair in value.items()]}
    return _subclass(value, kind, depth, budget)


def _subclass(value: Any, kind: type, depth: int, budget: list[int]) -> Any:
    mro = type.__getattribute__(kind, "__mro__")
    if str in mro:
        return _plain(str.__str__(value), depth, budget)
    if int in mro:
        return _plain(int.__int__(value), depth, budget)
    if float in mro:
        return _plain(float.__float__(value), depth, budget)
    if tuple in mro:
        return {"t": _items(tuple.__iter__(value), depth, budget)}
    if list in mro:
        return _items(list.__iter__(value), depth, budget)
    if dict in mro:
        return {"d": [_items(pair, depth, budget) for pair in dict.items(value)]}
    if any(base.__name__ == "generic" and base.__module__ == "numpy" for base in mro):
        item = value.item()
        if type(item) in (int, float, bool, str):
            return _plain(item, depth, budget)
    if kind.__name__ == "ndarray" and kind.__module__ == "numpy":
        return {"o": "ndarray"}
    return {"o": str(kind.__name__)[:80]}
