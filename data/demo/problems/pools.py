"""Inputs that many problems share."""

# fmt: off

INTS = [0, 1, 2, 7, 10, -3, 15, 24, 100, -8]
NATS = [1, 2, 3, 4, 5, 7, 10, 12, 16, 25]
LISTS = [[3, 1, 2], [5], [1, 2, 3, 4, 5], [-1, -5, -2], [10, 0, 10, 4], [7, 7, 7], [2, -4, 6, -8, 9], [100, 1, 50, 25]]
WORDS = ["hello", "a", "Python", "level", "AbCd", "zebra", "banana", "xyzzy", "Open AI", "queue"]
SENTENCES = [
    "the quick brown fox", "hello", "a b c", "Python is fun", "we like green apples", "to be or not to be",
    "Up and down", "x yy zzz",
]
PAIRS = [(1, 2), (5, 3), (0, 0), (-4, 9), (10, 10), (7, -2), (100, 25), (3, 8)]
POSITIVE_PAIRS = [(10, 3), (9, 3), (1, 1), (20, 4), (7, 2), (100, 7), (5, 10), (36, 6)]
WORD_LISTS = [
    ["cat", "horse", "ox"], ["a"], ["red", "green", "blue"], ["one", "three", "five", "two"], ["apple", "Bob", "car"],
    ["zz", "y", "xxxx"], ["same", "same", "other"],
]
TRIPLES = [(3, 4, 5), (1, 2, 3), (5, 5, 5), (1, 1, 3), (10, 2, 3), (2, 10, 9), (2, 3, 7), (0, 6, -1)]
DICTS = [
    {"a": 1, "b": 2}, {"x": 10}, {"p": 3, "q": 9, "r": 4}, {"k": -5, "m": -1}, {"one": 1, "two": 2, "three": 3},
    {"z": 7, "y": 0},
]
LISTS_AND_LIMITS = [
    ([1, 2, 3], 3), ([5], 5), ([], 0), ([9, 8, 7, 1], 8), ([-1, -2], 0), ([4, 4, 5], 1), ([10, 20, 30], 15),
]

# What programs read.
INT_TEXTS = ["1", "0", "-3", "15", "100", "7"]
NAT_TEXTS = ["1", "2", "3", "5", "10", "7"]
TWO_INT_TEXTS = ["1\n2", "0\n0", "-4\n9", "10\n10", "7\n-2", "100\n25"]
FLOAT_TEXTS = ["1.5", "0", "2.25", "-4", "10.5"]
WORD_TEXTS = ["hello", "a", "Python", "ABC", "zEbRa", "level"]
NAME_TEXTS = ["Ann", "Bob", "Mary Jane", "X", "world"]
