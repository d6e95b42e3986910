"""Training problems: programs that read standard input."""

# fmt: off

from data.demo.problems.model import Problem, program
from data.demo.problems.pools import FLOAT_TEXTS, INT_TEXTS, NAME_TEXTS, NAT_TEXTS, WORDS

PROBLEMS: list[Problem] = [
    program(
        "print_hello", "prints 'Hello ' + input().",
        "print('Hello ' + input())", ["hello", "a", "Python", "ABC", "zEbRa", "level"],
    ),
    program(
        "print_length", "prints len(input()).",
        "print(len(input()))", ["hello", "a", "Python", "ABC", "zEbRa", "level"],
    ),
    program(
        "print_name", "prints 'My name is ' + input().",
        "print('My name is ' + input())", ["hello", "a", "Python", "ABC", "zEbRa", "level"],
    ),
    program(
        "print_welcome", "prints 'Welcome to ' + input().",
        "print('Welcome to ' + input())", ["Rome", "Oslo", "New York", "my house", "X"],
    ),
    program(
        "square_border", "reads the side of a square with side = int(input()) and prints side * 4.",
        "side = int(input())\nprint(side * 4)", NAT_TEXTS,
    ),
    program(
        "next_year", "reads a year using year = int(input()) and prints year + 1.",
        "year = int(input())\nprint(year + 1)", ["1999", "2024", "0", "1", "2050"],
    ),
    program(
        "eggs_in_boxes",
        "reads the number of boxes with boxes = int(input()). Each box holds 6 eggs. It prints boxes * 6.",
        "boxes = int(input())\nprint(boxes * 6)", NAT_TEXTS,
    ),
    program(
        "line_value", "computes y = 2 * x + 3 for x = int(input()) and prints y.",
        "x = int(input())\nprint(2 * x + 3)", INT_TEXTS,
    ),
    program(
        "float_twice", "reads r = float(input()) and prints r * 2.",
        "r = float(input())\nprint(r * 2)", ["1.5", "0", "2.25", "-4", "10.5"],
    ),
    program(
        "bye_user", "reads a user name, user = input(), and prints 'Bye ' + user.",
        "user = input()\nprint('Bye ' + user)", ["Ann", "Bob", "Mary Jane", "X", "world"],
    ),
    program(
        "city", "reads a city name with city = input() and prints 'I live in ' + city.",
        "city = input()\nprint('I live in ' + city)", ["Rome", "Oslo", "New York", "Paris", "X"],
    ),
    program(
        "two_numbers_sum", "reads x = int(input()) and y = int(input()) and prints x + y.",
        "x = int(input())\ny = int(input())\nprint(x + y)", ["1\n2", "0\n0", "-4\n9", "10\n10", "7\n-2"],
    ),
    program(
        "float_half", "reads w = float(input()) and prints w / 2.",
        "w = float(input())\nprint(w / 2)", FLOAT_TEXTS,
    ),
    program(
        "float_plus", "reads a float x = float(input()) and prints x + 1.",
        "x = float(input())\nprint(x + 1)", FLOAT_TEXTS,
    ),
    program("greet_good", "prints 'Good morning ' + input().", "print('Good morning ' + input())", NAME_TEXTS),
    program(
        "print_like", "prints 'I like ' + input().",
        "print('I like ' + input())", ["tea", "cats", "my dog", "x", "apples"],
    ),
    program("score_text", "prints 'Score: ' + input().", "print('Score: ' + input())", ["1", "20", "0", "99", "7"]),
    program("thanks", "prints 'Thank you, ' + input().", "print('Thank you, ' + input())", NAME_TEXTS),
    program("length_plus", "prints len(input()) + 1.", "print(len(input()) + 1)", WORDS),
    program("length_twice", "prints 2 * len(input()).", "print(2 * len(input()))", WORDS),
    program("int_times_ten", "prints int(input()) * 10.", "print(int(input()) * 10)", INT_TEXTS),
    program(
        "len_list_print", "reads nums = list(map(int, input().split())) and prints len(nums).",
        "nums = list(map(int, input().split()))\nprint(len(nums))", ["1 2 3", "5", "0 0", "-1 1 4 8 9", "10 20 30 40"],
    ),
]
