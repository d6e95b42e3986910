"""Held-out problems: strings."""

# fmt: off

from data.demo.problems.model import Problem, fn
from data.demo.problems.pools import SENTENCES, WORDS

PROBLEMS: list[Problem] = [
    fn(
        "count_upper(s)", "returns the number of upper case letters in s.",
        "sum(1 for c in s if c.isupper())", ["Hello", "abc", "ABC", "", "aBcD", "Python Is", "X1Y2", "ABBA"],
    ),
    fn(
        "is_anagram(a, b)", "returns True if the two words are anagrams of each other.",
        "sorted(a) == sorted(b)",
        [("listen", "silent"), ("abc", "cab"), ("abc", "abd"), ("a", "aa"), ("", ""), ("moon", "mono"), ("aab", "abb")],
    ),
    fn(
        "middle_char(s)", "returns the middle character of s. The length of s is odd.",
        "s[len(s) // 2]", ["abc", "x", "hello", "level", "abcdefg", "zyx"],
    ),
    fn(
        "word_lengths(s)", "returns a list with the length of each word in the sentence s.",
        "[len(w) for w in s.split()]", SENTENCES,
    ),
    fn("to_upper(s)", "converts the string s to upper case.", "s.upper()", WORDS),
    fn("to_lower(s)", "converts the string s to lower case.", "s.lower()", WORDS),
    fn(
        "join_with_space(a, b)", "joins two strings with a space between them.",
        "a + ' ' + b", [("ab", "c"), ("x", "y"), ("Ada", "King"), ("1", "2"), ("foo", "bar"), ("hello", "world")],
    ),
    fn(
        "strip_spaces(s)", "removes the spaces at the beginning and at the end of s.",
        "s.strip()", [" a ", "hello", "  x y  ", "b ", " c", ""],
    ),
    fn(
        "count_lower(s)", "returns the number of lower case letters in s.",
        "sum(1 for c in s if c.islower())", ["Hello", "abc", "ABC", "", "aBcD", "Python Is", "X1y2"],
    ),
    fn(
        "sum_digits_text(s)", "returns the sum of the digits in a string that consists of digits.",
        "sum(int(c) for c in s)", ["1", "12", "999", "1203", "55", "0"],
    ),
    fn(
        "longest_length(s)", "returns the length of the longest word in the sentence s.",
        "max(len(w) for w in s.split())", SENTENCES,
    ),
    fn(
        "index_of_char(s, c)", "returns the index of the character c in s.",
        "s.index(c)", [("hello", "h"), ("hello", "o"), ("abc", "b"), ("zebra", "r"), ("banana", "n")],
    ),
    fn(
        "csv_numbers(s)", "converts a string such as '1,2,3' to a list of integers.",
        "[int(x) for x in s.split(',')]", ["1,2,3", "5", "0,0", "-1,7", "10,20,30"],
    ),
    fn("reversed_upper(s)", "returns the string s reversed and in upper case.", "s[::-1].upper()", WORDS),
    fn(
        "same_word(a, b)", "returns True if the strings a and b are equal.",
        "a == b", [("a", "a"), ("a", "b"), ("cat", "Cat"), ("dog", "dog"), ("", ""), ("x", "xx")],
    ),
    fn("letters_sorted_unique(s)", "returns a sorted list of the different characters in s.", "sorted(set(s))", WORDS),
]
