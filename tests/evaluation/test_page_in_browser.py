"""The page of a large evaluation: bounded in size, and its links and filters clicked in a real browser."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from components.evaluation.numbers import summarize
from components.evaluation.output import About, browsed_problems, render_page
from components.evaluation.samples import Graded
from tests.browser import needs_browser, outputs
from tests.evaluation.large import large

CLICKS = """<script>
const seen = [];
const visible = () => [...document.querySelectorAll("details.problem:not([hidden])")];
function choose(name, value) {
  const control = document.querySelector(`[data-filter=${name}]`);
  control.value = value;
  control.dispatchEvent(new Event("input"));
  return visible().length;
}
seen.push(["all", visible().length]);
for (const [name, value] of [["verdict", "TLE"], ["difficulty", "hard"], ["modes", "differ"]]) {
  seen.push([name, choose(name, value)]);
  choose(name, "");
}
choose("text", "Problem 17.");
seen.push(["text", visible().map((problem) => problem.id)]);
const anchors = [...document.querySelectorAll("nav a")].map((a) => a.getAttribute("href").slice(1));
seen.push(["nav", anchors.filter((id) => !document.getElementById(id))]);
const link = document.querySelector("#modes ~ details a");
addEventListener("hashchange", () => setTimeout(() => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  seen.push(["link", [target.open, target.hidden, target.dataset.modes]]);
  const out = document.createElement("output");
  out.textContent = JSON.stringify(Object.fromEntries(seen));
  document.body.append(out);
}, 50));
link.click();
</script>"""


@pytest.fixture(scope="module")
def graded() -> Graded:
    return large()


@pytest.fixture(scope="module")
def page(graded: Graded) -> str:
    result = summarize(graded, pass_k=[1, 16], confidence=0.95, mode="real") | {"label": "large"}
    return render_page(result, graded, About("large", "models/x", "T 0.6", "2024-09-30"))


def test_page_of_279_problems_with_16_answers_shows_every_problem_within_four_megabytes(page: str) -> None:
    assert len(page.encode()) < 4 << 20
    assert page.count('<details class="problem"') == 279
    assert "http" not in page.replace("http://www.w3.org", "")


def test_browser_of_very_long_answers_is_bounded_and_shows_each_verdict_once_before_another(graded: Graded) -> None:
    long = [sample | {"program": "x = 1\n" * 20_000} for sample in graded.samples]
    problems = browsed_problems(Graded(graded.questions, long, 0), seed=1)
    assert sum(len(sample["program"]) for problem in problems for sample in problem["samples"]) < 6_000_000
    assert 100 < len(problems) < 279
    first = problems[0]
    assert len({sample["verdict"] for sample in first["samples"]}) == min(4, len(first["verdicts"]))
    assert sum(first["verdicts"].values()) == first["answers"] == 16


@needs_browser
def test_links_and_filters_do_what_they_say(page: str, graded: Graded, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(page.replace("</body>", f"{CLICKS}</body>"))
    [found] = outputs(tmp_path / "page.html", "--virtual-time-budget=20000", timeout_s=240)
    seen = json.loads(found.replace("&quot;", '"').replace("&amp;", "&"))
    slow = {sample["problem_id"] for sample in graded.samples if sample["verdict"] == "TLE"}
    differ = {sample["problem_id"] for sample in graded.samples if sample["verdict"] != sample["other_verdict"]}
    assert seen["all"] == 279
    assert (seen["verdict"], seen["difficulty"], seen["modes"]) == (len(slow), 93, len(differ))
    assert seen["text"] == ["p-livecodebench/abc317_d"]
    assert seen["nav"] == []
    # The link opens its problem although the text filter hides it.
    assert seen["link"] == [True, False, "differ"]
