"""Training problems: strings."""

# fmt: off

from demo_problems.model import Problem, fn
from demo_problems.pools import INTS, SENTS, WLISTS, WORDS

PROBLEMS: list[Problem] = [
    fn("reverse_string(s)", "returns the string s reversed.", "s[::-1]", WORDS),
    fn("first_and_last(s)", "returns a string made of the first and the last character of s.", "s[0] + s[-1]", WORDS),
    fn(
        "count_char(s, c)", "returns how many times the character c appears in s.",
        "s.count(c)",
        [("banana", "a"), ("hello", "l"), ("abc", "z"), ("", "a"), ("aaaa", "a"), ("A a", "a"), ("mississippi", "s")],
    ),
    fn(
        "is_palindrome(s)", "returns True if the string s reads the same forwards and backwards.",
        "s == s[::-1]", ["level", "hello", "a", "", "abba", "abca", "noon", "Python"],
    ),
    fn("remove_spaces(s)", "returns s without any spaces.", "s.replace(' ', '')", SENTS),
    fn("snake_case(s)", "replaces every space in s with an underscore.", "s.replace(' ', '_')", SENTS),
    fn("count_words(s)", "returns the number of words in the sentence s.", "len(s.split())", SENTS),
    fn("first_word(s)", "returns the first word of the sentence s.", "s.split()[0]", SENTS),
    fn(
        "longest_word(s)", "returns the longest word of a sentence. If there are several, return the first of them.",
        "max(s.split(), key=len)", SENTS,
    ),
    fn(
        "greet(name)", "returns the string 'Hello, ' followed by name and an exclamation mark.",
        "'Hello, ' + name + '!'", ["Ann", "Bob", "", "Mary Jane", "X", "world"],
    ),
    fn(
        "repeat_word(word, times)", "returns the word repeated the given number of times.",
        "word * times", [("ab", 3), ("x", 0), ("hi", 1), ("no", 2), ("", 5), ("abc", 4)],
    ),
    fn(
        "count_upper(s)", "returns the number of upper case letters in s.",
        "sum(1 for c in s if c.isupper())", ["Hello", "abc", "ABC", "", "aBcD", "Python Is", "X1Y2"],
    ),
    fn(
        "initials(name)", "returns the initials of a full name, such as 'AL' for 'Ada Lovelace'.",
        "''.join(w[0] for w in name.split())",
        ["Ada Lovelace", "Alan Turing", "Grace Brewster Hopper", "Linus", "Ken Lane Thompson", "Z Y"],
    ),
    fn(
        "is_anagram(a, b)", "returns True if the two words are anagrams of each other.",
        "sorted(a) == sorted(b)",
        [("listen", "silent"), ("abc", "cab"), ("abc", "abd"), ("a", "aa"), ("", ""), ("moon", "mono"), ("aab", "abb")],
    ),
    fn(
        "sort_letters(s)", "returns a string with the letters of s in alphabetical order.",
        "''.join(sorted(s))", ["hello", "a", "zebra", "banana", "cab", "python", "aaa"],
    ),
    fn(
        "middle_char(s)", "returns the middle character of s. The length of s is odd.",
        "s[len(s) // 2]", ["abc", "x", "hello", "level", "abcdefg", "zyx"],
    ),
    fn(
        "starts_with_capital(s)", "returns True if the first character of s is an upper case letter.",
        "s[0].isupper()", ["Hello", "hello", "A", "a", "zEBRA", "Python", "9a"],
    ),
    fn(
        "word_lengths(s)", "returns a list with the length of each word in the sentence s.",
        "[len(w) for w in s.split()]", SENTS,
    ),
    fn(
        "add_ing(verb)", "returns the verb with 'ing' added at the end.",
        "verb + 'ing'", ["walk", "go", "play", "", "sing", "read"],
    ),
    fn(
        "wrap_tag(text, tag)",
        "returns text between an opening and a closing HTML tag, so that wrap_tag('hi', 'b') is '<b>hi</b>'.",
        "f'<{tag}>{text}</{tag}>'", [("hi", "b"), ("x", "p"), ("", "i"), ("hello world", "h1"), ("code", "pre")],
    ),
    fn("without_first(s)", "returns s without its first character.", "s[1:]", WORDS),
    fn(
        "ends_with(s, suffix)", "returns True if the string s ends with suffix.",
        "s.endswith(suffix)",
        [
            ("hello", "lo"), ("hello", "he"), ("abc", ""), ("abc", "abc"), ("bc", "abc"), ("file.py", ".py"),
            ("file.txt", ".py"),
        ],
    ),
    fn("unique_letters(s)", "returns the number of different characters in s.", "len(set(s))", WORDS),
    fn(
        "swap_case(s)", "returns s with lower case letters made upper case and upper case letters made lower case.",
        "s.swapcase()", WORDS,
    ),
    fn("join_with_dash(words)", "joins a list of words with dashes between them.", "'-'.join(words)", WLISTS),
    fn(
        "comma_list(s)", "splits the string s at its commas and returns the list of parts.",
        "s.split(',')", ["a,b,c", "one", "x,y", "1,2,3,4", "red,green", "a,,b"],
    ),
    fn(
        "pad_number(n)", "returns the number n as a string padded with zeros on the left to a width of 5.",
        "str(n).zfill(5)", [1, 42, 123, 99999, 0, 1000],
    ),
    fn("to_upper(s)", "converts the string s to upper case.", "s.upper()", WORDS),
    fn("to_lower(s)", "converts the string s to lower case.", "s.lower()", WORDS),
    fn("string_length(s)", "returns the length of the string s.", "len(s)", WORDS + [""]),
    fn("first_char(s)", "returns the first character of s.", "s[0]", WORDS),
    fn("last_char(s)", "returns the last character of s.", "s[-1]", WORDS),
    fn("first_three(s)", "returns the first three characters of s.", "s[:3]", WORDS),
    fn("without_last(s)", "returns s without its last character.", "s[:-1]", WORDS),
    fn(
        "concat(a, b)", "joins two strings into one.",
        "a + b", [("ab", "c"), ("", "x"), ("a b", " c"), ("1", "2"), ("foo", "bar"), ("z", "")],
    ),
    fn(
        "join_with_space(a, b)", "joins two strings with a space between them.",
        "a + ' ' + b", [("ab", "c"), ("x", "y"), ("Ada", "King"), ("1", "2"), ("foo", "bar"), ("hello", "world")],
    ),
    fn(
        "full_name(first, last)", "returns the last name, a comma, a space and the first name.",
        "last + ', ' + first", [("Ada", "King"), ("Bob", "Ross"), ("X", "Y"), ("Mary", "Lee"), ("Jo", "Jo")],
    ),
    fn("add_period(s)", "returns s with a period at the end.", "s + '.'", WORDS),
    fn("quote(s)", "returns the string s surrounded by double quotes.", "'\"' + s + '\"'", WORDS),
    fn("brackets(s)", "puts the string s in square brackets.", "'[' + s + ']'", WORDS),
    fn("repeat_twice(s)", "returns the string s repeated two times.", "s * 2", WORDS),
    fn(
        "contains(s, sub)", "returns True if the string sub occurs in s.",
        "sub in s", [("hello", "ell"), ("hello", "x"), ("abc", ""), ("", "a"), ("banana", "nan"), ("Python", "py")],
    ),
    fn(
        "is_upper(s)", "returns True if all letters of s are upper case.",
        "s.isupper()", ["ABC", "abc", "AbC", "X", "HELLO", "HELLo"],
    ),
    fn(
        "is_lower(s)", "returns True if the string s is written in lower case only.",
        "s.islower()", ["ABC", "abc", "AbC", "x", "hello", "hellO"],
    ),
    fn(
        "title_case(s)", "returns the sentence s with the first letter of every word in upper case.",
        "s.title()", ["hello world", "a b", "python", "the quick fox", "one two three"],
    ),
    fn("split_words(s)", "splits the sentence s into a list of words.", "s.split()", SENTS),
    fn(
        "reverse_words(s)", "returns the sentence s with its words in reverse order.",
        "' '.join(s.split()[::-1])", SENTS,
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
    fn("count_spaces(s)", "returns the number of spaces in s.", "s.count(' ')", SENTS),
    fn("count_letter_a(s)", "returns how many times the letter a occurs in s.", "s.count('a')", WORDS),
    fn(
        "find_char(s, c)", "returns the index of the first occurrence of c in s, or -1 if there is none.",
        "s.find(c)", [("banana", "a"), ("hello", "l"), ("abc", "z"), ("", "a"), ("xyz", "z"), ("A a", "a")],
    ),
    fn("char_list(s)", "returns a list of the characters of the string s.", "list(s)", WORDS + [""]),
    fn(
        "same_length(a, b)", "returns True if the strings a and b have the same length.",
        "len(a) == len(b)", [("ab", "cd"), ("a", "bc"), ("", ""), ("xyz", "abc"), ("one", "three"), ("x", "")],
    ),
    fn(
        "equal_ignoring_case(a, b)", "returns True if the two strings are equal when upper and lower case are ignored.",
        "a.lower() == b.lower()", [("ab", "AB"), ("a", "b"), ("", ""), ("Xyz", "xYZ"), ("one", "on"), ("Hi", "hi")],
    ),
    fn("ascii_code(c)", "returns the ASCII code of the character c.", "ord(c)", ["a", "b", "A", "z", "0", " "]),
    fn("number_to_text(n)", "converts the integer n to a string.", "str(n)", INTS),
    fn(
        "plural(word)", "returns the word with an s added at the end.",
        "word + 's'", ["cat", "dog", "house", "x", "tree", "car"],
    ),
    fn("every_other_char(s)", "returns every second character of s, starting with the first one.", "s[::2]", WORDS),
    fn(
        "sum_text(a, b)", "takes two numbers given as strings and returns their sum as an integer.",
        "int(a) + int(b)", [("1", "2"), ("10", "5"), ("0", "0"), ("-3", "7"), ("99", "1")],
    ),
]
