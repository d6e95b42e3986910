"""Training problems: conditions and dictionaries."""

# fmt: off

from data.demo.problems.model import Problem, fn
from data.demo.problems.pools import DICTS, INTS, PAIRS

PROBLEMS: list[Problem] = [
    fn(
        "even_or_odd(n)", "returns the string 'even' if n is even and 'odd' otherwise.",
        "'even' if n % 2 == 0 else 'odd'", INTS,
    ),
    fn(
        "pass_or_fail(score)", "returns 'pass' if score is at least 50 and 'fail' otherwise.",
        "'pass' if score >= 50 else 'fail'", [0, 49, 50, 51, 100, 75, 12],
    ),
    fn(
        "can_vote(age)", "returns True if a person of the given age is 18 or older.",
        "age >= 18", [0, 17, 18, 19, 50, 5, 99],
    ),
    fn(
        "weather(temperature)",
        "returns 'hot' if temperature is above 25, 'cold' if it is below 10, and 'mild' otherwise.",
        "if temperature > 25:\n    return 'hot'\nif temperature < 10:\n    return 'cold'\nreturn 'mild'",
        [30, 25, 26, 10, 9, 15, -5],
    ),
    fn("sorted_keys(d)", "returns the keys of the dictionary in alphabetical order.", "sorted(d)", [*DICTS, {}]),
    fn(
        "make_dict(keys, values)", "builds a dictionary from a list of keys and a list of values.",
        "dict(zip(keys, values))",
        [(["a", "b"], [1, 2]), ([], []), (["x"], [9]), (["p", "q", "r"], [3, 2, 1]), (["k", "m"], [0, 0])],
    ),
    fn("dict_size(d)", "returns the number of keys in the dictionary d.", "len(d)", [*DICTS, {}]),
    fn(
        "get_value(d, key)", "returns the value that the dictionary d stores for key.",
        "d[key]",
        [({"a": 1}, "a"), ({"a": 1, "b": 7}, "b"), ({"x": 0}, "x"), ({"p": 5, "q": 6}, "q"), ({"k": -3}, "k")],
    ),
    fn(
        "good_day(day)", "returns True if day is 'Saturday' or 'Sunday'.",
        "day in ['Saturday', 'Sunday']", ["Monday", "Saturday", "Sunday", "Friday", "Tuesday"],
    ),
    fn(
        "positive_entries(d)", "returns a dictionary with only those entries of d whose value is positive.",
        "{k: v for k, v in d.items() if v > 0}", [*DICTS, {}],
    ),
    fn(
        "comparison(a, b)", "returns 1 if a is greater than b, -1 if a is less than b and 0 if they are equal.",
        "if a > b:\n    return 1\nif a < b:\n    return -1\nreturn 0", PAIRS,
    ),
    fn("zero_or_one(n)", "returns 1 if n is greater than 0, otherwise 0.", "1 if n > 0 else 0", INTS),
]
