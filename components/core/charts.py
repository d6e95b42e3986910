"""Charts as inline SVG: no library, no script, and the page's colours in light and dark (see base.html.j2).

Every function returns markup. Lengths are in SVG user units, which are CSS pixels at the chart's natural width.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup, escape

from components.core.page import span

Span = tuple[str, float, float, float]
"""Label, value, low, high; all but the label shares between 0 and 1."""


def _svg(width: float, height: float, body: list[str], label: str) -> Markup:
    return Markup(
        f'<svg class="chart" viewBox="0 0 {width:g} {height:g}" style="width:{width:g}px" role="img" '
        f'aria-label="{escape(label)}">{"".join(body)}</svg>'
    )


def _text(x: float, y: float, text: str, anchor: str = "start", kind: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{kind}">{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def _short(name: str, longest: int = 20) -> str:
    """Cut to what fits left of a row."""
    return name if len(name) <= longest else f"{name[: longest - 1]}…"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def ticks(low: float, high: float, about: int = 4) -> list[float]:
    """Round numbers that cover [low, high]: steps of 1, 2 or 5 times a power of ten."""
    if high - low <= 1e-9 * max(abs(low), abs(high)):  # as good as one value: marks so close would be equal
        high = low + (abs(low) or 1.0)
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * 0.999)
    first = math.floor(low / step + 1e-9)
    last = math.ceil(high / step - 1e-9)
    digits = 2 - math.floor(math.log10(step))
    return [round(index * step, digits) for index in range(first, last + 1)]


def intervals(rows: Sequence[Span], label: str) -> Markup:
    """A dot with its interval a row, on an axis of percent that starts at 0."""
    left, right, row_height, width = 150.0, 150.0, 30.0, 700.0
    marks = ticks(0.0, min(1.0, max([0.1, *(row[3] for row in rows)])), 5)
    top, height = 8.0, row_height * len(rows)

    def x_of(share: float) -> float:
        return left + (width - left - right) * share / marks[-1]

    body = [_line(x_of(mark), top, x_of(mark), top + height, "grid") for mark in marks]
    body += [_text(x_of(mark), top + height + 16, f"{100 * mark:g} %", "middle", "tick") for mark in marks]
    for index, (name, value, low, high) in enumerate(rows):
        y = top + row_height * (index + 0.5)
        tip = f"{name}: {_percent(value)} % ({_percent(low)} to {_percent(high)})"
        body += [
            f"<g><title>{escape(tip)}</title>",
            _text(left - 12, y + 4, _short(name), "end"),
            _line(x_of(low), y, x_of(high), y, "whisker"),
            _line(x_of(low), y - 5, x_of(low), y + 5, "whisker"),
            _line(x_of(high), y - 5, x_of(high), y + 5, "whisker"),
            f'<circle cx="{x_of(value):.1f}" cy="{y:.1f}" r="5" class="dot"/>',
            _text(width - right + 14, y + 4, span({"value": value, "low": low, "high": high}), "start", "strong"),
            "</g>",
        ]
    return _svg(width, top + height + 24, body, label)


def stacked(rows: Sequence[tuple[str, Sequence[tuple[str, float, str]]]], unit: str, label: str) -> Markup:
    """A horizontal bar a row, made of (name, amount, CSS class) parts; all rows on one scale.

    Args:
        rows: label and parts of each.
        unit: `%` (amounts are shares) or `s` (amounts are seconds).
        label: for screen readers.
    """
    left, right, row_height, width = 150.0, 90.0, 34.0, 660.0
    longest = max([1e-9, *(sum(amount for _, amount, _ in parts) for _, parts in rows)])
    scale = (width - left - right) / longest
    body: list[str] = []
    for index, (name, parts) in enumerate(rows):
        y, x = row_height * index + 6, left
        body.append(_text(left - 12, y + 15, _short(name), "end"))
        for part, amount, kind in parts:
            if amount <= 0:
                continue
            shown = f"{_percent(amount)} %" if unit == "%" else f"{amount:.1f} s"
            body.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(amount * scale, 0.5):.1f}" height="22" class="{kind}">'
                f"<title>{escape(f'{name}, {part}: {shown}')}</title></rect>"
            )
            if amount * scale > 34:
                inside = part if unit == "%" else shown
                body.append(_text(x + amount * scale / 2, y + 15, inside, "middle", "onbar"))
            x += amount * scale
        if unit != "%":
            body.append(_text(x + 8, y + 15, f"{sum(amount for _, amount, _ in parts):.1f} s", "start", "strong"))
    return _svg(width, row_height * len(rows) + 6, body, label)


def columns(rows: Sequence[tuple[str, float]], label: str) -> Markup:
    """A column a row with its count on top."""
    width, height, bottom, top = 460.0, 190.0, 24.0, 22.0
    slot = width / max(1, len(rows))
    highest = max([1e-9, *(value for _, value in rows)])
    body = [_line(0, height - bottom, width, height - bottom, "axis")]
    for index, (name, value) in enumerate(rows):
        tall = (height - bottom - top) * value / highest
        x, y = slot * index + slot * 0.14, height - bottom - tall
        body += [
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{slot * 0.72:.1f}" height="{tall:.1f}" rx="2" class="bar">'
            f"<title>{escape(f'{name}: {value:g}')}</title></rect>",
            _text(x + slot * 0.36, y - 6, f"{value:g}", "middle", "strong"),
            _text(x + slot * 0.36, height - 7, name, "middle", "tick"),
        ]
    return _svg(width, height, body, label)


def _scale_labels(marks: Sequence[float]) -> list[str]:
    """Labels with as many digits as the marks' distance needs."""
    step = marks[1] - marks[0]
    if step < 1e-4 or step >= 1e6:
        return [f"{mark:.3g}" for mark in marks]
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    return [f"{mark:.{digits}f}" for mark in marks]


def curve(points: Sequence[tuple[float, float]], boundaries: Sequence[tuple[float, str]], label: str) -> Markup:
    """One training curve: (optimizer steps, value) points in order, with a dashed line where a stage begins."""
    left, right, top, bottom, width, height = 52.0, 12.0, 16.0, 24.0, 340.0, 170.0
    xs, ys = [x for x, _ in points], [y for _, y in points]
    y_marks = ticks(min(ys), max(ys))
    x_low, x_high = min(xs), max(max(xs), min(xs) + 1)

    def x_of(x: float) -> float:
        return left + (width - left - right) * (x - x_low) / (x_high - x_low)

    def y_of(y: float) -> float:
        return top + (height - top - bottom) * (y_marks[-1] - y) / (y_marks[-1] - y_marks[0])

    body = [_line(left, y_of(mark), width - right, y_of(mark), "grid") for mark in y_marks]
    labels = zip(y_marks, _scale_labels(y_marks), strict=True)
    body += [_text(left - 7, y_of(mark) + 4, text, "end", "tick") for mark, text in labels]
    x_marks = [mark for mark in ticks(x_low, x_high, 5) if mark == int(mark) and x_low <= mark <= x_high]
    body += [_text(x_of(mark), height - 7, f"{mark:g}", "middle", "tick") for mark in x_marks]
    for x, name in boundaries:
        if x_low <= x <= x_high:
            body += [_line(x_of(x), top, x_of(x), height - bottom, "boundary")]
            body += [_text(x_of(x) + 4, top - 4, name, "start", "tick")]
    path = " ".join(f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in points)
    body.append(f'<polyline points="{path}" class="curve"/>')
    # Dots of long trainings would merge into a band.
    radius = 3.0 if len(points) <= 40 else 1.2
    for x, y in points:
        tip = f"step {x:g}: {y:.4g}"
        body.append(
            f'<circle cx="{x_of(x):.1f}" cy="{y_of(y):.1f}" r="{radius}" class="dot"><title>{tip}</title></circle>'
        )
    return _svg(width, height, body, label)


def by_category(rows: Sequence[Span], label: str, boundary: tuple[int, str] | None = None) -> Markup:
    """Vertical dots with intervals over ordered categories (months), joined by a line.

    Args:
        rows: in order.
        label: for screen readers.
        boundary: (index, text): a dashed line in front of that category.
    """
    left, right, top, bottom, width, height = 48.0, 12.0, 18.0, 40.0, 660.0, 240.0
    marks = ticks(0.0, max([0.1, *(row[3] for row in rows)]))
    slot = (width - left - right) / max(1, len(rows))

    def y_of(share: float) -> float:
        return top + (height - top - bottom) * (1 - share / marks[-1])

    def x_of(index: float) -> float:
        return left + slot * (index + 0.5)

    body = [_line(left, y_of(mark), width - right, y_of(mark), "grid") for mark in marks]
    body += [_text(left - 7, y_of(mark) + 4, f"{100 * mark:g} %", "end", "tick") for mark in marks]
    if boundary:
        x = x_of(boundary[0] - 0.5)
        body += [_line(x, top, x, height - bottom, "boundary"), _text(x + 4, top - 5, boundary[1], "start", "tick")]
    path = " ".join(f"{x_of(index):.1f},{y_of(row[1]):.1f}" for index, row in enumerate(rows))
    body.append(f'<polyline points="{path}" class="curve"/>')
    every = math.ceil(len(rows) / 9)
    for index, (name, value, low, high) in enumerate(rows):
        tip = f"{name}: {_percent(value)} % ({_percent(low)} to {_percent(high)})"
        body += [
            f"<g><title>{escape(tip)}</title>",
            _line(x_of(index), y_of(low), x_of(index), y_of(high), "whisker"),
            f'<circle cx="{x_of(index):.1f}" cy="{y_of(value):.1f}" r="4" class="dot"/></g>',
        ]
        if index % every == 0:
            body.append(_text(x_of(index), height - 20, name, "middle", "tick"))
    return _svg(width, height, body, label)


def movement(cells: Sequence[tuple[int, int, int]], size: int, label: str) -> Markup:
    """A grid of how many problems went from one count of correct answers to another.

    Args:
        cells: (correct before, correct after, problems).
        size: samples a problem; the grid has size + 1 rows and columns.
        label: for screen readers.
    """
    cell, left, bottom, top = min(44.0, 400.0 / (size + 1)), 84.0, 44.0, 6.0
    side = cell * (size + 1)
    most = max([1, *(count for _, _, count in cells)])
    counts = {(before, after): count for before, after, count in cells}
    body: list[str] = []
    for before in range(size + 1):
        for after in range(size + 1):
            x, y = left + cell * before, top + side - cell * (after + 1)
            count = counts.get((before, after), 0)
            kind = "same" if before == after else "better" if after > before else "worse"
            opacity = 0.06 if not count else 0.15 + 0.6 * math.sqrt(count / most)
            tip = f"{before} of {size} before, {after} of {size} after: {count} problems"
            body.append(
                f'<rect x="{x + 1:.1f}" y="{y + 1:.1f}" width="{cell - 2:.1f}" height="{cell - 2:.1f}" rx="3" '
                f'class="{kind}" fill-opacity="{opacity:.2f}"><title>{escape(tip)}</title></rect>'
            )
            if count:
                body.append(_text(x + cell / 2, y + cell / 2 + 4, str(count), "middle", "strong"))
    for index in range(size + 1):
        body.append(_text(left + cell * (index + 0.5), top + side + 16, str(index), "middle", "tick"))
        body.append(_text(left - 8, top + side - cell * (index + 0.5) + 4, str(index), "end", "tick"))
    body.append(_text(left + side / 2, top + side + 36, "correct answers before", "middle", "tick"))
    body.append(_text(left - 24, top + side / 2 - 6, "correct", "end", "tick"))
    body.append(_text(left - 24, top + side / 2 + 8, "after", "end", "tick"))
    return _svg(left + side + 6, top + side + bottom, body, label)
