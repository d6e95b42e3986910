"""How fast the sandbox grades: CPU time a test against a cold interpreter and the official harness, scaling, leaks.

    python benchmarks/bench_sandbox.py [--official CHECKOUT] [--programs N] [--many N]

Ratios are of CPU time in one run on one machine, the runners taken in turns, so that a busy machine slows all alike.
Writes `sandbox.json` and `sandbox.md` beside this file.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from sandbox import Grader

HERE = Path(__file__).resolve().parent
TESTS = 20

# Small contest programs, about 0.2 ms of work each; `{n}` makes every program a text of its own.
PROGRAMS = {
    "sum": "n = int(input())\na = list(map(int, input().split()))\nprint(sum(a))  # {n}",
    "sort": "n = int(input())\na = sorted(map(int, input().split()))\nprint(*a)  # {n}",
    "prefix sums": "from itertools import accumulate\n"
    "n = int(input())\nprint(*accumulate(map(int, input().split())))  # {n}",
    "gcd": "from math import gcd\nfrom functools import reduce\ninput()\n"
    "print(reduce(gcd, map(int, input().split())))  # {n}",
    "knapsack": "n = int(input())\na = list(map(int, input().split()))\nd = [0] * 51\nfor w in a:\n"
    "    for j in range(50, w - 1, -1):\n        d[j] = max(d[j], d[j - w] + w)\nprint(d[50])  # {n}",
    "sieve": "n = 300\ninput()\ninput()\ns = [True] * n\nfor i in range(2, n):\n    if s[i]:\n"
    "        for j in range(i * i, n, i):\n            s[j] = False\nprint(sum(s) - 2)  # {n}",
    "counter": "from collections import Counter\ninput()\nprint(Counter(input().split()).most_common(1)[0][1])  # {n}",
    "heap": "import heapq\ninput()\nh = list(map(int, input().split()))\nheapq.heapify(h)\nt = 0\nwhile len(h) > 1:\n"
    "    s = heapq.heappop(h) + heapq.heappop(h)\n    t += s\n    heapq.heappush(h, s)\nprint(t)  # {n}",
    "bfs": "from collections import deque\nn = int(input())\na = list(map(int, input().split()))\n"
    "g = [[(i + x) % n for x in a] for i in range(n)]\nd = {{0: 0}}\nq = deque([0])\nwhile q:\n    u = q.popleft()\n"
    "    for v in g[u]:\n        if v not in d:\n            d[v] = d[u] + 1\n            q.append(v)\n"
    "print(max(d.values()))  # {n}",
    "a+b": "input()\nprint(sum(map(int, input().split()[:2])))  # {n}",
}


@dataclass
class Cost:
    """CPU and wall seconds of one runner over some tests."""

    cpu_s: float
    wall_s: float
    tests: int

    def cpu_ms_a_test(self) -> float:
        """The unit of the targets."""
        return 1e3 * self.cpu_s / self.tests


def inputs() -> list[str]:
    """Twenty inputs of twelve numbers each."""
    return [f"12\n{' '.join(str((7 * i + 3 * j * j) % 40 + 1) for j in range(12))}\n" for i in range(TESTS)]


def reference_outputs(code: str) -> list[str]:
    """What a program prints on each input, by a plain interpreter."""
    return [
        subprocess.run(
            [sys.executable, "-I", "-S", "-c", code], input=text, capture_output=True, text=True, check=True
        ).stdout
        for text in inputs()
    ]


def make_lines(programs: int) -> list[dict[str, Any]]:
    """Right programs with twenty tests each, every one a text of its own."""
    kinds = {name: reference_outputs(code.format(n=0)) for name, code in PROGRAMS.items()}
    lines = []
    for n in range(programs):
        name = list(PROGRAMS)[n % len(PROGRAMS)]
        tests = [
            {"kind": "stdin", "input": given, "output": expected}
            for given, expected in zip(inputs(), kinds[name], strict=True)
        ]
        lines.append({"id": n, "code": PROGRAMS[name].format(n=n), "tests": tests, "time_limit_s": 6})
    return lines


def cpu_of_everything() -> float:
    """CPU seconds of this process, of children already reaped, and of those that live."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    gone = resource.getrusage(resource.RUSAGE_CHILDREN)
    total = own.ru_utime + own.ru_stime + gone.ru_utime + gone.ru_stime
    for child in psutil.Process().children(recursive=True):
        times = child.cpu_times()
        total += times.user + times.system + times.children_user + times.children_system
    return total


def measured(work: Callable[[], int]) -> Cost:
    """Run `work`, which returns the number of tests it ran."""
    cpu, wall = cpu_of_everything(), time.perf_counter()
    tests = work()
    return Cost(cpu_of_everything() - cpu, time.perf_counter() - wall, tests)


def run_cold(lines: list[dict[str, Any]]) -> int:
    """A new `python -I -S` a test, the way of the simplest graders."""
    for line in lines:
        for test in line["tests"]:
            command = [sys.executable, "-I", "-S", "-c", line["code"]]
            done = subprocess.run(command, input=test["input"], capture_output=True, text=True, check=True)
            assert done.stdout.split() == test["output"].split()
    return sum(len(line["tests"]) for line in lines)


def run_sandbox(grader: Grader, lines: list[dict[str, Any]]) -> int:
    """The sandbox, started before."""
    for verdict in grader.grade(lines):
        assert verdict["verdict"] == "AC", verdict
    return sum(len(line["tests"]) for line in lines)


OFFICIAL_SCRIPT = """
import json, resource, sys, time
from lcb_runner.evaluation.compute_code_generation_metrics import evaluate_generations
def cpu():
    a, b = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return a.ru_utime + a.ru_stime + b.ru_utime + b.ru_stime
if __name__ == "__main__":
    rows = json.load(sys.stdin)
    samples = [{"input_output": json.dumps({"inputs": [t["input"] for t in r["tests"]],
                "outputs": [t["output"] for t in r["tests"]], "fn_name": None})} for r in rows]
    before, wall = cpu(), time.perf_counter()
    results, _ = evaluate_generations(samples, [[r["code"]] for r in rows], num_process_evaluate=int(sys.argv[1]))
    assert all(all(e is True for e in results[i][0]) for i in range(len(rows)))
    print("RESULT", cpu() - before, time.perf_counter() - wall)
"""


def run_official(checkout: str, lines: list[dict[str, Any]], workers: int) -> Cost:
    """The official LiveCodeBench harness; its own imports are not counted."""
    environment = {"PYTHONPATH": str(Path(checkout).resolve()), "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, "-c", OFFICIAL_SCRIPT, str(workers)],
        input=json.dumps(lines), capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    if done.returncode:
        # Its limits are wall time: on a machine too busy it fails right programs.
        raise RuntimeError(f"the official harness failed: {done.stderr.strip()[-300:]}")
    _, cpu, wall = next(line for line in done.stdout.splitlines() if line.startswith("RESULT")).split()
    return Cost(float(cpu), float(wall), sum(len(line["tests"]) for line in lines))


def speed(programs: int, official: str | None, rounds: int) -> dict[str, Any]:
    """CPU milliseconds a test of each runner, the median of some rounds taken in turns."""
    lines = make_lines(programs)
    few = lines[: max(1, programs // 5)]
    costs: dict[str, list[Cost]] = {"sandbox": [], "cold python -I -S": []}
    if official:
        costs["official LiveCodeBench harness"] = []
    with Grader(workers=2) as grader:
        for n in range(rounds):
            fresh = [line | {"code": line["code"] + f"\n# round {n}"} for line in lines]
            costs["sandbox"].append(measured(lambda f=fresh: run_sandbox(grader, f)))  # type: ignore[misc]
            costs["cold python -I -S"].append(measured(lambda: run_cold(few)))
            if official:
                costs["official LiveCodeBench harness"].append(run_official(official, few, 2))
    table = {
        name: {
            "cpu_ms_a_test": statistics.median(cost.cpu_ms_a_test() for cost in each),
            "tests_a_second": statistics.median(cost.tests / cost.wall_s for cost in each),
        }
        for name, each in costs.items()
    }
    ours = table["sandbox"]["cpu_ms_a_test"]
    for row in table.values():
        row["times_the_sandbox"] = row["cpu_ms_a_test"] / ours
    return {"programs": programs, "tests_each": TESTS, "rounds": rounds, "runners": table}


# Run apart, since what a process locks away it cannot take back: forks with and without a child's last layers, then the
# same system call before and after the filter.
LAYERS_SCRIPT = """
import os, resource, sys, time
from sandbox.inside import lockdown
lock, me = lockdown.ChildLock(), os.getpid()
def cpu():
    a, b = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return a.ru_utime + a.ru_stime + b.ru_utime + b.ru_stime
def forks(locked, count):
    before = cpu()
    for _ in range(count):
        pid = os.fork()
        if pid == 0:
            if locked:
                lock.enter(me, 1 << 30, 100, 1 << 24)
            os._exit(0)
        os.waitpid(pid, 0)
    return (cpu() - before) / count
def calls(count=20000):
    before = time.thread_time()
    for _ in range(count):
        os.getppid()
    return (time.thread_time() - before) / count
forks(False, 50)
bare, locked = forks(False, 300), forks(True, 300)
if os.fork() == 0:
    lockdown._prctl(38, 1)
    before = calls()
    lock.enter(me, 1 << 30, 100, 1 << 24)
    os.write(1, f"{calls() - before}".encode())
    os._exit(0)
os.wait()
sys.stdout.write(f" {locked - bare}")
"""
SYSTEM_CALLS_A_TEST = 40
"""Of a small program in streamed mode, text layers over fds 0 to 2 included; counted once with strace, rounded up."""


def layers(cpu_ms_a_program: float) -> dict[str, float]:
    """What the layers cost: entering them once a program, and the filter at every system call."""
    environment = {"PYTHONPATH": str(HERE.parent)}
    done = subprocess.run(
        [sys.executable, "-c", LAYERS_SCRIPT], capture_output=True, text=True, check=True, env=environment
    )
    a_call, entering = (max(0.0, float(value)) for value in done.stdout.split())
    cost_ms = 1e3 * (entering + TESTS * SYSTEM_CALLS_A_TEST * a_call)
    return {
        "entering_ms": 1e3 * entering,
        "filter_us_a_call": 1e6 * a_call,
        "ms_a_program": cost_ms,
        "share": cost_ms / cpu_ms_a_program,
    }


def scaling(programs: int) -> dict[str, Any]:
    """Tests a second with one lane and with one a core, and the judge's own CPU time a test."""
    lines = make_lines(programs)
    rates, judge_ms = {}, 0.0
    for workers in dict.fromkeys((1, len(os.sched_getaffinity(0)))):
        with Grader(workers=workers) as grader:
            own = time.process_time()
            cost = measured(lambda g=grader: run_sandbox(g, lines))  # type: ignore[misc]
            judge_ms = 1e3 * (time.process_time() - own) / cost.tests
            rates[str(workers)] = cost.tests / cost.wall_s
    return {"tests_a_second_by_lanes": rates, "judge_cpu_ms_a_test": judge_ms, "load": os.getloadavg()[0]}


def descriptors() -> int:
    """Open descriptors of this process."""
    return len(os.listdir("/proc/self/fd"))


def many(count: int) -> dict[str, Any]:
    """So many different programs in one call: memory, processes and descriptors before and after."""
    tests = [{"kind": "stdin", "input": f"{i}\n", "output": f"{i + 1}\n"} for i in range(3)]

    def programs() -> Iterator[dict[str, Any]]:
        for n in range(count):
            wrong = n % 3 == 2
            yield {"id": n, "code": f"print(int(input()) + {2 if wrong else 1})  # {n}", "tests": tests}

    process = psutil.Process()
    with Grader(workers=2) as grader:
        list(grader.grade({"id": n, "code": f"print({n})", "tests": tests} for n in range(200)))
        before, fds = process.memory_info().rss, descriptors()
        start, verdicts, peak = time.perf_counter(), 0, 0
        for verdict in grader.grade(programs()):
            verdicts += 1
            assert verdict["verdict"] == ("WA" if verdict["id"] % 3 == 2 else "AC")
            if verdicts % 500 == 0:
                peak = max(peak, process.memory_info().rss)
        seconds = time.perf_counter() - start
        fds_growth = descriptors() - fds
        zombies = [c for c in process.children(recursive=True) if c.status() == psutil.STATUS_ZOMBIE]
    return {
        "programs": verdicts,
        "seconds": seconds,
        "memory_growth_mb": (peak - before) / 2**20,
        "descriptors_growth": fds_growth,
        "zombies": len(zombies),
        "processes_left": len(process.children(recursive=True)),
    }


def as_markdown(result: dict[str, Any]) -> str:
    """The results as tables."""
    rows = ["| runner | CPU ms a test | tests a second | times the sandbox's CPU |", "|---|---|---|---|"]
    for name, row in result["speed"]["runners"].items():
        cells = (row["cpu_ms_a_test"], row["tests_a_second"], row["times_the_sandbox"])
        rows.append(f"| {name} | {cells[0]:.3f} | {cells[1]:.0f} | {cells[2]:.1f} |")
    cost, flat, scale = result["layers"], result["many"], result["scaling"]
    lanes = ", ".join(f"{n}: {rate:.0f}" for n, rate in scale["tests_a_second_by_lanes"].items())
    return "\n".join(
        [
            "# The sandbox's speed",
            "",
            f"{result['speed']['programs']} programs of {TESTS} tests, {result['speed']['rounds']} rounds in turns; "
            f"{result['machine']}, load {scale['load']:.1f} at the end.",
            "",
            *rows,
            "",
            "| what | value |",
            "|---|---|",
            f"| the layers, ms a program | {cost['ms_a_program']:.3f} ({100 * cost['share']:.1f} % of grading it) |",
            f"| tests a second by lanes | {lanes} |",
            f"| the judge's CPU ms a test | {scale['judge_cpu_ms_a_test']:.3f} |",
            f"| {flat['programs']} programs in one call | {flat['seconds']:.0f} s |",
            f"| … memory growth | {flat['memory_growth_mb']:+.1f} MiB |",
            f"| … descriptors more than before | {flat['descriptors_growth']} |",
            f"| … zombies, processes left | {flat['zombies']}, {flat['processes_left']} |",
            "",
        ]
    )


def main() -> None:
    """Run everything and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--official", metavar="CHECKOUT", help="the official LiveCodeBench repository")
    parser.add_argument("--programs", type=int, default=100, help="programs of twenty tests (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds, of which the median counts")
    parser.add_argument("--many", type=int, default=10_000, help="programs in one call (default: %(default)s)")
    options = parser.parse_args()
    result: dict[str, Any] = {
        "machine": f"{platform.system()} {platform.release()}, {len(os.sched_getaffinity(0))} cores, "
        f"Python {platform.python_version()}",
        "speed": speed(options.programs, options.official, options.rounds),
    }
    result["layers"] = layers(TESTS * result["speed"]["runners"]["sandbox"]["cpu_ms_a_test"])
    result["scaling"] = scaling(options.programs)
    result["many"] = many(options.many)
    (HERE / "sandbox.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    (HERE / "sandbox.md").write_text(as_markdown(result), encoding="utf-8")
    print(as_markdown(result))


if __name__ == "__main__":
    main()
