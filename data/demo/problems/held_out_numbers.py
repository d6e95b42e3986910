"""Held-out problems: arithmetic on a few numbers."""

# fmt: off

from data.demo.problems.model import Problem, fn
from data.demo.problems.pools import INTS, NATS, PAIRS, POSITIVE_PAIRS, TRIPLES

PROBLEMS: list[Problem] = [
    fn(
        "last_digit(n)", "returns the last digit of the non-negative integer n.",
        "n % 10", [0, 5, 10, 19, 123, 4567, 98, 301],
    ),
    fn(
        "digit_sum(n)", "returns the sum of the digits of the non-negative integer n.",
        "sum(int(d) for d in str(n))", [0, 5, 10, 19, 123, 4567, 98, 301],
    ),
    fn(
        "factorial(n)", "returns the factorial of n. The factorial of 0 is 1.",
        "result = 1\nfor i in range(2, n + 1):\n    result *= i\nreturn result", [0, 1, 2, 3, 4, 5, 7, 10],
    ),
    fn(
        "sum_of_squares(n)", "returns the sum of the squares of the numbers from 1 to n.",
        "sum(i * i for i in range(1, n + 1))", NATS,
    ),
    fn("absolute_difference(a, b)", "returns the absolute difference between a and b.", "abs(a - b)", PAIRS),
    fn("average(a, b)", "returns the average of two numbers.", "(a + b) / 2", PAIRS),
    fn(
        "reverse_number(n)", "returns the integer made by reversing the digits of the positive integer n.",
        "int(str(n)[::-1])", [1, 12, 120, 345, 1001, 99, 5020, 7],
    ),
    fn(
        "change(paid, cost)", "returns how much money is left after paying for something.",
        "paid - cost", POSITIVE_PAIRS,
    ),
    fn("hypotenuse_squared(a, b)", "returns the square of a plus the square of b.", "a ** 2 + b ** 2", PAIRS),
    fn("absolute(n)", "returns the absolute value of n.", "abs(n)", INTS),
    fn("remainder(a, b)", "returns the remainder when a is divided by b.", "a % b", POSITIVE_PAIRS),
    fn(
        "average_of_three(a, b, c)", "returns the average of three numbers.",
        "(a + b + c) / 3", [(1, 2, 3), (3, 3, 3), (0, 0, 3), (4, 5, 9), (-3, 0, 6), (10, 20, 30)],
    ),
    fn(
        "last_two_digits(n)", "returns the remainder of n when divided by 100.",
        "n % 100", [0, 5, 100, 119, 12345, 99, 200, 3007],
    ),
    fn(
        "digits(n)", "returns the list of the digits of the positive integer n.",
        "[int(d) for d in str(n)]", [5, 10, 19, 123, 4567, 98],
    ),
    fn("evens_up_to(n)", "returns the list of even numbers from 2 up to n.", "list(range(2, n + 1, 2))", NATS),
    fn("numbers_up_to(n)", "returns the list of the numbers from 1 to n.", "list(range(1, n + 1))", NATS),
    fn(
        "divisors(n)", "returns the list of all positive divisors of n.",
        "[i for i in range(1, n + 1) if n % i == 0]", NATS,
    ),
    fn(
        "sum_of_extremes(a, b, c)", "returns the sum of the largest and the smallest of three numbers.",
        "max(a, b, c) + min(a, b, c)", TRIPLES,
    ),
    fn(
        "sum_multiples(n)", "returns the sum of all numbers from 1 to n that are divisible by 3.",
        "sum(i for i in range(1, n + 1) if i % 3 == 0)", NATS,
    ),
    fn("count_evens_up_to(n)", "returns how many numbers from 1 to n are even.", "n // 2", NATS),
    fn(
        "average_of_four(a, b, c, d)", "returns the average of the four numbers.",
        "(a + b + c + d) / 4",
        [(1, 2, 3, 4), (4, 4, 4, 4), (0, 9, -1, 2), (10, 20, 30, 40), (-1, -2, -3, -4), (2, 2, 8, 1)],
    ),
    fn("subtract(a, b)", "returns the result of a minus b.", "a - b", PAIRS),
    fn(
        "is_three_digit(n)", "returns True if n has exactly three digits.",
        "100 <= n <= 999", [99, 100, 555, 999, 1000, 7],
    ),
    fn("tens(n)", "returns n divided by ten as an integer.", "n // 10", [0, 5, 10, 19, 123, 99]),
    fn(
        "square_sum_of_three(a, b, c)", "returns the sum of the squares of a, b and c.",
        "a ** 2 + b ** 2 + c ** 2", TRIPLES,
    ),
    fn("inverse(n)", "returns 1 divided by n.", "1 / n", [1, 2, 4, -2, 8, -1]),
]
