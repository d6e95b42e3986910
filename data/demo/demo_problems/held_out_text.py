"""Held-out problems: strings."""

# fmt: off

from demo_problems.model import Problem, fn
from demo_problems.pools import SENTS, WORDS

PROBLEMS: list[Problem] = [
    fn("shout(s)", "returns s in upper case followed by an exclamation mark.", "s.upper() + '!'", WORDS),
    fn(
        "count_vowels(s)", "returns the number of vowels in the string s.",
        "sum(1 for c in s.lower() if c in 'aeiou')", WORDS,
    ),
    fn(
        "remove_vowels(s)", "returns s with all vowels removed.",
        "''.join(c for c in s if c not in 'aeiouAEIOU')", WORDS,
    ),
    fn(
        "double_chars(s)", "returns a string in which every character of s is repeated twice.",
        "''.join(c * 2 for c in s)", WORDS,
    ),
    fn(
        "same_ends(s)", "returns True if s starts and ends with the same character.",
        "s[0] == s[-1]", ["level", "hello", "a", "abca", "xyz", "noon", "Aa"],
    ),
    fn(
        "only_digits(s)", "returns a string with only the digits of s.",
        "''.join(c for c in s if c.isdigit())", ["a1b2", "123", "abc", "", "2024-01-05", "x9", "7 8 9"],
    ),
    fn(
        "is_numeric(s)", "returns True if the string s consists only of digits.",
        "s.isdigit()", ["123", "12a", "abc", "0", "9 9", "007", "-5"],
    ),
    fn(
        "starts_with(s, prefix)", "returns True if s begins with prefix.",
        "s.startswith(prefix)",
        [("hello", "he"), ("hello", "lo"), ("abc", ""), ("abc", "abc"), ("ab", "abc"), ("python", "py")],
    ),
    fn(
        "has_digit(s)", "returns True if s contains at least one digit.",
        "any(c.isdigit() for c in s)", ["abc", "a1", "9", "", "x y", "room 101"],
    ),
    fn(
        "capitalize(s)", "returns s with its first letter in upper case and the rest in lower case.",
        "s.capitalize()", ["hello", "a", "PYTHON", "level", "aBcD", "zebra"],
    ),
    fn(
        "strip_spaces(s)", "removes the spaces at the beginning and at the end of s.",
        "s.strip()", [" a ", "hello", "  x y  ", "b ", " c", ""],
    ),
    fn("last_word(s)", "returns the last word of the sentence s.", "s.split()[-1]", SENTS),
    fn(
        "combined_length(a, b)", "returns the total length of the two strings.",
        "len(a) + len(b)", [("ab", "cd"), ("a", "bc"), ("", ""), ("xyz", "abc"), ("one", "three"), ("x", "")],
    ),
    fn(
        "is_longer_than(s, n)", "returns True if the string s has more than n characters.",
        "len(s) > n", [("hello", 3), ("a", 1), ("", 0), ("abc", 2), ("abc", 5), ("python", 6)],
    ),
    fn(
        "is_vowel(c)", "returns True if the letter c is a vowel.",
        "c.lower() in 'aeiou'", ["a", "b", "E", "z", "o", "Y", "u", "i"],
    ),
    fn("from_code(n)", "returns the character with the ASCII code n.", "chr(n)", [97, 98, 65, 122, 48, 33]),
    fn(
        "text_to_number(s)", "converts a string of digits to an integer.",
        "int(s)", ["1", "0", "42", "007", "100", "-5"],
    ),
    fn(
        "first_half(s)", "returns the first half of s. The length of s is even.",
        "s[:len(s) // 2]", ["ab", "abcd", "python", "", "xxyy", "level8"],
    ),
    fn("palindrome_of(s)", "returns s followed by its reverse.", "s + s[::-1]", WORDS),
    fn(
        "username(email)", "returns the part of an email address before the @ sign.",
        "email.split('@')[0]", ["ann@x.org", "bob.b@mail.com", "a@b.c", "info@site.net", "me2@host.io"],
    ),
    fn(
        "extension(filename)", "returns the part of the file name after the last dot.",
        "filename.split('.')[-1]", ["a.txt", "photo.jpg", "x.tar.gz", "main.py", "b.c"],
    ),
]
