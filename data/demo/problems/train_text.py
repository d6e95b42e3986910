"""Training problems: strings."""

# fmt: off

from data.demo.problems.model import Problem, fn
from data.demo.problems.pools import SENTENCES, WORDS

PROBLEMS: list[Problem] = [
    fn("reverse_string(s)", "returns the string s reversed.", "s[::-1]", WORDS),
    fn("first_and_last(s)", "returns a string made of the first and the last character of s.", "s[0] + s[-1]", WORDS),
    fn(
        "is_palindrome(s)", "returns True if the string s reads the same forwards and backwards.",
        "s == s[::-1]", ["level", "hello", "a", "", "abba", "abca", "noon", "Python"],
    ),
    fn("remove_spaces(s)", "returns s without any spaces.", "s.replace(' ', '')", SENTENCES),
    fn(
        "greet(name)", "returns the string 'Hello, ' followed by name and an exclamation mark.",
        "'Hello, ' + name + '!'", ["Ann", "Bob", "", "Mary Jane", "X", "world"],
    ),
    fn(
        "repeat_word(word, times)", "returns the word repeated the given number of times.",
        "word * times", [("ab", 3), ("x", 0), ("hi", 1), ("no", 2), ("", 5), ("abc", 4)],
    ),
    fn(
        "sort_letters(s)", "returns a string with the letters of s in alphabetical order.",
        "''.join(sorted(s))", ["hello", "a", "zebra", "banana", "cab", "python", "aaa"],
    ),
    fn(
        "add_ing(verb)", "returns the verb with 'ing' added at the end.",
        "verb + 'ing'", ["walk", "go", "play", "", "sing", "read"],
    ),
    fn(
        "swap_case(s)", "returns s with lower case letters made upper case and upper case letters made lower case.",
        "s.swapcase()", WORDS,
    ),
    fn(
        "is_numeric(s)", "returns True if the string s consists only of digits.",
        "s.isdigit()", ["123", "12a", "abc", "0", "9 9", "007", "-5"],
    ),
    fn("string_length(s)", "returns the length of the string s.", "len(s)", [*WORDS, ""]),
    fn("first_char(s)", "returns the first character of s.", "s[0]", WORDS),
    fn("last_char(s)", "returns the last character of s.", "s[-1]", WORDS),
    fn("first_three(s)", "returns the first three characters of s.", "s[:3]", WORDS),
    fn("repeat_twice(s)", "returns the string s repeated two times.", "s * 2", WORDS),
    fn(
        "is_upper(s)", "returns True if all letters of s are upper case.",
        "s.isupper()", ["ABC", "abc", "AbC", "X", "HELLO", "HELLo"],
    ),
    fn(
        "is_lower(s)", "returns True if the string s is written in lower case only.",
        "s.islower()", ["ABC", "abc", "AbC", "x", "hello", "hellO"],
    ),
    fn(
        "remove_char(s, c)", "removes every occurrence of the character c from s.",
        "s.replace(c, '')", [("banana", "a"), ("hello", "l"), ("abc", "z"), ("", "a"), ("aaaa", "a"), ("A a", "a")],
    ),
    fn(
        "replace_char(s, old, new)", "replaces every occurrence of the character old in s by the character new.",
        "s.replace(old, new)",
        [("banana", "a", "o"), ("hello", "l", "r"), ("abc", "z", "y"), ("aaa", "a", "b"), ("x-y-z", "-", "+")],
    ),
    fn(
        "plural(word)", "returns the word with an s added at the end.",
        "word + 's'", ["cat", "dog", "house", "x", "tree", "car"],
    ),
    fn("palindrome_of(s)", "returns s followed by its reverse.", "s + s[::-1]", WORDS),
    fn(
        "first_n_chars(s, n)", "returns the first n characters of s.",
        "s[:n]", [("hello", 2), ("a", 1), ("abc", 0), ("python", 4), ("xy", 5), ("zebra", 3)],
    ),
    fn(
        "last_n_chars(s, n)", "returns the last n characters of the string s.",
        "s[-n:]", [("hello", 2), ("a", 1), ("python", 4), ("xy", 2), ("zebra", 3)],
    ),
    fn(
        "char_at(s, i)", "returns the character of s at index i.",
        "s[i]", [("hello", 2), ("a", 0), ("python", 4), ("xy", 1), ("zebra", 3)],
    ),
    fn(
        "is_alpha(s)", "returns True if s contains only letters.",
        "s.isalpha()", ["abc", "ab1", "", "Hello", "a b", "xyz!"],
    ),
    fn(
        "is_alphanumeric(s)", "returns True if s consists of letters and digits only.",
        "s.isalnum()", ["abc", "ab1", "a b", "Hello!", "42", "_x"],
    ),
    fn("length_squared(s)", "returns the square of the length of s.", "len(s) ** 2", WORDS),
    fn("hashtag(s)", "returns the string s with a # in front of it.", "'#' + s", WORDS),
    fn(
        "mirror_case(s)", "returns the upper case form of s followed by the lower case form of s.",
        "s.upper() + s.lower()", WORDS,
    ),
    fn("first_two(s)", "returns the first two characters of the string.", "s[:2]", WORDS),
    fn(
        "count_letter_e(s)", "returns the number of times that 'e' occurs in the string s.",
        "s.count('e')", ["hello", "bee", "xyz", "", "Eve", "seven trees"],
    ),
    fn(
        "concat_three(a, b, c)", "returns the concatenation of the strings a, b and c.",
        "a + b + c", [("a", "b", "c"), ("", "x", ""), ("foo", "bar", "baz"), ("1", "2", "3"), ("hi", " ", "you")],
    ),
    fn(
        "char_counts(s)", "returns a dictionary that maps each character of s to how often it occurs.",
        "{c: s.count(c) for c in s}", WORDS,
    ),
    fn("double_length(s)", "returns twice the length of s.", "2 * len(s)", WORDS),
    fn(
        "is_long_word(word)", "returns True if the word has more than 7 letters.",
        "len(word) > 7", ["elephant", "cat", "giraffe", "butterfly", "", "computer", "seven"],
    ),
]
