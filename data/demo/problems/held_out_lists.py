"""Held-out problems: lists."""

# fmt: off

from data.demo.problems.model import Problem, fn
from data.demo.problems.pools import LISTS, WORD_LISTS

PROBLEMS: list[Problem] = [
    fn("sum_list(numbers)", "returns the sum of all numbers in the list.", "sum(numbers)", [*LISTS, []]),
    fn(
        "mean(numbers)", "returns the average of a list of numbers.",
        "sum(numbers) / len(numbers)", [[1, 2], [4], [2, 4, 6], [1, 2, 3, 4], [10, 20, 30, 40], [-2, 2], [5, 5, 6, 6]],
    ),
    fn(
        "all_positive(numbers)", "returns True if every number in the list is greater than zero.",
        "all(n > 0 for n in numbers)", [[1, 2], [0], [-1, 5], [3], [7, 8, 9], [5, 0, 5], [2, 3, -4]],
    ),
    fn(
        "long_words(words, n)", "returns the words that have more than n letters.",
        "[w for w in words if len(w) > n]",
        [(["cat", "horse"], 3), (["a"], 1), ([], 2), (["red", "green", "blue"], 3), (["abc", "ab", "a"], 0)],
    ),
    fn(
        "to_strings(numbers)", "converts a list of integers to a list of strings.",
        "[str(n) for n in numbers]", [*LISTS, []],
    ),
    fn(
        "total_length(words)", "returns the total number of characters in a list of words.",
        "sum(len(w) for w in words)", [*WORD_LISTS, []],
    ),
    fn(
        "keep_positive(numbers)", "returns a list of the positive numbers only.",
        "[n for n in numbers if n > 0]", [*LISTS, []],
    ),
    fn(
        "sum_of_squares_list(numbers)", "returns the sum of the squares of the numbers in a list.",
        "sum(n ** 2 for n in numbers)", [*LISTS, []],
    ),
    fn(
        "all_even(numbers)", "returns True if all numbers in the list are even.",
        "all(n % 2 == 0 for n in numbers)", [[2, 4], [1, 2], [0], [], [7], [8, 10, 11], [-2, 6]],
    ),
    fn("lengths(words)", "returns a list with the length of each word.", "[len(w) for w in words]", [*WORD_LISTS, []]),
    fn(
        "parse_numbers(texts)", "converts a list of strings to a list of integers.",
        "[int(t) for t in texts]", [["1", "2"], ["10"], [], ["0", "-5", "7"], ["42", "42"]],
    ),
    fn(
        "middle_item(items)", "returns the middle item of a list with an odd number of items.",
        "items[len(items) // 2]", [[1, 2, 3], [5], [4, 5, 6, 7, 8], [9, 1, 9], ["a", "b", "c"]],
    ),
    fn(
        "sum_of_abs(numbers)", "returns the sum of the absolute values of the numbers.",
        "sum(abs(n) for n in numbers)", [*LISTS, []],
    ),
    fn(
        "largest_abs(numbers)", "returns the largest absolute value in the list.",
        "max(abs(n) for n in numbers)", LISTS,
    ),
    fn(
        "remove_zeros(numbers)", "returns the list without zeros.",
        "[n for n in numbers if n != 0]", [[0], [1, 2], [0, 1, 0], [], [10, 0, 100], [0, 0, 5]],
    ),
    fn(
        "shortest(words)", "returns the shortest word in the list. If there are several, it returns the first.",
        "min(words, key=len)", WORD_LISTS,
    ),
    fn(
        "list_lengths(lists)", "returns a list with the length of every list in lists.",
        "[len(x) for x in lists]", [[[1, 2], [3]], [[], [1]], [[5]], [], [[1], [2], [3]], [[4, 4], [4, 4]]],
    ),
    fn(
        "sum_both(a, b)", "returns the sum of all numbers of the lists a and b together.",
        "sum(a) + sum(b)", [([1, 2], [3, 4]), ([], []), ([5], [-5]), ([1, 1, 1], [2]), ([], [10, 0])],
    ),
    fn(
        "sum_is_zero(numbers)", "returns True if the sum of the list is zero.",
        "sum(numbers) == 0", [[1, -1], [1, 2], [], [0], [5, -3, -2], [7]],
    ),
    fn(
        "any_even(numbers)", "returns True if at least one number in the list is even.",
        "any(n % 2 == 0 for n in numbers)", [[1, 2], [1], [], [4], [3, 5, 7], [9, 9, 8], [2, 4, 6]],
    ),
    fn(
        "keep_large(numbers)", "returns the numbers in the list that are greater than 10.",
        "[n for n in numbers if n > 10]", [[1, 20], [10, 11], [], [5], [100, 50, 25, 3], [12, 9, 30]],
    ),
]
