"""The pages in a real browser: the filters filter, nothing is fetched. Skipped where there is no Chromium."""

from __future__ import annotations

from pathlib import Path

from components.core.page import render
from tests.browser import needs_browser, outputs

PAGE = """{% extends "base.html.j2" %}
{% import "macros.html.j2" as m with context %}
{% block content %}
{{ m.choice("verdict", "verdict", ["AC", "WA"]) }}
<input data-filter="text"><span id="shown"></span>
<details class="problem" data-verdict="AC|WA"><summary>first</summary>print(1)</details>
<details class="problem" data-verdict="WA"><summary>second</summary>print(2)</details>
<details class="problem" data-verdict="NF"><summary>third</summary>no program</details>
{% endblock %}
{% block script %}{{ m.filter_script() }}
<script>
function set(name, value) {
  const control = document.querySelector(`[data-filter=${name}]`);
  control.value = value;
  control.dispatchEvent(new Event("input"));
  const shown = [...document.querySelectorAll("details.problem:not([hidden]) summary")].map((s) => s.textContent);
  const seen = document.createElement("output");
  seen.textContent = shown.join(",") + ";" + document.getElementById("shown").textContent;
  document.body.append(seen);
}
set("verdict", "WA"); set("text", "PRINT(2)"); set("verdict", ""); set("text", "nowhere"); set("text", "");
</script>{% endblock %}
"""


@needs_browser
def test_filters_show_what_they_say(tmp_path: Path) -> None:
    (tmp_path / "probe.html.j2").write_text(PAGE)
    (tmp_path / "probe.html").write_text(render(tmp_path / "probe.html.j2", title="probe"))
    assert outputs(tmp_path / "probe.html", timeout_s=120) == [
        "first,second;2 of 3 shown",
        "second;1 of 3 shown",
        "second;1 of 3 shown",
        ";0 of 3 shown",
        "first,second,third;3 of 3 shown",
    ]
