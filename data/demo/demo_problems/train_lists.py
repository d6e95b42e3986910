"""Training problems: lists."""

# fmt: off

from demo_problems.model import Problem, fn
from demo_problems.pools import LISTS, PAIRS, WLISTS

PROBLEMS: list[Problem] = [
    fn("sum_list(numbers)", "returns the sum of all numbers in the list.", "sum(numbers)", LISTS + [[]]),
    fn("list_max(numbers)", "returns the largest number in a list.", "max(numbers)", LISTS),
    fn(
        "value_range(numbers)", "returns the difference between the largest and the smallest number of a list.",
        "max(numbers) - min(numbers)", LISTS,
    ),
    fn(
        "mean(numbers)", "returns the average of a list of numbers.",
        "sum(numbers) / len(numbers)", [[1, 2], [4], [2, 4, 6], [1, 2, 3, 4], [10, 20, 30, 40], [-2, 2], [5, 5, 6, 6]],
    ),
    fn(
        "keep_even(numbers)", "returns a list with only the even numbers of the given list.",
        "[n for n in numbers if n % 2 == 0]", LISTS + [[]],
    ),
    fn(
        "count_even(numbers)", "returns how many numbers of the list are even.",
        "sum(1 for n in numbers if n % 2 == 0)", LISTS + [[]],
    ),
    fn("reverse_list(items)", "returns the items of a list in reverse order.", "items[::-1]", LISTS + [[]]),
    fn(
        "second_largest(numbers)", "returns the second largest number of a list of distinct numbers.",
        "sorted(numbers)[-2]", [[1, 2], [3, 1, 2], [10, 5, 8, 7], [-1, -5, -2], [100, 99, 1], [4, 9, 2, 7, 5]],
    ),
    fn(
        "product(numbers)", "returns the product of all numbers in the list.",
        "result = 1\nfor n in numbers:\n    result *= n\nreturn result",
        [[1, 2, 3], [5], [], [0, 4], [-2, 3], [2, 2, 2, 2], [10, 10]],
    ),
    fn(
        "running_total(numbers)", "returns the list of cumulative sums of the numbers.",
        "result = []\ntotal = 0\nfor n in numbers:\n    total += n\n    result.append(total)\nreturn result",
        LISTS + [[]],
    ),
    fn(
        "flatten(rows)", "turns a list of lists into one flat list.",
        "[x for row in rows for x in row]", [[[1, 2], [3]], [[], [1]], [[5]], [], [[1], [2], [3]], [[4, 4], [4, 4]]],
    ),
    fn(
        "dot_product(a, b)", "returns the dot product of two lists of the same length.",
        "sum(x * y for x, y in zip(a, b))",
        [([1, 2], [3, 4]), ([], []), ([5], [-5]), ([1, 1, 1], [2, 3, 4]), ([0, 10], [10, 0])],
    ),
    fn(
        "all_positive(numbers)", "returns True if every number in the list is greater than zero.",
        "all(n > 0 for n in numbers)", [[1, 2], [0], [-1, 5], [3], [7, 8, 9], [5, 0, 5], [2, 3, -4]],
    ),
    fn(
        "rotate_left(items)", "returns a list in which the first item has moved to the end.",
        "items[1:] + items[:1]", [[1, 2, 3], [5], [1, 2], [4, 4, 1], [9, 8, 7, 6], ["a", "b", "c"]],
    ),
    fn(
        "long_words(words, n)", "returns the words that have more than n letters.",
        "[w for w in words if len(w) > n]",
        [(["cat", "horse"], 3), (["a"], 1), ([], 2), (["red", "green", "blue"], 3), (["abc", "ab", "a"], 0)],
    ),
    fn(
        "sort_by_length(words)", "returns the words sorted by their length, shortest first.",
        "sorted(words, key=len)",
        [["cat", "horse", "ox"], ["a"], ["aaa", "bb", "c"], ["four", "a", "three"], [], ["zz", "y", "xxxx"]],
    ),
    fn(
        "count_negative(numbers)", "counts the negative numbers in a list.",
        "len([n for n in numbers if n < 0])", LISTS + [[0, -1]],
    ),
    fn(
        "to_strings(numbers)", "converts a list of integers to a list of strings.",
        "[str(n) for n in numbers]", LISTS + [[]],
    ),
    fn(
        "min_and_max(numbers)", "returns a list with the smallest and the largest number.",
        "[min(numbers), max(numbers)]", LISTS,
    ),
    fn(
        "swap_first_last(items)", "returns the list with its first and last item exchanged.",
        "items[-1:] + items[1:-1] + items[:1]", [[1, 2, 3], [1, 2], [4, 5, 6, 7], [0, 9, 9, 1], ["a", "b", "c"]],
    ),
    fn(
        "first_multiples(n, count)", "returns a list with the first count multiples of n, starting with n.",
        "[n * i for i in range(1, count + 1)]", [(3, 4), (5, 1), (2, 5), (10, 3), (7, 0), (1, 6)],
    ),
    fn(
        "every_second(items)", "returns every second item of a list, starting with the first.",
        "items[::2]", [[1, 2, 3], [1, 2], [4, 5, 6, 7], [], [9], [1, 2, 3, 4, 5]],
    ),
    fn(
        "contains_word(words, word)", "returns True if the word is in the list of words.",
        "word in words",
        [
            (["a", "b"], "a"), (["a", "b"], "c"), ([], "x"), (["cat", "dog"], "dog"), (["cat"], "ca"),
            (["x", "y", "z"], "z"),
        ],
    ),
    fn(
        "total_length(words)", "returns the total number of characters in a list of words.",
        "sum(len(w) for w in words)", WLISTS + [[]],
    ),
    fn("list_length(items)", "returns the number of items in a list.", "len(items)", LISTS + [[]]),
    fn("first_item(items)", "returns the first item of a list.", "items[0]", LISTS),
    fn("last_item(items)", "returns the last item of a list.", "items[-1]", LISTS),
    fn(
        "sort_numbers(numbers)", "returns the list of numbers sorted in ascending order.",
        "sorted(numbers)", LISTS + [[]],
    ),
    fn(
        "add_one_to_all(numbers)", "returns a list in which every number is increased by one.",
        "[n + 1 for n in numbers]", LISTS + [[]],
    ),
    fn(
        "keep_positive(numbers)", "returns a list of the positive numbers only.",
        "[n for n in numbers if n > 0]", LISTS + [[]],
    ),
    fn(
        "count_odd(numbers)", "returns how many odd numbers there are in a list.",
        "sum(1 for n in numbers if n % 2 != 0)", LISTS + [[]],
    ),
    fn(
        "count_value(items, value)", "returns how many times value occurs in the list.",
        "items.count(value)",
        [([1, 2, 1], 1), ([], 3), ([5], 5), ([4, 4, 4], 4), ([1, 2, 3], 9), (["a", "b", "a"], "a")],
    ),
    fn(
        "is_in_list(items, value)", "returns True if value is in the list items.",
        "value in items", [([1, 2, 1], 1), ([], 3), ([5], 5), ([4, 4, 4], 7), ([1, 2, 3], 3), (["a", "b"], "c")],
    ),
    fn(
        "append_item(items, value)", "returns a list with value added at the end.",
        "items + [value]", [([1, 2], 3), ([], 1), (["a"], "b"), ([5, 5], 5), ([0], -1)],
    ),
    fn(
        "join_lists(a, b)", "returns one list with the items of a followed by the items of b.",
        "a + b", [([1], [2]), ([], [1]), ([1, 2], []), ([3, 4], [5, 6]), (["a"], ["b", "c"])],
    ),
    fn("remove_first(items)", "returns the list without its first item.", "items[1:]", LISTS),
    fn("remove_last(items)", "returns all items of the list except the last one.", "items[:-1]", LISTS),
    fn(
        "last_n(items, n)", "returns the last n items of a list. n is at least 1.",
        "items[-n:]", [([1, 2, 3], 2), ([5], 1), ([1, 2], 1), ([4, 5, 6, 7], 3), ([9, 8, 7], 3)],
    ),
    fn(
        "item_at(items, i)", "returns the item at position i of the list.",
        "items[i]", [([1, 2, 3], 0), ([1, 2, 3], 2), ([5], 0), ([7, 8], 1), (["a", "b", "c"], 1)],
    ),
    fn(
        "index_of(items, value)", "returns the position of value in the list.",
        "items.index(value)", [([1, 2, 3], 1), ([1, 2, 3], 3), ([5], 5), ([7, 8], 8), (["a", "b", "c"], "b")],
    ),
    fn(
        "first_plus_last(numbers)", "returns the sum of the first and the last number of a list.",
        "numbers[0] + numbers[-1]", LISTS,
    ),
    fn(
        "sum_of_squares_list(numbers)", "returns the sum of the squares of the numbers in a list.",
        "sum(n ** 2 for n in numbers)", LISTS + [[]],
    ),
    fn(
        "sum_positive(numbers)", "adds up only the positive numbers of the list.",
        "sum(n for n in numbers if n > 0)", LISTS + [[]],
    ),
    fn(
        "absolute_values(numbers)", "returns a list with the absolute value of each number.",
        "[abs(n) for n in numbers]", LISTS + [[]],
    ),
    fn("unique_count(items)", "returns the number of distinct items in a list.", "len(set(items))", LISTS + [[]]),
    fn(
        "sorted_unique(items)", "returns the distinct numbers of the list in ascending order.",
        "sorted(set(items))", [[1, 1, 2], [3, 2, 3, 1], [], [5], [4, 4, 4], [9, 8, 9, 8, 7]],
    ),
    fn("lengths(words)", "returns a list with the length of each word.", "[len(w) for w in words]", WLISTS + [[]]),
    fn(
        "first_letters(words)", "returns a list with the first letter of each word.",
        "[w[0] for w in words]", WLISTS + [[]],
    ),
    fn("sort_words(words)", "returns the words in alphabetical order.", "sorted(words)", WLISTS + [[]]),
    fn(
        "words_to_sentence(words)", "joins a list of words into one string with spaces between them.",
        "' '.join(words)", WLISTS + [[]],
    ),
    fn(
        "glue(words)", "joins all strings of a list into one string without any separator.",
        "''.join(words)", WLISTS + [[]],
    ),
    fn(
        "comma_separated(words)", "returns one string with the words separated by a comma and a space.",
        "', '.join(words)", WLISTS + [[]],
    ),
    fn(
        "parse_numbers(texts)", "converts a list of strings to a list of integers.",
        "[int(t) for t in texts]", [["1", "2"], ["10"], [], ["0", "-5", "7"], ["42", "42"]],
    ),
    fn(
        "below(numbers, limit)", "returns the numbers of the list that are smaller than limit.",
        "[n for n in numbers if n < limit]",
        [([1, 2, 3], 3), ([5], 5), ([], 0), ([9, 8, 7, 1], 8), ([-1, -2], 0), ([4, 4, 5], 1)],
    ),
    fn(
        "remove_value(items, value)", "returns the list without any item equal to value.",
        "[x for x in items if x != value]",
        [([1, 2, 1], 1), ([], 3), ([5], 5), ([4, 4, 4], 7), ([1, 2, 3], 3), (["a", "b"], "a")],
    ),
    fn(
        "starts_with_letter(words, letter)", "returns the words that start with the given letter.",
        "[w for w in words if w[0] == letter]",
        [(["cat", "dog", "cow"], "c"), ([], "a"), (["x"], "y"), (["apple", "ant", "bee"], "a"), (["Zed", "zoo"], "z")],
    ),
    fn(
        "pairs(a, b)", "returns a list of two-item lists that pair the items of a with the items of b.",
        "[[x, y] for x, y in zip(a, b)]",
        [([1, 2], [3, 4]), ([], []), ([5], ["x"]), ([1, 1], [2, 2]), (["a", "b"], ["c", "d"])],
    ),
    fn("sum_and_product(a, b)", "returns a list with the sum and the product of a and b.", "[a + b, a * b]", PAIRS),
    fn(
        "middle_item(items)", "returns the middle item of a list with an odd number of items.",
        "items[len(items) // 2]", [[1, 2, 3], [5], [4, 5, 6, 7, 8], [9, 1, 9], ["a", "b", "c"]],
    ),
    fn(
        "product_pairs(a, b)", "returns a list with the products of the items of a and b at the same positions.",
        "[x * y for x, y in zip(a, b)]",
        [([1, 2], [3, 4]), ([], []), ([5], [-5]), ([1, 1, 1], [2, 3, 4]), ([0, 10], [10, 7])],
    ),
    fn(
        "matrix_total(matrix)", "returns the sum of all numbers in a matrix.",
        "sum(sum(row) for row in matrix)",
        [[[1, 2], [3, 4]], [[5]], [[0, 0], [1, 1], [2, 2]], [[1, 2, 3]], [[-1, 1], [10, 5]]],
    ),
]
