"""Training problems: arithmetic on a few numbers."""

# fmt: off

from demo_problems.model import Problem, fn
from demo_problems.pools import INTS, NATS, P3, PAIRS, PPAIRS

PROBLEMS: list[Problem] = [
    fn("double(n)", "returns n multiplied by two.", "n * 2", INTS),
    fn("cube(n)", "returns the cube of n.", "n ** 3", INTS),
    fn(
        "last_digit(n)", "returns the last digit of the non-negative integer n.",
        "n % 10", [0, 5, 10, 19, 123, 4567, 98, 301],
    ),
    fn(
        "count_digits(n)", "returns how many digits the positive integer n has.",
        "len(str(n))", [1, 5, 10, 19, 123, 4567, 99999, 301],
    ),
    fn(
        "fibonacci(n)", "returns the n-th Fibonacci number, where fibonacci(0) is 0 and fibonacci(1) is 1.",
        "a, b = 0, 1\nfor _ in range(n):\n    a, b = b, a + b\nreturn a", [0, 1, 2, 3, 5, 8, 10, 15],
    ),
    fn("is_even(n)", "returns True if n is an even number and False otherwise.", "n % 2 == 0", INTS),
    fn("sum_to(n)", "returns the sum of all integers from 1 to n.", "n * (n + 1) // 2", NATS),
    fn(
        "sum_of_squares(n)", "returns the sum of the squares of the numbers from 1 to n.",
        "sum(i * i for i in range(1, n + 1))", NATS,
    ),
    fn("larger(a, b)", "returns the larger of two numbers.", "max(a, b)", PAIRS),
    fn(
        "is_leap_year(year)", "returns True if the year is a leap year.",
        "year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)", [2000, 1900, 2024, 2023, 2100, 1996, 2400, 2018],
    ),
    fn(
        "minutes_to_seconds(minutes)", "converts a number of minutes to seconds.",
        "minutes * 60", [0, 1, 2, 5, 10, 60, 90, 7],
    ),
    fn("rectangle_perimeter(width, height)", "computes the perimeter of a rectangle.", "2 * (width + height)", PPAIRS),
    fn("triangle_area(base, height)", "returns the area of a triangle.", "base * height / 2", PPAIRS),
    fn(
        "power(base, exponent)", "returns base raised to the given exponent.",
        "base ** exponent", [(2, 3), (5, 0), (3, 2), (10, 4), (7, 1), (-2, 3), (1, 9), (0, 5)],
    ),
    fn(
        "count_divisors(n)", "returns the number of positive divisors of n.",
        "sum(1 for i in range(1, n + 1) if n % i == 0)", NATS,
    ),
    fn(
        "clamp(value, low, high)", "limits value to the range from low to high.",
        "max(low, min(value, high))",
        [(5, 1, 10), (0, 1, 10), (11, 1, 10), (1, 1, 10), (-5, -3, 3), (3, -3, 3), (7, 7, 7)],
    ),
    fn("even_sum(n)", "returns the sum of all even numbers from 1 to n.", "sum(range(2, n + 1, 2))", NATS),
    fn(
        "quotient_and_remainder(a, b)", "returns a list with the integer quotient and the remainder of a divided by b.",
        "[a // b, a % b]", PPAIRS,
    ),
    fn(
        "is_power_of_two(n)", "returns True if the positive integer n is a power of two.",
        "n & (n - 1) == 0", [1, 2, 3, 4, 6, 8, 10, 16, 31, 64],
    ),
    fn(
        "total_price(price, quantity)", "returns the total cost of buying quantity items at the given price each.",
        "price * quantity", PPAIRS,
    ),
    fn("change(paid, cost)", "returns how much money is left after paying for something.", "paid - cost", PPAIRS),
    fn("hypotenuse_squared(a, b)", "returns the square of a plus the square of b.", "a ** 2 + b ** 2", PAIRS),
    fn(
        "days_in_weeks(weeks, days)", "returns the total number of days in the given number of weeks and days.",
        "weeks * 7 + days", PAIRS,
    ),
    fn("add(a, b)", "returns the sum of a and b.", "a + b", PAIRS),
    fn("add_three(a, b, c)", "returns the sum of three numbers.", "a + b + c", P3),
    fn("square(n)", "returns n squared.", "n ** 2", INTS),
    fn("square_area(side)", "returns the area of a square with the given side.", "side * side", INTS),
    fn("negate(n)", "returns the number n with its sign changed.", "-n", INTS),
    fn("increment(n)", "returns the number that comes right after n.", "n + 1", INTS),
    fn("half(n)", "returns n divided by two.", "n / 2", INTS),
    fn("absolute(n)", "returns the absolute value of n.", "abs(n)", INTS),
    fn("is_odd(n)", "returns True if n is odd and False if it is even.", "n % 2 != 0", INTS),
    fn("is_positive(n)", "returns True if n is greater than zero.", "n > 0", INTS),
    fn("divisible_by_three(n)", "returns True if n can be divided by 3 without a remainder.", "n % 3 == 0", INTS),
    fn(
        "integer_division(a, b)", "returns the result of dividing a by b, rounded down to an integer.",
        "a // b", PPAIRS,
    ),
    fn("multiply(a, b)", "returns the product of a and b.", "a * b", PAIRS),
    fn("product_of_three(a, b, c)", "multiplies three numbers and returns the result.", "a * b * c", P3),
    fn(
        "box_volume(length, width, height)", "returns the volume of a box.",
        "length * width * height", [(1, 2, 3), (2, 2, 2), (5, 1, 4), (10, 3, 2), (7, 7, 1), (1, 1, 1)],
    ),
    fn("cube_volume(side)", "returns the volume of a cube with the given side length.", "side ** 3", NATS),
    fn("square_perimeter(side)", "returns the perimeter of a square.", "4 * side", NATS),
    fn("hours_to_minutes(hours)", "converts hours to minutes.", "hours * 60", NATS),
    fn("weeks_to_days(weeks)", "converts a number of weeks to days.", "weeks * 7", NATS),
    fn("years_to_months(years)", "returns the number of months in the given number of years.", "years * 12", NATS),
    fn("meters_to_cm(meters)", "converts meters to centimeters.", "meters * 100", NATS),
    fn("dozens_to_eggs(dozens)", "returns how many eggs there are in the given number of dozens.", "dozens * 12", NATS),
    fn("cents(dollars)", "converts an amount in whole dollars to cents.", "dollars * 100", NATS),
    fn(
        "full_hours(minutes)", "returns the number of full hours in the given number of minutes.",
        "minutes // 60", [0, 59, 60, 61, 120, 150, 600, 45],
    ),
    fn(
        "minutes_left(minutes)", "returns the minutes that remain after all full hours are taken away.",
        "minutes % 60", [0, 59, 60, 61, 120, 150, 600, 45],
    ),
    fn(
        "kelvin(celsius)", "converts a whole temperature in degrees Celsius to Kelvin by adding 273.",
        "celsius + 273", INTS,
    ),
    fn("age_in_ten_years(age)", "returns the age of a person in ten years.", "age + 10", [0, 1, 5, 18, 42, 90]),
    fn(
        "birth_year(year, age)", "returns the year of birth of a person who has the given age in the given year.",
        "year - age", [(2020, 20), (1999, 1), (2024, 60), (2000, 0), (2010, 33), (1950, 25)],
    ),
    fn(
        "distance(speed, time)", "returns the distance travelled at the given speed for the given time.",
        "speed * time", PPAIRS,
    ),
    fn("rectangle_area(width, height)", "returns the area of a rectangle.", "width * height", PPAIRS),
    fn(
        "average_of_three(a, b, c)", "returns the average of three numbers.",
        "(a + b + c) / 3", [(1, 2, 3), (3, 3, 3), (0, 0, 3), (4, 5, 9), (-3, 0, 6), (10, 20, 30)],
    ),
    fn("smaller(a, b)", "returns the smaller one of the two numbers a and b.", "min(a, b)", PAIRS),
    fn("sum_of_squares_two(a, b)", "returns the sum of the squares of a and b.", "a ** 2 + b ** 2", PAIRS),
    fn("difference_of_squares(a, b)", "returns the square of a minus the square of b.", "a ** 2 - b ** 2", PAIRS),
    fn("double_sum(a, b)", "returns twice the sum of a and b.", "2 * (a + b)", PAIRS),
    fn("double_plus_one(n)", "multiplies n by two and adds one.", "n * 2 + 1", INTS),
    fn("linear(a, b, x)", "returns the value of a * x + b.", "a * x + b", P3),
    fn("discount(price)", "returns the price reduced by 10.", "price - 10", NATS),
    fn(
        "total_seconds(hours, minutes)", "returns the number of seconds in the given hours and minutes.",
        "hours * 3600 + minutes * 60", PPAIRS,
    ),
    fn(
        "last_two_digits(n)", "returns the remainder of n when divided by 100.",
        "n % 100", [0, 5, 100, 119, 12345, 99, 200, 3007],
    ),
    fn(
        "legs(chickens, cows)",
        "returns the total number of legs of the given chickens and cows. A chicken has 2 legs and a cow has 4.",
        "chickens * 2 + cows * 4", PPAIRS,
    ),
    fn("is_between(n)", "returns True if n is between 1 and 10, both included.", "1 <= n <= 10", INTS),
    fn(
        "both_even(a, b)", "returns True if both a and b are even.",
        "a % 2 == 0 and b % 2 == 0", [(2, 4), (1, 2), (2, 1), (3, 5), (0, 0), (10, 7), (-2, 8)],
    ),
    fn(
        "same_parity(a, b)", "returns True if a and b are both even or both odd.",
        "a % 2 == b % 2", [(2, 4), (1, 2), (2, 1), (3, 5), (0, 0), (10, 7), (9, 8)],
    ),
    fn("is_greater(a, b)", "returns True if a is greater than b.", "a > b", PAIRS),
    fn("ends_in_zero(n)", "returns True if the last digit of n is zero.", "n % 10 == 0", INTS),
    fn(
        "is_two_digit(n)", "returns True if the positive integer n has exactly two digits.",
        "10 <= n <= 99", [1, 9, 10, 55, 99, 100, 1000],
    ),
    fn(
        "is_even_digit_count(n)", "returns True if the positive integer n has an even number of digits.",
        "len(str(n)) % 2 == 0", [1, 12, 123, 1234, 99, 100, 5],
    ),
    fn(
        "round_to_integer(x)", "rounds the number x to the nearest integer.",
        "round(x)", [1.2, 2.7, 0.0, -1.2, 9.9, 3.4],
    ),
    fn(
        "digits(n)", "returns the list of the digits of the positive integer n.",
        "[int(d) for d in str(n)]", [5, 10, 19, 123, 4567, 98],
    ),
    fn(
        "cube_sum(n)", "returns the sum of the cubes of the numbers from 1 to n.",
        "sum(i ** 3 for i in range(1, n + 1))", NATS,
    ),
    fn("odd_sum(n)", "returns the sum of the odd numbers from 1 to n.", "sum(range(1, n + 1, 2))", NATS),
    fn(
        "sum_between(a, b)", "returns the sum of all integers from a to b, both included.",
        "sum(range(a, b + 1))", [(1, 2), (3, 5), (0, 0), (-4, 4), (10, 10), (2, 7)],
    ),
    fn("evens_up_to(n)", "returns the list of even numbers from 2 up to n.", "list(range(2, n + 1, 2))", NATS),
    fn(
        "squares_up_to(n)", "returns a list with the squares of the numbers from 1 to n.",
        "[i ** 2 for i in range(1, n + 1)]", NATS,
    ),
    fn(
        "range_list(start, stop)", "returns the list of integers from start up to but not including stop.",
        "list(range(start, stop))", [(1, 4), (0, 3), (5, 5), (-2, 2), (10, 12), (3, 9)],
    ),
    fn("zeros(n)", "returns a list of n zeros.", "[0] * n", [0, 1, 2, 3, 5, 8]),
    fn(
        "repeat_value(value, n)", "returns a list that contains value n times.",
        "[value] * n", [(1, 3), ("x", 2), (5, 0), (7, 1), ("ab", 4), (0, 5)],
    ),
]
