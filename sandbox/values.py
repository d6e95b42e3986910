"""Results of functions: decoding what a child sent, and comparing it with the expected value.

A child's bytes are untrusted. They are JSON in the form of `inside.encode`; anything else is Undecodable, and a value
without a plain form equals nothing.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any

from .compare import close_numbers, same_answer
from .model import INT_DIGITS

_ALWAYS_DECODED, _LONGER = 1 << 16, 100
_FLOAT_DIGITS = 309
"""Of an integer that equals a float, at most."""
_SAME_HASH = 100
"""Keys of one dict that may share a hash; unchosen ones hardly ever do."""


class Undecodable(ValueError):
    """A child sent what the encoder never sends."""


class Opaque:
    """A value that has no plain form (a generator, an own class); equal to nothing, itself included."""

    def __init__(self, type_name: str) -> None:
        self.type_name = type_name

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return False

    def __repr__(self) -> str:
        return f"<{self.type_name}>"


def decode(payload: bytes, longest: int = INT_DIGITS) -> Any:
    """The value as exact built-in types; Undecodable if it is not in the encoder's form.

    An integer of more than `longest` digits is not read, which takes quadratic time; it equals nothing.
    """
    try:
        return _decode(json.loads(payload, parse_int=partial(_integer, longest)))
    except (ValueError, RecursionError, TypeError, KeyError) as error:
        raise Undecodable(str(error)[:200]) from None


def longest_integer(payload: bytes, expected: Any) -> int:
    """How many digits an integer in a result can have if the result equals the expected value."""
    if len(payload) <= _ALWAYS_DECODED:
        return INT_DIGITS
    return max([_FLOAT_DIGITS, *map(len, re.findall(r"\d+", json.dumps(expected)))])


def is_longer_than_any_equal(payload: bytes, expected: Any) -> bool:
    """Whether an encoded result is so long that it need not be decoded to know that it is not the expected value.

    The same value can be written longer: 1e308 has 5 characters, the equal integer 309.
    """
    if len(payload) <= _ALWAYS_DECODED:
        return False
    return len(payload) > _LONGER * (len(json.dumps(expected)) + 1)


def _integer(longest: int, text: str) -> Any:
    return int(text) if len(text) <= longest else Opaque("int")


def _decode(raw: Any) -> Any:
    if isinstance(raw, list):
        return [_decode(item) for item in raw]
    if not isinstance(raw, dict):
        return raw
    if len(raw) != 1:
        raise Undecodable("an object with several tags")
    ((tag, body),) = raw.items()
    if tag == "t":
        return tuple(_decode(item) for item in body)
    if tag == "s":
        return _Set([_decode(item) for item in body])
    if tag == "d":
        pairs = [(_key(k), _decode(v)) for k, v in body]
        # Integers can be chosen so that all have one hash, and a dict of them takes quadratic time.
        if max(Counter(hash(k) for k, _ in pairs).values(), default=0) > _SAME_HASH:
            raise Undecodable("keys chosen to collide")
        return dict(pairs)
    if tag == "o" and isinstance(body, str):
        return Opaque(body)
    raise Undecodable(f"tag {tag!r:.20}")


def _key(raw: Any) -> Any:
    key = _decode(raw)
    try:
        hash(key)
    except TypeError:
        raise Undecodable("a key that cannot be hashed") from None
    return key


class _Set:
    """A set's members, which JSON cannot order; equal to no JSON value."""

    def __init__(self, members: list[Any]) -> None:
        self.members = members

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return False

    def __repr__(self) -> str:
        return "{" + ", ".join(map(repr, self.members)) + "}"


def match_value(name: str, result: Any, expected: Any, options: Mapping[str, Any]) -> bool:
    """Compare a function's result with the expected JSON value.

    `lcb` and `checker`-less defaults follow the official harness: Python's ==, a tuple at the top read as a list. The
    others read tuples as lists at any depth and keys as JSON writes them; `floats` allows its tolerance on floats,
    `unordered` any order of a top-level list.
    """
    if name == "lcb":
        if isinstance(result, tuple):
            result = list(result)
        return bool(result == expected)
    result = to_json(result)
    if name == "unordered" and isinstance(result, list) and isinstance(expected, list):
        return _same_bag(result, expected)
    if name == "yesno" and isinstance(result, str) and isinstance(expected, str):
        return same_answer(result, expected)
    if name == "floats":
        return _close_values(result, expected, options)
    return bool(result == expected)


def to_json(value: Any) -> Any:
    """The value as JSON would hold it: tuples are lists, keys are text."""
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    if isinstance(value, dict):
        return {_json_key(k): to_json(v) for k, v in value.items()}
    return value


def to_plain(value: Any) -> Any:
    """As to_json, with sets as lists and what has no plain form as its repr: what a checker is given."""
    value = to_json(value)
    if isinstance(value, list):
        return [to_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: to_plain(item) for key, item in value.items()}
    if isinstance(value, _Set):
        return [to_plain(item) for item in value.members]
    return repr(value) if isinstance(value, Opaque) else value


def _json_key(key: Any) -> str:
    if isinstance(key, str):
        return key
    if key is None or isinstance(key, (bool, int, float)):
        return json.dumps(key)
    return repr(key)


def _same_bag(result: list[Any], expected: list[Any]) -> bool:
    if len(result) != len(expected):
        return False
    left = Counter(map(_hashable, expected))
    for item in result:
        key = _hashable(item)
        if not left[key]:
            return False
        left[key] -= 1
    return True


def _hashable(value: Any) -> Any:
    """What equals another value's exactly if the values are equal; JSON values only, anything else equals nothing."""
    if isinstance(value, list):
        return ("list", *map(_hashable, value))
    if isinstance(value, dict):
        return ("dict", frozenset((key, _hashable(item)) for key, item in value.items()))
    return object() if isinstance(value, (Opaque, _Set)) else value


def _close_values(result: Any, expected: Any, options: Mapping[str, Any]) -> bool:
    if isinstance(result, list) and isinstance(expected, list):
        return len(result) == len(expected) and all(
            _close_values(r, e, options) for r, e in zip(result, expected, strict=True)
        )
    if isinstance(result, dict) and isinstance(expected, dict):
        return result.keys() == expected.keys() and all(_close_values(result[k], expected[k], options) for k in result)
    # Integers stay exact, as in text; a whole float may answer an integer.
    if isinstance(expected, float) and isinstance(result, (int, float)) and not isinstance(result, bool):
        try:
            return close_numbers(float(result), expected, options)
        except OverflowError:
            return False
    return bool(result == expected)
