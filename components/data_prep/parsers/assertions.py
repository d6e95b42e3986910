"""Problems whose tests are Python assertions about a function: HumanEval, MBPP and their EvalPlus versions.

A test's input is the text of its assertions. It comes on standard input to a program made of a prelude, the
candidate and a driver, which runs the text and prints `passed`: so these problems are judged like any other, in both
modes. As in the published harnesses the assertions run in the candidate's own process. A program that leaves early
prints nothing and fails; one written for this driver could still deceive it, so this form is for evaluation.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from components.core.schema import Problem, Test
from components.data_prep.normalize import limits
from components.data_prep.rows import Reject

PASSED = "passed"
"""What the driver prints when a test's assertions hold."""

_PRELUDE = """import io as __io, sys as __sys
__stdout, __sys.stdout = __sys.stdout, __io.StringIO()
__name__ = "solution"
"""
# What a candidate prints, and its own main block, are not what is asked for.

_DRIVER = """
try:
    exec(compile(__sys.stdin.read(), "test", "exec"), {**globals(), **locals()})
    __said = "passed"
except AssertionError as __error:
    __said = "assertion failed: " + str(__error)[:1000]
__sys.stdout = __stdout
print(__said)
"""
# In lcb mode the candidate's names are local to a function of the harness.


def assertion_problem(
    problem_id: str,
    source: str,
    question: str,
    tests: Iterable[tuple[str, bool]],
    *,
    fn_name: str,
    prelude: str = "",
    helpers: str = "",
    **fields: Any,
) -> Problem:
    """A problem from the texts of its assertions.

    Args:
        problem_id: of the problem.
        source: of the problem.
        question: of the problem.
        tests: (text, public) pairs.
        fn_name: the function that is asked for.
        prelude: code in front of the candidate: imports and helpers that the statement shows.
        helpers: code behind the candidate, for the assertions only.
        fields: other fields of Problem; `metadata` is added to.
    """
    metadata = {**fields.pop("metadata", {}), "prelude": prelude + "\n" + _PRELUDE, "driver": f"\n{helpers}\n{_DRIVER}"}
    return Problem(
        problem_id=problem_id,
        source=source,
        question=question,
        tests=[Test("stdin", text, PASSED + "\n", public) for text, public in tests],
        fn_name=fn_name,
        metadata=metadata,
        **{**limits(None, None), **fields},
    )


def parsed(code: str, key: str) -> ast.Module:
    """Python source as a tree.

    Raises:
        Reject: `bad_value`, it is not Python.
    """
    try:
        return ast.parse(code)
    except (SyntaxError, ValueError) as error:
        raise Reject("bad_value", f"{key}: not Python ({error})") from None


def function_parts(code: str, name: str, key: str) -> tuple[str, str]:
    """What stands before the function `name`, and its signature as one line ending in a colon.

    Raises:
        Reject: there is no such function.
    """
    for node in parsed(code, key).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            lines = code.splitlines()
            returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
            return "\n".join(lines[: node.lineno - 1]).strip(), f"def {name}({ast.unparse(node.args)}){returns}:"
    raise Reject("no_function_name", f"{key}: defines no function {name}")


def first_assertion(code: str, key: str) -> str:
    """The first assert statement of a program, as it is written."""
    for node in parsed(code, key).body:
        if isinstance(node, ast.Assert):
            return ast.get_source_segment(code, node) or ast.unparse(node)
    raise Reject("no_tests", f"{key}: no assertion")
