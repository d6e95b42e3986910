"""What starter code says about a function: its name, how many arguments it takes, and of which types."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

_SCALARS: dict[str, tuple[type, ...]] = {"int": (int,), "float": (int, float), "str": (str,), "bool": (bool,)}
_LISTS = {"list", "List", "Sequence", "Iterable"}


@dataclass(frozen=True)
class Signature:
    """The function that a solution has to define."""

    name: str
    fewest: int
    """Positional arguments without a default."""
    annotations: tuple[ast.expr | None, ...]
    """Of the positional arguments."""
    returns: ast.expr | None

    def refuses(self, arguments: list[Any], value: Any) -> str:
        """Why a test cannot be one of this function's; empty if it can."""
        most = len(self.annotations)
        if not self.fewest <= len(arguments) <= most:
            return f"{len(arguments)} arguments for {self.name}(), which takes {most}"
        for argument, annotation in zip(arguments, self.annotations, strict=False):
            if annotation is not None and not fits(argument, annotation):
                return f"{str(argument)[:40]!r} for an argument of type {ast.unparse(annotation)}"
        if self.returns is not None and not fits(value, self.returns):
            return f"{str(value)[:40]!r} for a value of type {ast.unparse(self.returns)}"
        return ""


def fits(value: Any, annotation: ast.expr) -> bool:
    """Can a JSON value be of an annotated type? Anything that is not understood fits."""
    match annotation:
        case ast.Name(id=name) if name in _SCALARS:
            if isinstance(value, bool):
                return name == "bool"
            return isinstance(value, _SCALARS[name])
        case ast.Name(id=name) if name in _LISTS:
            return isinstance(value, list)
        case ast.Subscript(value=ast.Name(id=name), slice=element) if name in _LISTS:
            return isinstance(value, list) and all(fits(item, element) for item in value)
    return True


def read_signature(starter: str) -> Signature | None:
    """The one function that starter code opens, a method of `Solution` or not; None if that is not clear."""
    if "def " not in starter:
        return None
    starter = starter.rstrip()
    try:
        # Starter code stops where the body would begin.
        tree = ast.parse(starter + (" pass\n" if starter.endswith(":") else "\n"))
    except (SyntaxError, ValueError, RecursionError):
        return None
    body: list[ast.stmt] = tree.body
    method = False
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == "Solution":
            body, method = node.body, True
    functions = [node for node in body if isinstance(node, ast.FunctionDef) and not node.name.startswith("__")]
    if len(functions) != 1:
        return None
    arguments = functions[0].args
    if arguments.vararg or arguments.kwonlyargs:
        return None
    positional = (arguments.posonlyargs + arguments.args)[1 if method else 0 :]
    return Signature(
        functions[0].name,
        len(positional) - len(arguments.defaults),
        tuple(argument.annotation for argument in positional),
        functions[0].returns,
    )
