"""Held-out problems: programs that read standard input."""

# fmt: off

from data.demo.problems.model import Problem, program
from data.demo.problems.pools import SENTENCES, TWO_INT_TEXTS

PROBLEMS: list[Problem] = [
    program(
        "abs_print", "reads d = int(input()) and prints abs(d).",
        "d = int(input())\nprint(abs(d))", ["1", "0", "-3", "15", "-100", "7"],
    ),
    program(
        "sum_of_line", "prints the total sum(map(int, input().split())) of one line of integers.",
        "print(sum(map(int, input().split())))", ["1 2 3", "5", "0 0", "-1 1 4", "10 20 30 40"],
    ),
    program(
        "quarter", "reads total = int(input()) and prints total // 4.",
        "total = int(input())\nprint(total // 4)", ["0", "3", "4", "7", "100", "17"],
    ),
    program(
        "two_equal", "reads m = int(input()) and k = int(input()) and prints m == k.",
        "m = int(input())\nk = int(input())\nprint(m == k)", ["1\n2", "0\n0", "-4\n9", "10\n10", "7\n7"],
    ),
    program(
        "two_squares", "reads u = int(input()) and v = int(input()) and prints u * u + v * v.",
        "u = int(input())\nv = int(input())\nprint(u * u + v * v)", TWO_INT_TEXTS,
    ),
    program(
        "words_in_s", "reads s = input() and prints len(s.split()).",
        "s = input()\nprint(len(s.split()))", SENTENCES,
    ),
]
