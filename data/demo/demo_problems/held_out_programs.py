"""Held-out problems: programs that read standard input."""

# fmt: off

from demo_problems.model import Problem, program

PROBLEMS: list[Problem] = [
    program(
        "io_double", "reads one integer and prints it multiplied by two.",
        "print(int(input()) * 2)", ["1", "0", "-3", "15", "100", "7"],
    ),
    program(
        "io_upper", "reads a word and prints it in upper case.",
        "print(input().upper())", ["hello", "a", "Python", "ABC", "zEbRa", "x1"],
    ),
    program(
        "io_hello", "reads a name and prints Hello, followed by a space and the name.",
        "print('Hello,', input())", ["Ann", "Bob", "Mary Jane", "X", "world"],
    ),
    program(
        "io_stars", "reads an integer n and prints a line of n stars.",
        "print('*' * int(input()))", ["1", "2", "3", "5", "10", "4"],
    ),
    program(
        "io_area", "reads the width and the height of a rectangle from two lines and prints its area.",
        "w = int(input())\nh = int(input())\nprint(w * h)", ["1\n2", "3\n3", "10\n5", "7\n1", "100\n20"],
    ),
    program(
        "io_sorted_words", "reads a line of words and prints them in alphabetical order, separated by spaces.",
        "print(*sorted(input().split()))", ["b a", "one two three", "x", "dog cat bird ant", "p p o"],
    ),
]
