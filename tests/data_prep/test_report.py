from __future__ import annotations

from components.core.schema import Problem, Test
from components.data_prep.output import Written, quantiles
from components.data_prep.report import histogram, render


def test_statements_cannot_inject_markup_into_the_page() -> None:
    written = Written()
    hostile = "<script>alert(1)</script>"
    written.note("train", Problem(hostile, "taco", hostile, [Test("stdin", hostile, hostile)]), seed=0)
    counts = {"taco": {"rows": 1, "train": 1, "test": 0, "dropped": {hostile: 2}}}
    sources = [{"label": "taco", "license": hostile, "path": hostile}]
    labels = {"train": {name: dict(values) for name, values in written.counts["train"].items()}}
    page = render({"counts": counts, "sources": sources, "labels": labels}, written)
    assert "<script>" not in page
    assert page.count("&lt;script&gt;") >= 6


def test_every_value_is_in_one_bar() -> None:
    values = [1] * 50 + list(range(1, 40)) + [10_000]
    page = histogram(values, "tests")
    bars = [int(title.partition("</title>")[0].rpartition(": ")[2]) for title in page.split("<title>")[1:]]
    assert sum(bars) == len(values)
    assert "tests: 1 … 10000" in page


def test_quantiles_of_a_known_list() -> None:
    assert quantiles([5, 1, 3, 2, 4]) == {"min": 1, "p25": 2, "median": 3, "p75": 4, "max": 5, "mean": 3.0}
