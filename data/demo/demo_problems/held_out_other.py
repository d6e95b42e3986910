"""Held-out problems: conditions and dictionaries."""

# fmt: off

from demo_problems.model import Problem, fn
from demo_problems.pools import DICTS, PAIRS

PROBLEMS: list[Problem] = [
    fn(
        "fizz_buzz(n)",
        "returns 'FizzBuzz' if n is divisible by 3 and 5, 'Fizz' if divisible by 3, 'Buzz' if divisible by 5, and "
        "otherwise n as a string.",
        "if n % 15 == 0:\n"
        "    return 'FizzBuzz'\n"
        "if n % 3 == 0:\n"
        "    return 'Fizz'\n"
        "if n % 5 == 0:\n"
        "    return 'Buzz'\n"
        "return str(n)", [1, 3, 5, 15, 30, 7, 9, 10, 22],
    ),
    fn(
        "letter_grade(score)",
        "returns 'A' for scores of 90 or more, 'B' for 80 or more, 'C' for 70 or more and 'F' otherwise.",
        "if score >= 90:\n"
        "    return 'A'\n"
        "if score >= 80:\n"
        "    return 'B'\n"
        "if score >= 70:\n"
        "    return 'C'\n"
        "return 'F'", [95, 90, 89, 80, 79, 70, 69, 0, 100],
    ),
    fn(
        "can_vote(age)", "returns True if a person of the given age is 18 or older.",
        "age >= 18", [0, 17, 18, 19, 50, 5, 99],
    ),
    fn(
        "ticket_price(age)", "returns 5 if age is below 12 and 10 otherwise.",
        "5 if age < 12 else 10", [3, 11, 12, 13, 40, 0, 77],
    ),
    fn("sum_values(d)", "returns the sum of all values in the dictionary d.", "sum(d.values())", DICTS + [{}]),
    fn(
        "lookup(d, key)", "returns the value stored under key, or 0 if the key is missing.",
        "d.get(key, 0)",
        [({"a": 1}, "a"), ({"a": 1}, "b"), ({}, "x"), ({"p": 5, "q": 6}, "q"), ({"k": -1}, "k"), ({"m": 4}, "M")],
    ),
    fn(
        "merge(a, b)", "returns a dictionary with the entries of both a and b. For a common key the value of b counts.",
        "{**a, **b}",
        [({"a": 1}, {"b": 2}), ({}, {"x": 1}), ({"k": 1}, {"k": 2}), ({"p": 1, "q": 2}, {"q": 3}), ({"z": 0}, {})],
    ),
    fn(
        "double_values(d)", "returns a dictionary with every value of d doubled.",
        "{k: v * 2 for k, v in d.items()}", DICTS + [{}],
    ),
    fn(
        "yes_or_no(flag)", "returns 'yes' if flag is True and 'no' if it is False.",
        "'yes' if flag else 'no'", [True, False, True, False, True],
    ),
    fn("not_value(flag)", "returns the opposite of the boolean flag.", "not flag", [True, False, False, True, True]),
    fn(
        "bigger_is_first(a, b)", "returns 'first' if a is larger than b and 'second' otherwise.",
        "'first' if a > b else 'second'", PAIRS,
    ),
]
