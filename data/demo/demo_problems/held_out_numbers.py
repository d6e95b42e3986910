"""Held-out problems: arithmetic on a few numbers."""

# fmt: off

from demo_problems.model import Problem, fn
from demo_problems.pools import INTS, NATS, P3, PAIRS, PPAIRS

PROBLEMS: list[Problem] = [
    fn(
        "digit_sum(n)", "returns the sum of the digits of the non-negative integer n.",
        "sum(int(d) for d in str(n))", [0, 5, 10, 19, 123, 4567, 98, 301],
    ),
    fn(
        "factorial(n)", "returns the factorial of n. The factorial of 0 is 1.",
        "result = 1\nfor i in range(2, n + 1):\n    result *= i\nreturn result", [0, 1, 2, 3, 4, 5, 7, 10],
    ),
    fn(
        "is_prime(n)", "returns True if n is a prime number, otherwise False.",
        "if n < 2:\n"
        "    return False\n"
        "for i in range(2, n):\n"
        "    if n % i == 0:\n"
        "        return False\n"
        "return True", [0, 1, 2, 3, 4, 9, 11, 15, 17, 25],
    ),
    fn("is_multiple(a, b)", "returns True when a is divisible by b.", "a % b == 0", PPAIRS),
    fn("absolute_difference(a, b)", "returns the absolute difference between a and b.", "abs(a - b)", PAIRS),
    fn(
        "smallest_of_three(a, b, c)", "returns the smallest of the three numbers.",
        "min(a, b, c)", [(1, 2, 3), (3, 2, 1), (5, -1, 7), (4, 4, 4), (9, 2, 5), (0, 0, 1), (-3, -2, -9)],
    ),
    fn(
        "gcd(a, b)", "returns the greatest common divisor of two positive integers.",
        "while b:\n    a, b = b, a % b\nreturn a",
        [(10, 4), (9, 3), (1, 1), (20, 50), (7, 2), (100, 75), (5, 10), (36, 48)],
    ),
    fn(
        "to_binary(n)", "returns the binary representation of n as a string, without any prefix.",
        "bin(n)[2:]", [0, 1, 2, 5, 8, 13, 31, 100],
    ),
    fn(
        "sign(n)", "returns 1 if n is positive, -1 if n is negative and 0 if n is zero.",
        "if n > 0:\n    return 1\nif n < 0:\n    return -1\nreturn 0", INTS,
    ),
    fn(
        "is_perfect_square(n)", "returns True if the non-negative integer n is a perfect square.",
        "int(n ** 0.5) ** 2 == n", [0, 1, 2, 4, 8, 9, 15, 16, 25, 99],
    ),
    fn("average(a, b)", "returns the average of two numbers.", "(a + b) / 2", PAIRS),
    fn(
        "reverse_number(n)", "returns the integer made by reversing the digits of the positive integer n.",
        "int(str(n)[::-1])", [1, 12, 120, 345, 1001, 99, 5020, 7],
    ),
    fn(
        "in_range(x, low, high)", "returns True if x lies between low and high, both included.",
        "low <= x <= high", [(5, 1, 10), (0, 1, 10), (11, 1, 10), (1, 1, 10), (10, 1, 10), (-3, -3, 3), (4, -3, 3)],
    ),
    fn(
        "common_multiple(a, b, n)", "returns True if n is divisible by both a and b.",
        "n % a == 0 and n % b == 0", [(2, 3, 6), (2, 3, 4), (2, 3, 9), (5, 5, 10), (1, 1, 7), (4, 6, 24), (4, 6, 16)],
    ),
    fn("remainder(a, b)", "returns the remainder when a is divided by b.", "a % b", PPAIRS),
    fn("largest_of_three(a, b, c)", "returns the largest of three numbers.", "max(a, b, c)", P3),
    fn("square_of_sum(a, b)", "adds a and b and returns the square of the result.", "(a + b) ** 2", PAIRS),
    fn(
        "both_positive(a, b)", "returns True if both numbers are greater than zero.",
        "a > 0 and b > 0", [(1, 2), (-1, 2), (1, -2), (0, 5), (-3, -4), (10, 10)],
    ),
    fn(
        "either_negative(a, b)", "returns True if at least one of the two numbers is negative.",
        "a < 0 or b < 0", [(1, 2), (-1, 2), (1, -2), (0, 5), (-3, -4), (10, 10)],
    ),
    fn(
        "count_zeros(n)", "returns how many zeros appear in the decimal digits of n.",
        "str(n).count('0')", [0, 10, 101, 55, 1000, 20304],
    ),
    fn("numbers_up_to(n)", "returns the list of the numbers from 1 to n.", "list(range(1, n + 1))", NATS),
    fn(
        "divisors(n)", "returns the list of all positive divisors of n.",
        "[i for i in range(1, n + 1) if n % i == 0]", NATS,
    ),
    fn(
        "powers_of_two(n)", "returns a list with the first n powers of two, starting with 1.",
        "[2 ** i for i in range(n)]", [0, 1, 2, 3, 5, 8],
    ),
]
