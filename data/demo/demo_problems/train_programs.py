"""Training problems: programs that read standard input."""

# fmt: off

from demo_problems.model import Problem, program
from demo_problems.pools import SENTS

PROBLEMS: list[Problem] = [
    program(
        "io_sum2", "reads two integers from one line and prints their sum.",
        "a, b = map(int, input().split())\nprint(a + b)", ["1 2", "0 0", "-4 9", "10 10", "7 -2", "100 25"],
    ),
    program(
        "io_reverse", "reads a line of text and prints it reversed.",
        "print(input()[::-1])", ["hello", "a", "Open AI", "abc def", "level", "12345"],
    ),
    program(
        "io_count_words", "reads a sentence and prints the number of words in it.",
        "print(len(input().split()))", SENTS,
    ),
    program(
        "io_max3", "reads three integers from one line and prints the largest of them.",
        "print(max(map(int, input().split())))", ["1 2 3", "3 2 1", "5 -1 7", "4 4 4", "9 2 5", "-3 -2 -9"],
    ),
    program(
        "io_even_odd", "reads an integer and prints Even if it is even, otherwise Odd.",
        "print('Even' if int(input()) % 2 == 0 else 'Odd')", ["1", "2", "0", "-3", "100", "77"],
    ),
    program(
        "io_list_sum", "reads a line of integers separated by spaces and prints their sum.",
        "print(sum(map(int, input().split())))", ["1 2 3", "5", "0 0", "-1 1 4", "10 20 30 40", "7 7 7"],
    ),
    program(
        "io_sum_lines",
        "reads a number n and then n more lines with one integer each, and prints the sum of those integers.",
        "n = int(input())\nprint(sum(int(input()) for _ in range(n)))",
        ["3\n1\n2\n3", "1\n5", "2\n-1\n1", "4\n10\n20\n30\n40", "2\n0\n8"],
    ),
    program(
        "io_countdown", "reads a positive integer n and prints the numbers from n down to 1, one on each line.",
        "for i in range(int(input()), 0, -1):\n    print(i)", ["1", "2", "3", "5", "10"],
    ),
    program(
        "io_square", "reads an integer and prints its square.",
        "print(int(input()) ** 2)", ["1", "0", "-3", "15", "100", "7"],
    ),
    program(
        "io_length", "reads a line of text and prints how many characters it has.",
        "print(len(input()))", ["hello", "a", "Open AI", "abc def", "level", "12345678901"],
    ),
]
