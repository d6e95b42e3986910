"""EvalPlus's own files: inputs and a reference solution, whose results are what a program's must equal.

Comparison, oracles and the Python types of MBPP's inputs, which JSON has not: evalplus/eval/__init__.py,
eval/_special_oracle.py and data/mbpp.py of evalplus/evalplus v0.3.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from components.data_prep.normalize import as_list
from components.data_prep.rows import Reject

TIME_LIMIT_S = 30.0
"""For all inputs of a set together; EvalPlus allows at least a second for each."""

_EQUAL_AS_SETS = ("similar_elements", "find_char_long", "common_in_nested_lists", "extract_singly", "larg_nnum",
                  "intersection_array", "find_dissimilar", "Diff")  # fmt: skip
_NOT_NONE = ("check_str", "text_match_three", "text_starta_endb")

_HELPERS = '''
def __reference_function():
    names = {"__name__": "reference"}
    exec(__REFERENCE, names)
    return names[__ENTRY]


def __close(got, want, atol):
    """numpy.testing.assert_allclose with rtol 1e-7, on numbers and sequences of them."""
    if isinstance(want, (list, tuple)):
        return hasattr(got, "__len__") and len(got) == len(want) and all(__close(*p, atol) for p in zip(got, want))
    try:
        return got == want or (got != got and want != want) or abs(got - want) <= atol + 1e-7 * abs(want)
    except TypeError:
        return False


def __same(arguments, got, want, atol):
    if __ENTRY == "find_zero":  # any zero of the polynomial
        return abs(sum(c * got ** i for i, c in enumerate(arguments[0]))) <= atol
    if __ENTRY == "are_equivalent" and got is True or __ENTRY == "sum_div" and got == 0:
        return True  # the published statements allow it
    if __ENTRY in __AS_SETS:
        got, want = set(got), set(want)
    if __ENTRY in __NOT_NONE and isinstance(got, bool) is False:
        got = got is not None
    if __ENTRY in __NOT_NONE and isinstance(want, bool) is False:
        want = want is not None
    floats = isinstance(want, float) or isinstance(want, (list, tuple)) and all(isinstance(x, float) for x in want)
    tolerance = 1e-6 if atol == 0 and floats else atol
    return got == want or tolerance != 0 and __close(got, want, tolerance)


def __compare(inputs):
    import copy
    reference, compared = __reference_function(), 0
    for number, arguments in enumerate(inputs):
        try:
            want = reference(*copy.deepcopy(arguments))
        except Exception:
            continue  # the contract excludes this input
        compared += 1
        got = __CANDIDATE(*copy.deepcopy(arguments))
        assert __same(arguments, got, want, __ATOL), f"input {number}: {got!r:.200}, not {want!r:.200}"
    if not compared:
        raise ValueError("the reference solution takes none of the inputs")
'''


def helpers(row: Mapping[str, Any], entry: str, reference: str) -> str:
    """Code behind the candidate that defines `__compare(inputs)`; `reference` defines the function `entry` too."""
    settings = {
        "__ENTRY": entry,
        "__REFERENCE": reference,
        "__ATOL": float(row.get("atol") or 0),
        "__AS_SETS": _EQUAL_AS_SETS,
        "__NOT_NONE": _NOT_NONE,
    }
    lines = [f"{name} = {value!r}" for name, value in settings.items()]
    return "\n".join([f"__CANDIDATE = {entry}", 'inf, nan = float("inf"), float("nan")', *lines]) + _HELPERS


def comparisons(row: Mapping[str, Any], convert: Callable[[list[Any]], list[Any]] = list) -> list[tuple[str, bool]]:
    """The tests and whether they are public: the first base input, all base inputs, all plus inputs if there are any.

    Args:
        row: with `base_input` and perhaps `plus_input`, lists of lists of arguments.
        convert: makes the values of one call; see `mbpp_types`.

    Raises:
        Reject: no input, or something that is none.
    """
    base, plus = (as_list(row.get(key) or [], key) for key in ("base_input", "plus_input"))
    if not base:
        raise Reject("no_tests", "base_input: empty")
    try:
        groups = [[convert(arguments) for arguments in inputs] for inputs in (base[:1], base, plus) if inputs]
    except (TypeError, ValueError, IndexError, AttributeError) as error:
        raise Reject("bad_tests", f"base_input, plus_input: not the arguments of a call ({error})") from None
    return [(f"__compare({inputs!r})\n", index == 0) for index, inputs in enumerate(groups)]


_TUPLES = {2, 116, 132, 143, 222, 261, 273, 394, 399, 421, 424, 429, 470, 560, 579, 596, 616, 630, 726, 740, 744, 809}
_LISTS_OF_TUPLES = {63, 64, 70, 94, 120, 237, 272, 299, 400, 409, 417, 438, 473, 614, 780}
_FIRST_LIST_OF_TUPLES = {75, 413, 444, 753}
_SECOND_TUPLE = {106, 750}
_FIRST_TUPLE = {250, 405, 446, 617, 720, 763, 808, 307}
_TUPLES_OF_TUPLES = {259, 401, 445}
_DEEP_TUPLES = {580, 615, 791}


def mbpp_types(task: int) -> Callable[[list[Any]], list[Any]]:
    """How a task's arguments, written as JSON, become the Python values that its functions take."""

    def deep(value: Any) -> Any:
        return tuple(map(deep, value)) if isinstance(value, list) else value

    def rows(values: list[Any]) -> list[Any]:
        return [tuple(value) for value in values]

    if task in _TUPLES:
        return rows
    if task in _LISTS_OF_TUPLES:
        return lambda arguments: [rows(values) for values in arguments]
    if task in _FIRST_LIST_OF_TUPLES:
        return lambda arguments: [rows(arguments[0]), *arguments[1:]]
    if task in _SECOND_TUPLE:
        return lambda arguments: [arguments[0], tuple(arguments[1])]
    if task in _FIRST_TUPLE:
        return lambda arguments: [tuple(arguments[0]), *arguments[1:]]
    if task in _TUPLES_OF_TUPLES:
        return lambda arguments: [tuple(rows(values)) for values in arguments]
    if task in _DEEP_TUPLES:
        return lambda arguments: [deep(value) for value in arguments]
    special: dict[int, Callable[[list[Any]], list[Any]]] = {
        115: lambda arguments: [[set(item) if isinstance(item, list) and item else {} for item in arguments[0]]],
        124: lambda arguments: [float(arguments[0]), complex(arguments[1])],
        252: lambda arguments: [complex(arguments[0])],
        278: lambda arguments: [tuple(tuple(x) if isinstance(x, list) else x for x in arguments[0])],
        722: lambda arguments: [{key: tuple(value) for key, value in arguments[0].items()}, *arguments[1:]],
    }
    return special.get(task, list)
