"""Held-out problems: conditions and dictionaries."""

# fmt: off

from data.demo.problems.model import Problem, fn
from data.demo.problems.pools import DICTS, WORD_LISTS

PROBLEMS: list[Problem] = [
    fn("list_values(d)", "returns a list of the values of the dictionary d.", "list(d.values())", [*DICTS, {}]),
    fn("list_keys(d)", "returns a list of the keys of the dictionary d.", "list(d.keys())", [*DICTS, {}]),
    fn(
        "word_length_map(words)", "returns a dictionary that maps each word to its length.",
        "{w: len(w) for w in words}", [*WORD_LISTS, []],
    ),
    fn(
        "equal_or_different(a, b)", "returns 'equal' if a equals b, otherwise 'different'.",
        "'equal' if a == b else 'different'", [(1, 2), (5, 5), (0, 0), (-4, 4), (10, 10), (7, -2)],
    ),
    fn("is_teenager(age)", "returns True if age is between 13 and 19.", "13 <= age <= 19", [12, 13, 19, 20, 15, 0, 40]),
    fn(
        "max_word_length(a, b)", "returns the length of the longer of the two words.",
        "max(len(a), len(b))",
        [("cat", "horse"), ("tiger", "ox"), ("one", "two"), ("", "a"), ("z", ""), ("abc", "abcd"), ("zoo", "animal")],
    ),
]
