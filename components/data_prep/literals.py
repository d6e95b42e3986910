"""Decoding what data sets put into strings: JSON, Python literals, and LiveCodeBench's pickled tests."""

from __future__ import annotations

import ast
import base64
import binascii
import io
import json
import pickle
import re
import sys
import zlib
from typing import Any

from components.data_prep.rows import Reject

MAX_DIGITS = 50_000
"""Integers of published tests go beyond the interpreter's default of 4300 digits."""
MAX_PAYLOAD = 1 << 29
"""Bytes that one row's compressed tests may unpack to."""
_MAX_AST = 1 << 20
_TOKEN = re.compile(
    r"""(?P<text>'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*")"""
    r"|(?P<word>\b(?:True|False|None)\b)|(?P<open>\()|(?P<close>,?\s*\))|(?P<comma>,(?=\s*[\]}]))",
    re.DOTALL,
)
_WORDS = {"True": "true", "False": "false", "None": "null"}


def allow_long_integers() -> None:
    """Let this process convert integers of up to MAX_DIGITS digits."""
    limit = sys.get_int_max_str_digits()
    if 0 < limit < MAX_DIGITS:
        sys.set_int_max_str_digits(MAX_DIGITS)


def _as_json(match: re.Match[str]) -> str:
    if match["text"] is not None:
        return json.dumps(ast.literal_eval(match["text"]))
    if match["word"] is not None:
        return _WORDS[match["word"]]
    if match["open"] is not None:
        return "["
    return "]" if match["close"] is not None else ""


def parse_literal(text: str, key: str) -> Any:
    """A value written as JSON, or as Python would print it.

    Python text is rewritten to JSON token by token, since a syntax tree of a test of some megabytes takes gigabytes.
    Tuples become lists.

    Raises:
        Reject: `bad_value`, naming the key.
    """
    allow_long_integers()
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return json.loads(_TOKEN.sub(_as_json, text))
    except (ValueError, SyntaxError, RecursionError, TypeError):
        pass
    try:
        if len(text) <= _MAX_AST:
            return ast.literal_eval(text)
        problem = "neither JSON nor a plain Python literal"
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError) as error:
        problem = f"neither JSON nor a Python literal: {error}"
    raise Reject("bad_value", f"{key}: {problem} ({text[:60]!r})")


class _NamesAClass(pickle.UnpicklingError):
    """The pickle asks for something that could run code."""


class _NoClasses(pickle.Unpickler):
    """Admits plain values only: a pickle that names a class or a function could run anything."""

    def find_class(self, module: str, name: str) -> Any:
        raise _NamesAClass(f"names {module}.{name}")


def decode_private_tests(text: str, key: str) -> Any:
    """LiveCodeBench's private tests: JSON, or base64 of zlib of a pickled JSON string.

    Raises:
        Reject: `unsafe_pickle` if the pickle asks for a class, `bad_value` if it is something else.
    """
    allow_long_integers()
    if text.lstrip()[:1] in ("[", "{"):
        return parse_literal(text, key)
    try:
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(base64.b64decode(text, validate=True), MAX_PAYLOAD)
        if unpacker.unconsumed_tail or not unpacker.eof:
            raise Reject("bad_value", f"{key}: cut off, or unpacks to more than {MAX_PAYLOAD >> 20} MiB")
    except (zlib.error, binascii.Error, ValueError) as error:
        raise Reject("bad_value", f"{key}: not base64 of zlib data ({error})") from None
    try:
        value = _NoClasses(io.BytesIO(data)).load()
    except _NamesAClass as error:
        raise Reject("unsafe_pickle", f"{key}: {error}") from None
    except Exception as error:  # a malformed pickle raises whatever its opcodes run into
        raise Reject("bad_value", f"{key}: not a pickle ({type(error).__name__}: {error})") from None
    return parse_literal(value, key) if isinstance(value, str) else value
