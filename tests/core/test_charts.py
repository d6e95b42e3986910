"""The charts as markup: well-formed, escaped, with marks where the numbers are."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from components.core import charts


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.0, 1.0, [0, 0.5, 1.0]),
        (0.0, 0.1, [0, 0.05, 0.1]),
        (-3.0, 8.0, [-5, 0, 5, 10]),
        (2.0, 2.0, [2, 2.5, 3, 3.5, 4]),
        (2e-5, 2e-5, [2e-5, 2.5e-5, 3e-5, 3.5e-5, 4e-5]),
    ],
)
def test_ticks_are_round_and_cover_the_range(low: float, high: float, expected: list[float]) -> None:
    assert charts.ticks(low, high) == pytest.approx(expected)


@pytest.mark.parametrize(("low", "high"), [(0.0, 3e-14), (1.0, 1.0 + 4e-16), (0.0, 0.0), (-1e-300, 1e-300)])
def test_a_curve_of_values_that_hardly_differ_is_drawn(low: float, high: float) -> None:
    marks = charts.ticks(low, high)
    assert marks == sorted(set(marks))
    ET.fromstring(charts.curve([(0, low), (1, high)], [], "a"))


def _numbers(markup: str, element: str, attribute: str) -> list[float]:
    return [float(found) for found in re.findall(rf'<{element} [^>]*?{attribute}="([-\d.]+)"', markup)]


def test_every_chart_is_well_formed_and_escapes_names() -> None:
    name = "<b>&'\""
    drawn = [
        charts.intervals([(name, 0.3, 0.2, 0.4)], name),
        charts.stacked([(name, [(name, 0.4, "AC"), ("WA", 0.6, "WA")])], "%", name),
        charts.columns([(name, 3.0), ("none", 0.0)], name),
        charts.curve([(1, 0.5)], [(0.5, name)], name),
        charts.by_category([(name, 0.3, 0.2, 0.4)], name, (0, name)),
        charts.movement([(0, 2, 5)], 4, name),
    ]
    for markup in drawn:
        root = ET.fromstring(markup)
        assert root.attrib["aria-label"] == name
        assert "<b>" not in markup


def test_dot_of_an_interval_is_between_its_ends_in_proportion() -> None:
    markup = charts.intervals([("a", 0.3, 0.2, 0.5)], "x")
    (dot,) = _numbers(markup, "circle", "cx")
    ends = _numbers(markup.split("<g>")[1], "line", "x1")[1:]
    assert (dot - ends[0]) / (ends[1] - ends[0]) == pytest.approx(1 / 3, abs=0.01)


def test_stacked_parts_are_as_long_as_their_share_of_the_longest_bar() -> None:
    markup = charts.stacked([("a", [("x", 3.0, "startup"), ("y", 1.0, "work")]), ("b", [("x", 2.0, "work")])], "s", "x")
    first, second, third = _numbers(markup, "rect", "width")
    assert (second / first, third / first) == (pytest.approx(1 / 3, abs=0.01), pytest.approx(2 / 3, abs=0.01))


def test_movement_colours_better_and_worse() -> None:
    markup = charts.movement([(0, 2, 5), (3, 1, 2), (1, 1, 7)], 3, "x")
    filled = re.findall(r'class="(\w+)" fill-opacity="[\d.]+"><title>(\d) of 3 before, (\d) of 3 after: (\d+)', markup)
    counted = {(int(before), int(after)): (kind, int(count)) for kind, before, after, count in filled}
    assert len(counted) == 16
    assert counted[0, 2] == ("better", 5)
    assert counted[3, 1] == ("worse", 2)
    assert counted[1, 1] == ("same", 7)
