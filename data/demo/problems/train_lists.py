"""Training problems: lists."""

# fmt: off

from data.demo.problems.model import Problem, fn
from data.demo.problems.pools import LISTS, WORD_LISTS

PROBLEMS: list[Problem] = [
    fn("list_max(numbers)", "returns the largest number in a list.", "max(numbers)", LISTS),
    fn(
        "value_range(numbers)", "returns the difference between the largest and the smallest number of a list.",
        "max(numbers) - min(numbers)", LISTS,
    ),
    fn(
        "keep_even(numbers)", "returns a list with only the even numbers of the given list.",
        "[n for n in numbers if n % 2 == 0]", [*LISTS, []],
    ),
    fn(
        "count_even(numbers)", "returns how many numbers of the list are even.",
        "sum(1 for n in numbers if n % 2 == 0)", [*LISTS, []],
    ),
    fn("reverse_list(items)", "returns the items of a list in reverse order.", "items[::-1]", [*LISTS, []]),
    fn(
        "sort_descending(numbers)", "returns the numbers sorted from largest to smallest.",
        "sorted(numbers, reverse=True)", [*LISTS, []],
    ),
    fn(
        "first_n(items, n)", "returns the first n items of a list.",
        "items[:n]", [([1, 2, 3], 2), ([5], 1), ([1, 2], 5), ([], 3), ([4, 5, 6, 7], 0), ([9, 8, 7], 3)],
    ),
    fn(
        "common_items(a, b)", "returns the items of list a that are also in list b.",
        "[x for x in a if x in b]",
        [([1, 2, 3], [2, 3, 4]), ([1], [2]), ([], [1]), ([9, 3, 7], [7, 9]), ([1, 2], []), ([7, 8, 9], [9])],
    ),
    fn(
        "sort_by_length(words)", "returns the words sorted by their length, shortest first.",
        "sorted(words, key=len)",
        [["cat", "horse", "ox"], ["a"], ["aaa", "bb", "c"], ["four", "a", "three"], [], ["zz", "y", "xxxx"]],
    ),
    fn(
        "min_and_max(numbers)", "returns a list with the smallest and the largest number.",
        "[min(numbers), max(numbers)]", LISTS,
    ),
    fn(
        "row_sums(matrix)", "returns a list with the sum of each row of a matrix.",
        "[sum(row) for row in matrix]",
        [[[1, 2], [3, 4]], [[5]], [[0, 0], [1, 1], [2, 2]], [[1, 2, 3]], [[-1, 1], [10, 5]]],
    ),
    fn(
        "contains_word(words, word)", "returns True if the word is in the list of words.",
        "word in words",
        [
            (["a", "b"], "a"), (["a", "b"], "c"), ([], "x"), (["cat", "dog"], "dog"), (["cat"], "ca"),
            (["x", "y", "z"], "z"),
        ],
    ),
    fn("list_length(items)", "returns the number of items in a list.", "len(items)", [*LISTS, []]),
    fn("list_min(numbers)", "returns the smallest number in a list.", "min(numbers)", LISTS),
    fn("first_item(items)", "returns the first item of a list.", "items[0]", LISTS),
    fn("last_item(items)", "returns the last item of a list.", "items[-1]", LISTS),
    fn(
        "sort_numbers(numbers)", "returns the list of numbers sorted in ascending order.",
        "sorted(numbers)", [*LISTS, []],
    ),
    fn(
        "double_all(numbers)", "returns a list with each number multiplied by two.",
        "[n * 2 for n in numbers]", [*LISTS, []],
    ),
    fn(
        "add_one_to_all(numbers)", "returns a list in which every number is increased by one.",
        "[n + 1 for n in numbers]", [*LISTS, []],
    ),
    fn(
        "scale(numbers, factor)", "multiplies every number in the list by factor and returns the new list.",
        "[n * factor for n in numbers]",
        [([1, 2], 3), ([], 5), ([5], 0), ([1, -1], -2), ([4, 4, 2], 1), ([10, 20, 30], 2)],
    ),
    fn(
        "count_odd(numbers)", "returns how many odd numbers there are in a list.",
        "sum(1 for n in numbers if n % 2 != 0)", [*LISTS, []],
    ),
    fn(
        "item_at(items, i)", "returns the item at position i of the list.",
        "items[i]", [([1, 2, 3], 0), ([1, 2, 3], 2), ([5], 0), ([7, 8], 1), (["a", "b", "c"], 1)],
    ),
    fn(
        "sum_of_even(numbers)", "returns the sum of the even numbers in a list.",
        "sum(n for n in numbers if n % 2 == 0)", [*LISTS, []],
    ),
    fn(
        "sum_positive(numbers)", "adds up only the positive numbers of the list.",
        "sum(n for n in numbers if n > 0)", [*LISTS, []],
    ),
    fn("unique_count(items)", "returns the number of distinct items in a list.", "len(set(items))", [*LISTS, []]),
    fn("sort_words(words)", "returns the words in alphabetical order.", "sorted(words)", [*WORD_LISTS, []]),
    fn(
        "glue(words)", "joins all strings of a list into one string without any separator.",
        "''.join(words)", [*WORD_LISTS, []],
    ),
    fn(
        "comma_separated(words)", "returns one string with the words separated by a comma and a space.",
        "', '.join(words)", [*WORD_LISTS, []],
    ),
    fn(
        "starts_with_letter(words, letter)", "returns the words that start with the given letter.",
        "[w for w in words if w[0] == letter]",
        [(["cat", "dog", "cow"], "c"), ([], "a"), (["x"], "y"), (["apple", "ant", "bee"], "a"), (["Zed", "zoo"], "z")],
    ),
    fn(
        "count_positive(numbers)", "returns the number of positive numbers in the list.",
        "sum(1 for n in numbers if n > 0)", [*LISTS, []],
    ),
    fn("sum_doubled(numbers)", "returns two times the sum of the list.", "2 * sum(numbers)", [*LISTS, []]),
    fn("cubes(numbers)", "returns the list of the cubes of all numbers.", "[n ** 3 for n in numbers]", [*LISTS, []]),
    fn(
        "reverse_each(words)", "returns a list in which every word is reversed.",
        "[w[::-1] for w in words]", [*WORD_LISTS, []],
    ),
    fn(
        "lower_all(words)", "converts all words of the list to lower case.",
        "[w.lower() for w in words]", [["A", "b"], ["Hello"], [], ["XYZ", "abc", "Def"], ["Bob", "ANN"]],
    ),
    fn(
        "add_suffix(words, suffix)", "returns a list with suffix added to each word.",
        "[w + suffix for w in words]",
        [(["a", "b"], "s"), ([], "x"), (["cat"], "!"), (["one", "two"], ""), (["go", "do"], "ing")],
    ),
    fn(
        "words_with_a(words)", "returns the words that contain the letter a.",
        "[w for w in words if 'a' in w]", [*WORD_LISTS, []],
    ),
    fn(
        "average_length(words)", "returns the average length of the words in the list.",
        "sum(len(w) for w in words) / len(words)",
        [["ab", "abcd"], ["a"], ["red", "ten", "six"], ["x", "yz"], ["four", "five", "a", "abc"]],
    ),
    fn(
        "first_column(matrix)", "returns a list with the first number of each row of the matrix.",
        "[row[0] for row in matrix]",
        [[[1, 2], [3, 4]], [[5]], [[0, 0], [1, 1], [2, 2]], [[1, 2, 3]], [[-1, 1], [10, 5]]],
    ),
    fn(
        "is_long_list(items)", "returns True if the list has more than 3 items.",
        "len(items) > 3", [[1, 2, 3], [], [1, 2, 3, 4], [5], [1, 2, 3, 4, 5], ["a"]],
    ),
    fn(
        "first_equals_last(items)", "returns True if the first and the last item of the list are equal.",
        "items[0] == items[-1]", [[1, 2, 1], [1, 2], [5], [3, 3], [7, 8, 9], ["a", "b", "a"]],
    ),
    fn(
        "even_squares(numbers)", "returns a list of the squares of the even numbers.",
        "[n ** 2 for n in numbers if n % 2 == 0]", [*LISTS, []],
    ),
    fn(
        "sort_by_abs(numbers)", "returns the numbers sorted by their absolute value.",
        "sorted(numbers, key=abs)", [[3, -1, 2], [-5], [], [-9, 8, -7], [0, -2, 1], [10, -20, 15]],
    ),
    fn(
        "has_zero(numbers)", "returns True if the list contains the number 0.",
        "0 in numbers", [[0], [1, 2], [0, 1, 0], [], [10, 100], [5, 0]],
    ),
    fn(
        "is_descending(numbers)", "returns True if the numbers are sorted from largest to smallest.",
        "numbers == sorted(numbers, reverse=True)", [[3, 2, 1], [1, 2], [5, 5], [9, 1, 4], [8, 7, 7], [2, 3, 1]],
    ),
    fn(
        "odd_indexed(items)", "returns the items at the positions 1, 3, 5 and so on.",
        "items[1::2]", [[1, 2, 3], [1, 2], [4, 5, 6, 7], [], [9], ["a", "b", "c"]],
    ),
    fn(
        "scaled_total(numbers, factor)", "returns the sum of all numbers multiplied by factor.",
        "sum(numbers) * factor", [([1, 2], 3), ([], 5), ([5], 0), ([1, -1, 4], -2), ([4, 4, 2], 1), ([10, 20, 30], 2)],
    ),
]
