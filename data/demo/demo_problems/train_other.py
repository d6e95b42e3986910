"""Training problems: conditions and dictionaries."""

# fmt: off

from demo_problems.model import Problem, fn
from demo_problems.pools import DICTS, INTS, WLISTS

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
        "weather(temperature)",
        "returns 'hot' if temperature is above 25, 'cold' if it is below 10, and 'mild' otherwise.",
        "if temperature > 25:\n    return 'hot'\nif temperature < 10:\n    return 'cold'\nreturn 'mild'",
        [30, 25, 26, 10, 9, 15, -5],
    ),
    fn(
        "is_valid_triangle(a, b, c)", "returns True if the three lengths can form a triangle.",
        "a + b > c and a + c > b and b + c > a",
        [(3, 4, 5), (1, 2, 3), (5, 5, 5), (1, 1, 3), (10, 2, 3), (2, 10, 9), (2, 3, 7)],
    ),
    fn(
        "bigger_word(a, b)", "returns the longer of two strings. If they have the same length it returns the first.",
        "a if len(a) >= len(b) else b",
        [("cat", "horse"), ("tiger", "ox"), ("one", "two"), ("", "a"), ("z", ""), ("same", "size"), ("abc", "abcd")],
    ),
    fn(
        "opposite(direction)", "returns 'right' if direction is 'left' and 'left' if direction is 'right'.",
        "'right' if direction == 'left' else 'left'", ["left", "right", "left", "right", "right"],
    ),
    fn("sorted_keys(d)", "returns the keys of the dictionary in alphabetical order.", "sorted(d)", DICTS + [{}]),
    fn("best_key(d)", "returns the key with the highest value in the dictionary.", "max(d, key=d.get)", DICTS),
    fn(
        "count_items(items)", "returns a dictionary that maps each item to how often it appears in the list.",
        "counts = {}\nfor x in items:\n    counts[x] = counts.get(x, 0) + 1\nreturn counts",
        [["a", "b", "a"], [], ["x"], ["z", "z", "z"], ["p", "q", "r", "q"], ["one", "two", "one"]],
    ),
    fn(
        "make_dict(keys, values)", "builds a dictionary from a list of keys and a list of values.",
        "dict(zip(keys, values))",
        [(["a", "b"], [1, 2]), ([], []), (["x"], [9]), (["p", "q", "r"], [3, 2, 1]), (["k", "m"], [0, 0])],
    ),
    fn(
        "invert(d)", "returns a dictionary with the keys and the values of d exchanged.",
        "{v: k for k, v in d.items()}",
        [{"a": "b"}, {}, {"x": "y", "p": "q"}, {"one": "un", "two": "deux"}, {"k": "v", "v": "k"}],
    ),
    fn(
        "passed_names(scores)", "returns the sorted list of the names whose score is at least 50.",
        "sorted(n for n, s in scores.items() if s >= 50)",
        [{"Ann": 50, "Bob": 49}, {}, {"Zed": 90, "Amy": 80}, {"X": 10}, {"C": 51, "B": 50, "A": 5}],
    ),
    fn("dict_size(d)", "returns the number of keys in the dictionary d.", "len(d)", DICTS + [{}]),
    fn(
        "has_key(d, key)", "returns True if the dictionary d has the given key.",
        "key in d", [({"a": 1}, "a"), ({"a": 1}, "b"), ({}, "x"), ({"p": 5, "q": 6}, "q"), ({"k": 0}, "k")],
    ),
    fn(
        "get_value(d, key)", "returns the value that the dictionary d stores for key.",
        "d[key]",
        [({"a": 1}, "a"), ({"a": 1, "b": 7}, "b"), ({"x": 0}, "x"), ({"p": 5, "q": 6}, "q"), ({"k": -3}, "k")],
    ),
    fn("list_values(d)", "returns a list of the values of the dictionary d.", "list(d.values())", DICTS + [{}]),
    fn("list_keys(d)", "returns a list of the keys of the dictionary d.", "list(d.keys())", DICTS + [{}]),
    fn("max_value(d)", "returns the largest value in the dictionary.", "max(d.values())", DICTS),
    fn(
        "word_length_map(words)", "returns a dictionary that maps each word to its length.",
        "{w: len(w) for w in words}", WLISTS + [[]],
    ),
    fn("max_or_zero(n)", "returns n if n is positive and 0 otherwise.", "n if n > 0 else 0", INTS),
    fn(
        "sign_word(n)",
        "returns 'positive' if n is greater than zero, 'negative' if n is less than zero and 'zero' otherwise.",
        "if n > 0:\n    return 'positive'\nif n < 0:\n    return 'negative'\nreturn 'zero'", INTS,
    ),
    fn(
        "adult_or_child(age)", "returns 'adult' if age is 18 or more and 'child' otherwise.",
        "'adult' if age >= 18 else 'child'", [0, 17, 18, 19, 50, 5],
    ),
    fn(
        "shipping(total)", "returns 0 if total is more than 50 and 5 otherwise.",
        "0 if total > 50 else 5", [0, 49, 50, 51, 100, 20],
    ),
    fn(
        "safe_divide(a, b)", "returns a divided by b, or 0 if b is zero.",
        "a / b if b != 0 else 0", [(4, 2), (1, 0), (0, 5), (10, 4), (-6, 3), (7, 0)],
    ),
    fn(
        "good_day(day)", "returns True if day is 'Saturday' or 'Sunday'.",
        "day in ['Saturday', 'Sunday']", ["Monday", "Saturday", "Sunday", "Friday", "Tuesday"],
    ),
    fn(
        "both_true(a, b)", "returns True only if both a and b are True.",
        "a and b", [(True, True), (True, False), (False, True), (False, False), (True, True)],
    ),
    fn(
        "xor(a, b)", "returns True if exactly one of the booleans a and b is True.",
        "a != b", [(True, True), (True, False), (False, True), (False, False), (True, False)],
    ),
    fn(
        "speeding(speed, limit)", "returns True if speed is higher than limit.",
        "speed > limit", [(50, 50), (51, 50), (49, 50), (100, 80), (0, 30), (31, 30)],
    ),
    fn(
        "light(color)", "returns 'stop' if color is 'red' and 'go' otherwise.",
        "'stop' if color == 'red' else 'go'", ["red", "green", "yellow", "red", "blue"],
    ),
]
