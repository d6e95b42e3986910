"""Training problems: arithmetic on a few numbers."""

# fmt: off

from data.demo.problems.model import Problem, fn
from data.demo.problems.pools import INTS, NATS, PAIRS, POSITIVE_PAIRS, TRIPLES

PROBLEMS: list[Problem] = [
    fn("double(n)", "returns n multiplied by two.", "n * 2", INTS),
    fn("cube(n)", "returns the cube of n.", "n ** 3", INTS),
    fn(
        "count_digits(n)", "returns how many digits the positive integer n has.",
        "len(str(n))", [1, 5, 10, 19, 123, 4567, 99999, 301],
    ),
    fn("is_even(n)", "returns True if n is an even number and False otherwise.", "n % 2 == 0", INTS),
    fn("is_multiple(a, b)", "returns True when a is divisible by b.", "a % b == 0", POSITIVE_PAIRS),
    fn(
        "smallest_of_three(a, b, c)", "returns the smallest of the three numbers.",
        "min(a, b, c)", [(1, 2, 3), (3, 2, 1), (5, -1, 7), (4, 4, 4), (9, 2, 5), (0, 0, 1), (-3, -2, -9)],
    ),
    fn(
        "is_leap_year(year)", "returns True if the year is a leap year.",
        "year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)", [2000, 1900, 2024, 2023, 2100, 1996, 2400, 2018],
    ),
    fn(
        "minutes_to_seconds(minutes)", "converts a number of minutes to seconds.",
        "minutes * 60", [0, 1, 2, 5, 10, 60, 90, 7],
    ),
    fn(
        "sign(n)", "returns 1 if n is positive, -1 if n is negative and 0 if n is zero.",
        "if n > 0:\n    return 1\nif n < 0:\n    return -1\nreturn 0", INTS,
    ),
    fn(
        "total_price(price, quantity)", "returns the total cost of buying quantity items at the given price each.",
        "price * quantity", POSITIVE_PAIRS,
    ),
    fn("add(a, b)", "returns the sum of a and b.", "a + b", PAIRS),
    fn("add_three(a, b, c)", "returns the sum of three numbers.", "a + b + c", TRIPLES),
    fn("square(n)", "returns n squared.", "n ** 2", INTS),
    fn("square_area(side)", "returns the area of a square with the given side.", "side * side", NATS),
    fn("negate(n)", "returns the number n with its sign changed.", "-n", INTS),
    fn("increment(n)", "returns the number that comes right after n.", "n + 1", INTS),
    fn("is_odd(n)", "returns True if n is odd and False if it is even.", "n % 2 != 0", INTS),
    fn("is_positive(n)", "returns True if n is greater than zero.", "n > 0", INTS),
    fn("divisible_by_three(n)", "returns True if n can be divided by 3 without a remainder.", "n % 3 == 0", INTS),
    fn("multiply(a, b)", "returns the product of a and b.", "a * b", PAIRS),
    fn("product_of_three(a, b, c)", "multiplies three numbers and returns the result.", "a * b * c", TRIPLES),
    fn(
        "box_volume(length, width, height)", "returns the volume of a box.",
        "length * width * height", [(1, 2, 3), (2, 2, 2), (5, 1, 4), (10, 3, 2), (7, 7, 1), (1, 1, 1)],
    ),
    fn("cube_volume(side)", "returns the volume of a cube with the given side length.", "side ** 3", NATS),
    fn("years_to_months(years)", "returns the number of months in the given number of years.", "years * 12", NATS),
    fn("meters_to_cm(meters)", "converts meters to centimeters.", "meters * 100", NATS),
    fn(
        "kelvin(celsius)", "converts a whole temperature in degrees Celsius to Kelvin by adding 273.",
        "celsius + 273", INTS,
    ),
    fn("age_in_ten_years(age)", "returns the age of a person in ten years.", "age + 10", [0, 1, 5, 18, 42, 90]),
    fn(
        "rectangle_area(width, height)", "returns the area of a rectangle.",
        "width * height", [(1, 2), (5, 3), (4, 4), (10, 7), (8, 1), (12, 12)],
    ),
    fn("largest_of_three(a, b, c)", "returns the largest of three numbers.", "max(a, b, c)", TRIPLES),
    fn("smaller(a, b)", "returns the smaller one of the two numbers a and b.", "min(a, b)", PAIRS),
    fn("double_plus_one(n)", "multiplies n by two and adds one.", "n * 2 + 1", INTS),
    fn("linear(a, b, x)", "returns the value of a * x + b.", "a * x + b", TRIPLES),
    fn("is_greater(a, b)", "returns True if a is greater than b.", "a > b", PAIRS),
    fn("product_plus(a, b)", "returns the product of a and b plus one.", "a * b + 1", PAIRS),
    fn("sum_minus(a, b, c)", "returns a plus b minus c.", "a + b - c", TRIPLES),
    fn("scaled_sum(a, b, c)", "returns c * (a + b).", "c * (a + b)", TRIPLES),
    fn("polynomial(x)", "returns the value of x ** 2 + 3 * x + 1.", "x ** 2 + 3 * x + 1", INTS),
    fn("minus_five(n)", "subtracts 5 from n and returns the result.", "n - 5", INTS),
    fn("fourth_power(n)", "returns n to the power of 4.", "n ** 4", INTS),
    fn("power_of_two(n)", "returns 2 to the power of n.", "2 ** n", NATS),
    fn(
        "power_of(a, b)", "returns a ** b, that is a raised to the power b.",
        "a ** b", [(2, 3), (5, 0), (3, 2), (10, 4), (7, 1), (-2, 3), (1, 9)],
    ),
    fn(
        "percent(part, whole)", "returns part divided by whole, multiplied by 100.",
        "part / whole * 100", [(1, 2), (1, 4), (3, 4), (0, 5), (5, 5), (2, 1)],
    ),
    fn("is_large(n)", "returns True if n is greater than 100.", "n > 100", [0, 99, 100, 101, 500, 1000, -200]),
    fn(
        "max_of_four(a, b, c, d)", "returns the largest of the four numbers.",
        "max(a, b, c, d)", [(1, 2, 3, 4), (4, 3, 2, 1), (0, 9, -1, 2), (5, 5, 5, 5), (-1, -2, -3, -4), (2, 2, 8, 1)],
    ),
    fn(
        "to_neighbor(n)", "returns n plus 1 if n is even and n minus 1 if n is odd.",
        "n + 1 if n % 2 == 0 else n - 1", INTS,
    ),
    fn(
        "price_with_tax(price, tax)", "returns the price plus the tax.",
        "price + tax", [(10, 2), (0, 0), (5, 1), (99, 19), (20, 4), (50, 3)],
    ),
    fn(
        "speed(distance, time)", "returns the distance divided by the time.",
        "distance / time", [(4, 2), (1, 2), (9, 3), (0, 7), (6, 4), (10, 8)],
    ),
    fn("trapezoid(a, b, h)", "returns (a + b) * h / 2.", "(a + b) * h / 2", TRIPLES),
    fn("feet_to_inches(feet)", "converts feet to inches. One foot has 12 inches.", "feet * 12", [0, 1, 3, 6, 20, 50]),
    fn("triple(n)", "returns three times n.", "3 * n", INTS),
    fn(
        "salary(hours, rate)", "returns the hours worked multiplied by the hourly rate.",
        "hours * rate", [(8, 10), (1, 15), (40, 20), (0, 12), (35, 11)],
    ),
    fn("squared_difference(a, b)", "returns the square of the difference between a and b.", "(a - b) ** 2", PAIRS),
    fn(
        "triangle_perimeter(a, b, c)", "returns the perimeter of a triangle with the sides a, b and c.",
        "a + b + c", [(3, 4, 5), (1, 1, 1), (5, 5, 8), (7, 10, 5), (2, 2, 3)],
    ),
    fn(
        "is_multiple_of_five(n)", "returns True if n is a multiple of 5.",
        "n % 5 == 0", [0, 1, 5, 12, 25, -10, 33, 101],
    ),
    fn(
        "is_sum(a, b, c)", "returns True if a plus b equals c.",
        "a + b == c", [(1, 2, 3), (2, 2, 5), (0, 0, 0), (5, -5, 1), (10, 20, 30), (7, 1, 9)],
    ),
    fn(
        "even_squares_up_to(n)", "returns a list of the squares of the even numbers from 1 to n.",
        "[i ** 2 for i in range(1, n + 1) if i % 2 == 0]", NATS,
    ),
]
