"""The dataset's report: one self-contained HTML page."""

from __future__ import annotations

import html
from typing import Any

from components.data_prep.output import Written

_BINS = 12
_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem;color:#1c2430;background:#fff}
table{border-collapse:collapse;margin:.5rem 0 1.5rem}td,th{padding:.2rem .8rem .2rem 0;text-align:left;
border-bottom:1px solid #d9dee5;vertical-align:top}td.n{text-align:right;font-variant-numeric:tabular-nums}
pre{background:#f4f6f8;padding:.6rem;overflow:auto;max-height:18rem;white-space:pre-wrap}svg{background:#f4f6f8}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}.note{color:#5a6675}
"""


def _cell(value: Any) -> str:
    css = ' class="n"' if isinstance(value, int | float) else ""
    return f"<td{css}>{html.escape(str(value))}</td>"


def _table(header: list[str], rows: list[list[Any]]) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in header)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def histogram(values: list[int], label: str) -> str:
    """An SVG of a distribution over bins of equal width up to the 99th percentile; the last bin takes the rest."""
    ordered = sorted(values)
    top = max(1, ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)])
    low = ordered[0]
    width = max(1, -(-(top - low + 1) // _BINS))
    counts = [0] * _BINS
    for value in ordered:
        counts[min(_BINS - 1, (value - low) // width)] += 1
    tallest = max(counts)
    bars = "".join(
        f'<rect x="{i * 30 + 2}" y="{80 - 70 * count / tallest:.1f}" width="26" height="{70 * count / tallest:.1f}" '
        f'fill="#3b6ea5"><title>{low + i * width}–{low + (i + 1) * width - 1}: {count}</title></rect>'
        for i, count in enumerate(counts)
    )
    caption = f"{label}: {low} … {ordered[-1]}, {width} a bar"
    return (
        f'<p>{html.escape(caption)}<br><svg viewBox="0 0 {_BINS * 30} 82" width="360" height="82" role="img">'
        f"{bars}</svg></p>"
    )


def render(summary: dict[str, Any], written: Written) -> str:
    """The page; the same dataset gives the same bytes.

    Args:
        summary: the manifest.
        written: the full distributions and the sampled rows.
    """
    counts = summary["counts"]
    kept = {split: sum(row[split] for row in counts.values()) for split in ("train", "test")}
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>Prepared problems</title>",
        f"<style>{_STYLE}</style><h1>Prepared problems</h1>",
        f"<p>{kept['train']} for training, {kept['test']} held out, of {sum(r['rows'] for r in counts.values())} "
        "raw rows. Every row that left is in <code>dropped.jsonl</code> with file, row and reason.</p>",
        "<h2>Sources</h2>",
        _table(
            ["source", "rows", "train", "test", "dropped", "licence", "path"],
            [
                [s["label"], counts[s["label"]]["rows"], counts[s["label"]]["train"], counts[s["label"]]["test"],
                 sum(counts[s["label"]]["dropped"].values()), s["license"], s["path"]]
                for s in summary["sources"]
            ],
        ),
        "<h2>Why rows left</h2>",
        _table(
            ["source", "reason", "rows"],
            [[label, reason, n] for label, row in counts.items() for reason, n in row["dropped"].items()],
        ),
    ]  # fmt: skip
    for split, numbers in sorted(written.numbers.items()):
        parts.append(f"<h2>Distributions, {split}</h2>")
        parts += [histogram(values, name.replace("_", " ")) for name, values in numbers.items()]
        labels = [[name, label, n] for name, c in summary["labels"][split].items() for label, n in c.items()]
        parts.append(_table(["label", "value", "rows"], labels))
    parts.append("<h2>Sampled rows</h2><p class='note'>Drawn by the run's seed; the first test of each.</p>")
    parts += [_row(row) for _, row in written.sample]
    return "".join(parts) + "</html>\n"


def _row(row: dict[str, Any]) -> str:
    test = row["tests"][0]
    facts = f"{row['split']} · {row['difficulty']} · {test['kind']} · comparator {row['comparator']}"
    reference = (row["reference_solutions"] or ["(no reference solution)"])[0]
    blocks = [row["question"], f"input\n{test['input'][:600]}\n\noutput\n{test['output'][:600]}", reference[:1500]]
    body = "".join(f"<pre>{html.escape(block)}</pre>" for block in blocks)
    return f"<details><summary><b>{html.escape(row['problem_id'])}</b> {html.escape(facts)}</summary>{body}</details>"
