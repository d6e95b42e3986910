"""Held-out problems: lists."""

# fmt: off

from demo_problems.model import Problem, fn
from demo_problems.pools import LISTS, PAIRS, WLISTS

PROBLEMS: list[Problem] = [
    fn("squares(numbers)", "returns a list with the square of each number.", "[n ** 2 for n in numbers]", LISTS + [[]]),
    fn(
        "sort_descending(numbers)", "returns the numbers sorted from largest to smallest.",
        "sorted(numbers, reverse=True)", LISTS + [[]],
    ),
    fn(
        "remove_duplicates(items)", "returns a list without duplicates that keeps the order of first appearance.",
        "result = []\nfor x in items:\n    if x not in result:\n        result.append(x)\nreturn result",
        [[1, 1, 2], [3, 2, 3, 1], [], [5], [4, 4, 4], [9, 8, 9, 8, 7], [1, 2, 3]],
    ),
    fn(
        "count_greater(numbers, limit)", "returns how many numbers in the list are greater than limit.",
        "sum(1 for n in numbers if n > limit)",
        [([1, 2, 3], 1), ([5], 5), ([], 0), ([9, 8, 7, 1], 6), ([-1, -2], -3), ([4, 4, 5], 4), ([1, 1], 10)],
    ),
    fn(
        "add_lists(a, b)", "returns the element-wise sum of two lists of equal length.",
        "[x + y for x, y in zip(a, b)]",
        [([1, 2], [3, 4]), ([], []), ([5], [-5]), ([1, 1, 1], [2, 3, 4]), ([0, 10], [10, 0])],
    ),
    fn(
        "first_n(items, n)", "returns the first n items of a list.",
        "items[:n]", [([1, 2, 3], 2), ([5], 1), ([1, 2], 5), ([], 3), ([4, 5, 6, 7], 0), ([9, 8, 7], 3)],
    ),
    fn(
        "common_items(a, b)", "returns the items of list a that are also in list b.",
        "[x for x in a if x in b]",
        [([1, 2, 3], [2, 3, 4]), ([1], [2]), ([], [1]), ([5, 6], [6, 5]), ([1, 2], []), ([7, 8, 9], [9])],
    ),
    fn(
        "largest_index(numbers)", "returns the position of the largest number in a list of distinct numbers.",
        "numbers.index(max(numbers))", [[1, 2], [3, 1, 2], [10, 5, 80, 7], [-1, -5, -2], [100], [4, 9, 2, 7, 5]],
    ),
    fn(
        "no_negatives(numbers)", "returns the list with every negative number replaced by zero.",
        "[max(n, 0) for n in numbers]", LISTS + [[]],
    ),
    fn("countdown(n)", "returns the list of numbers from n down to 1.", "list(range(n, 0, -1))", [1, 2, 3, 5, 8, 10]),
    fn(
        "row_sums(matrix)", "returns a list with the sum of each row of a matrix.",
        "[sum(row) for row in matrix]",
        [[[1, 2], [3, 4]], [[5]], [[0, 0], [1, 1], [2, 2]], [[1, 2, 3]], [[-1, 1], [10, 5]]],
    ),
    fn("list_min(numbers)", "returns the smallest number in a list.", "min(numbers)", LISTS),
    fn(
        "double_all(numbers)", "returns a list with each number multiplied by two.",
        "[n * 2 for n in numbers]", LISTS + [[]],
    ),
    fn(
        "scale(numbers, factor)", "multiplies every number in the list by factor and returns the new list.",
        "[n * factor for n in numbers]",
        [([1, 2], 3), ([], 5), ([5], 0), ([1, -1], -2), ([4, 4, 2], 1), ([10, 20, 30], 2)],
    ),
    fn("keep_odd(numbers)", "returns the odd numbers of a list.", "[n for n in numbers if n % 2 != 0]", LISTS + [[]]),
    fn(
        "prepend_item(items, value)", "returns a new list with value placed in front of the items.",
        "[value] + items", [([1, 2], 3), ([], 1), (["a"], "b"), ([5, 6], 5), ([0], -1)],
    ),
    fn(
        "sum_of_even(numbers)", "returns the sum of the even numbers in a list.",
        "sum(n for n in numbers if n % 2 == 0)", LISTS + [[]],
    ),
    fn(
        "has_duplicates(items)", "returns True if some item appears more than once in the list.",
        "len(items) != len(set(items))", [[1, 2], [1, 1], [], [5], [4, 3, 4], ["a", "b"], ["x", "x"]],
    ),
    fn(
        "any_negative(numbers)", "returns True if the list contains a negative number.",
        "any(n < 0 for n in numbers)", [[1, 2], [0], [-1, 5], [], [7, -8, 9], [5, 0, 5]],
    ),
    fn(
        "all_even(numbers)", "returns True if all numbers in the list are even.",
        "all(n % 2 == 0 for n in numbers)", [[2, 4], [1, 2], [0], [], [7], [8, 10, 11], [-2, 6]],
    ),
    fn("upper_all(words)", "returns a list of the words in upper case.", "[w.upper() for w in words]", WLISTS + [[]]),
    fn(
        "longest(words)", "returns the longest word in a list. If several are longest, return the first of them.",
        "max(words, key=len)", WLISTS,
    ),
    fn("swap(a, b)", "returns a list with b first and a second.", "[b, a]", PAIRS),
]
