"""Programs whose verdict hangs on how they are run: the official harness's quirks, and where a real process differs.

`lcb` is the official verdict, measured with the harness itself (test_quirks runs it again where its checkout is given);
`real` is what `python sol.py < input` gives. PASS/FAIL is the whole statement: the code of a failure is in `code`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

ADD = "a, b = map(int, input().split())\nprint(a + b)"


@dataclass(frozen=True)
class Quirk:
    """One program and its verdict in both modes."""

    name: str
    lcb: bool
    real: bool
    code: str
    pairs: list[tuple[str, str]] = field(default_factory=lambda: [("1 2\n", "3\n")])
    fn_name: str | None = None
    hack: bool = False
    """The official harness pays for it; no mode here may."""

    def program(self) -> dict[str, Any]:
        """The line that the sandbox grades."""
        tests: list[dict[str, Any]] = []
        for given, expected in self.pairs:
            if self.fn_name is None:
                tests.append({"kind": "stdin", "input": given, "output": expected})
            else:
                value = json.loads(expected)
                tests.append({"kind": "function", "fn_name": self.fn_name, "input": given, "output": value})
        line: dict[str, Any] = {"id": self.name, "code": self.code, "tests": tests, "time_limit_s": 2}
        return line | ({"wrapping": "bare"} if self.fn_name else {})


def q(name: str, lcb: bool, real: bool, code: str, given: str = "1 2\n", expected: str = "3\n") -> Quirk:
    """A stdin row with one test."""
    return Quirk(name, lcb, real, code, [(given, expected)])


def out(name: str, passes: bool, printed: str, expected: str) -> Quirk:
    """A row about comparison only: the program writes fixed text."""
    return Quirk(name, passes, passes, f"import sys\nsys.stdout.write({printed!r})", [("", expected)])


def fn(name: str, lcb: bool, body: str, *pairs: tuple[str, str], real: bool | None = None, hack: bool = False) -> Quirk:
    """A functional row: `body` is the whole program, the function is f."""
    return Quirk(name, lcb, lcb if real is None else real, body, list(pairs) or [("1\n2", "3")], "f", hack)


def method(body: str) -> str:
    """A Solution with one method f(self, a, b)."""
    return "class Solution:\n    def f(self, a, b):\n        " + body.replace("\n", "\n        ")


READING = [
    q("input() basic", True, True, ADD),
    q("for line in sys.stdin", False, True,
      "import sys\nfor line in sys.stdin:\n    print(sum(map(int, line.split())))"),
    q("sys.stdin.buffer.read", True, True, "import sys\nprint(sum(map(int, sys.stdin.buffer.read().split())))"),
    q("sys.stdin.buffer.readline x2", False, True,
      "import sys\nr = sys.stdin.buffer.readline\nr()\nprint(int(r()))", "1\n2\n", "2\n"),
    q("sys.stdin.buffer.readlines", False, True,
      "import sys\nprint(len(sys.stdin.buffer.readlines()))", "1\n2\n", "2\n"),
    q("for line in sys.stdin.buffer", False, True,
      "import sys\nfor l in sys.stdin.buffer:\n    print(sum(map(int, l.split())))"),
    q("from sys import stdin; stdin.readline", True, True,
      "from sys import stdin\na = int(stdin.readline())\nb = int(stdin.readline())\nprint(a + b)", "1\n2\n"),
    q("from sys import stdin,stdout; write", False, True,
      "from sys import stdin, stdout\nstdout.write(str(sum(map(int, stdin.readline().split()))) + '\\n')"),
    q("sys.stdout.write", True, True, "import sys\nsys.stdout.write(str(sum(map(int, input().split()))))"),
    q("sys.stdout.buffer.write", False, True,
      "import sys\nsys.stdout.buffer.write(str(sum(map(int, input().split()))).encode())"),
    q("print file=sys.stdout flush", True, True,
      "import sys\nprint(sum(map(int, input().split())), file=sys.stdout, flush=True)"),
    q("open(0).read", False, True, "print(sum(map(int, open(0).read().split())))"),
    q("open('/dev/stdin')", False, True, "print(sum(map(int, open('/dev/stdin').read().split())))"),
    q("os.read(0)", False, True, "import os\nprint(sum(map(int, os.read(0, 1000).split())))"),
    q("io.BytesIO(os.read) pattern", False, True,
      "import io, os\ninput = io.BytesIO(os.read(0, os.fstat(0).st_size)).readline\nprint(int(input()) + int(input()))",
      "1\n2\n"),
    q("fileinput", True, True, "import fileinput\nfor l in fileinput.input():\n    print(sum(map(int, l.split())))"),
    q("EOFError loop, trailing nl", True, True,
      "s = 0\nwhile True:\n    try:\n        s += int(input())\n    except EOFError:\n        break\nprint(s)",
      "1\n2\n"),
    q("EOFError loop, no trailing nl", True, True,
      "s = 0\ntry:\n    while True:\n        s += int(input())\nexcept EOFError:\n    print(s)", "1\n2"),
    q("blank line mid input()", True, True,
      "a = input()\nassert input() == ''\nprint(int(a) + int(input()))", "1\n\n2\n"),
    q("readline past EOF", True, True,
      "import sys\nsys.stdin.readline()\nprint(repr(sys.stdin.readline()))", "1\n", "''"),
    q("readline keeps \\n", True, True, "import sys\nprint(len(sys.stdin.readline()))", "12\n", "3\n"),
    q("readlines", False, True, "import sys\nprint(len(sys.stdin.readlines()))", "1\n2\n", "2\n"),
    q("from sys import stdin; for line", False, True,
      "from sys import stdin\nn = 0\nfor line in stdin:\n    n += 1\nprint(n)", "1\n2\n", "2\n"),
    q("from sys import stdin; stdin.buffer.read", False, True,
      "from sys import stdin\nprint(sum(map(int, stdin.buffer.read().split())))"),
    q("from sys import stdin; readline at EOF", True, True,
      "from sys import stdin\nstdin.readline()\nprint(repr(stdin.readline().strip()))", "1\n", "''"),
    q("from sys import stdin; readline keeps nl", False, True,
      "from sys import stdin\nprint(len(stdin.readline()))", "12\n", "3\n"),
    q("from sys import stdin; read", True, True, "from sys import stdin\nprint(sum(map(int, stdin.read().split())))"),
    q("from sys import *; stdin", True, True, "from sys import *\nprint(sum(map(int, stdin.readline().split())))"),
    q("import sys as s", True, True, "import sys as s\nprint(sum(map(int, s.stdin.readline().split())))"),
    q("stdin w/o import (preamble name)", True, True, "print(sum(map(int, stdin.readline().split())))"),
    q("print end no newline + stderr", True, True,
      "import sys\nprint('noise', file=sys.stderr)\nprint(sum(map(int, input().split())), end='')"),
    q("mix input and sys.stdin.read", False, True,
      "import sys\nn = int(input())\nprint(len(sys.stdin.read().split()))", "1\n5 6\n", "2\n"),
    q("sys.stdin.readline then read", False, True,
      "import sys\nsys.stdin.readline()\nprint(len(sys.stdin.read().split()))", "1\n5 6\n", "2\n"),
    q("input then buffer.read", False, False,
      "import sys\ninput()\nprint(len(sys.stdin.buffer.read().split()))", "1\n5 6\n", "2\n"),
]  # fmt: skip

STRUCTURE = [
    q("global var", False, True, "c = 0\ndef f():\n    global c\n    c += 1\nf()\nf()\nprint(c + 1)"),
    q("global before assign", True, True, "def f():\n    global g\n    g = 3\nf()\nprint(g)"),
    q("nonlocal-like recursion", True, True, "def f(n):\n    return n if n < 2 else f(n - 1) + f(n - 2)\nprint(f(4))"),
    q("main guard + main", True, True,
      "def main():\n    print(sum(map(int, input().split())))\nif __name__ == '__main__':\n    main()"),
    q("main guard not last", False, True,
      "def main():\n    print(sum(map(int, input().split())))\nif __name__ == '__main__':\n    main()\nx = 1"),
    q("main guard with else", True, True, "if __name__ == '__main__':\n    print(3)\nelse:\n    print(4)"),
    q("from X import * inside if", False, True, "if True:\n    from math import *\nprint(int(sqrt(9)))"),
    q("exit()", True, True, "print(3)\nexit()\nprint(4)"),
    # No DIFF row of its own in the raw table, but in the summary: a real process has quit.
    q("quit()", False, True, "print(3)\nquit()\nprint(4)"),
    q("sys.exit(1) after output", True, False, "import sys\nprint(3)\nsys.exit(1)"),
    q("raise after output", False, False, "print(3)\nraise ValueError"),
    q("os._exit(0)", False, True, "import os, sys\nprint(3)\nsys.stdout.flush()\nos._exit(0)"),
    q("threading main", True, True,
      "import threading, sys\ndef main():\n    print(sum(map(int, input().split())))\nthreading.stack_size(1 << 26)\n"
      "t = threading.Thread(target=main)\nt.start()\nt.join()"),
    q("thread no join", False, True,
      "import threading, time\ndef main():\n    time.sleep(0.1)\n    print(3)\nthreading.Thread(target=main).start()"),
    q("recursion 40000", True, True,
      "def f(n):\n    return 0 if n == 0 else 1 + f(n - 1)\nprint(f(40000))", "", "40000"),
    q("big int 5000 digits", True, True, "print(int('9' * 5000) + 1)", "", "1" + "0" * 5000),
    q("big int 60000 digits", False, False, "print(10 ** 60000)", "", "1" + "0" * 60000),
    q("List w/o import (stdio)", True, True, "def f(a: List[int]) -> int:\n    return sum(a)\nprint(f([1, 2]))"),
    q("class at top + comprehension", True, True,
      "class A:\n    def __init__(self, n):\n        self.n = n\nprint(sum([A(i).n for i in range(3)]))"),
    q("import in middle", True, True, "x = 9\nimport math\nprint(int(math.sqrt(x)))"),
    q("del builtin shadow", True, True, "max = 5\ndel max\nprint(3)"),
    q("assign to name used as builtin", True, True, "sum = 0\nfor i in [1, 2]:\n    sum += i\nprint(sum)"),
    q("UnboundLocal: input rebind conditional", False, True, "if False:\n    input = None\nprint(int(input()))", "3\n"),
    q("exec/eval local scope", False, True, "exec('y = 3')\nprint(y)"),
    q("empty output expected empty", True, True, "x = 1", "", ""),
    q("empty output expected newline", True, True, "x = 1", "", "\n"),
    q("syntax error", False, False, "print((3)"),
    q("empty code", False, False, ""),
    # The raw table has real=fail here, from a prototype whose filter broke asyncio; the summary has it as the same.
    q("async main", True, True,
      "import asyncio\nasync def main():\n    print(3)\nasyncio.run(main())"),
    q("dataclass + typing top level", True, True,
      "from dataclasses import dataclass\nfrom typing import Optional\n@dataclass\nclass P:\n    x: int\n"
      "    y: Optional[int] = 2\np = P(1)\nprint(p.x + p.y)"),
    # real=fail in the raw table, by the same prototype: a real process finds the class in __main__.
    q("pickle of top-level class", False, True,
      "import pickle\nclass A:\n    x = 3\nprint(pickle.loads(pickle.dumps(A())).x)"),
    q("__name__ value", False, True, "print(__name__)", "", "__main__"),
    q("lru_cache recursive global fn", True, True,
      "from functools import lru_cache\n@lru_cache(None)\ndef f(n):\n    return n if n < 2 else f(n - 1) + f(n - 2)\n"
      "print(f(4))"),
    q("return at top-level", True, False, "print(3)\nreturn\nprint(4)"),
    q("yield/await syntax at top", True, False, "if False:\n    yield 1", "", ""),
    q("del global used in fn", True, True, "x = 3\ndef f():\n    return x\nprint(f())\ndel x"),
    q("globals() access", False, True, "n = 3\nprint(globals()['n'])"),
    q("nonlocal illegal at real top", True, False,
      "c = 0\ndef f():\n    nonlocal c\n    c += 3\nf()\nprint(c)"),
    q("recursion 10^5 pure python", True, True,
      "import sys\nsys.setrecursionlimit(10 ** 6)\ndef f(n):\n    return 0 if n == 0 else 1 + f(n - 1)\n"
      "print(f(100000))", "", "100000"),
    q("recursion 2000 default limit", True, True, "def f(n):\n    return 0 if n == 0 else 1 + f(n - 1)\nprint(f(2000))",
      "", "2000"),
    q("gcd from preamble", True, True, "print(gcd(9, 6))"),
    q("shadowing: pow 3 args", True, True, "print(pow(3, 1, 5))"),
    q("surrogate/utf8 out", True, True, "print('\\u00e9\\u4e2d')", "", "\u00e9\u4e2d\n"),
]  # fmt: skip

COMPARISON = [
    out("trailing spaces", True, "3  \n", "3\n"),
    out("leading spaces/line", True, "  3\n", "3\n"),
    out("inner double space nonnum", False, "a  b\n", "a b\n"),
    out("inner double space num", True, "1  2\n", "1 2\n"),
    out("1 vs 1.0", True, "1\n", "1.0\n"),
    out("0.1+0.2 vs 0.3", False, "0.30000000000000004\n", "0.3\n"),
    out("1e-9 diff", False, "0.3333333333\n", "0.3333333334\n"),
    out("0.50 vs 0.5", True, "0.50\n", "0.5\n"),
    out("1e3 vs 1000", True, "1e3\n", "1000\n"),
    out("1_000 vs 1000", True, "1_000\n", "1000\n"),
    out("nan vs nan", True, "nan\n", "nan\n"),
    out("NaN vs nan", False, "NaN\n", "nan\n"),
    out("inf vs Infinity", True, "inf\n", "Infinity\n"),
    out("sNaN", False, "sNaN\n", "1\n"),
    out("+5 vs 5", True, "+5\n", "5\n"),
    out("007 vs 7", True, "007\n", "7\n"),
    out("-0 vs 0", True, "-0\n", "0\n"),
    out("fullwidth digit", True, "\uff15\n", "5\n"),
    out("YES vs Yes", False, "Yes\n", "YES\n"),
    out("blank line inside", False, "1\n\n2\n", "1\n2\n"),
    out("newline vs space separated", False, "1\n2\n", "1 2\n"),
    out("CRLF expected", True, "1\n2\n", "1\r\n2\r\n"),
    out("CR output", False, "1\r2\n", "1\n2\n"),
    out("extra prefix output ok?", False, "1\n2\n3\n", "1\n2\n"),
    out("prefix only", False, "1\n", "1\n2\n"),
    out("form feed", True, "1\f\n", "1\n"),
    out("mixed text+num line", False, "Case 1: 0.50\n", "Case 1: 0.5\n"),
]

FUNCTIONS = [
    fn("fn basic", True, method("return a + b")),
    fn("fn plain def", True, "def f(a, b):\n    return a + b"),
    # LiveCodeBench gives one JSON value a line; a trailing newline is one value too many for its harness only.
    fn("fn trailing newline input", False, method("return a + b"), ("1\n2\n", "3"), real=True),
    fn("fn tuple vs list", True, method("return (a, b)"), ("1\n2", "[1, 2]")),
    fn("fn nested tuple", False, method("return [(a, b)]"), ("1\n2", "[[1, 2]]")),
    fn("fn float 0.3", False, method("return a + b"), ("0.1\n0.2", "0.3")),
    fn("fn int vs float", True, method("return float(a + b)")),
    fn("fn True vs 1", True, method("return True"), ("1\n2", "1")),
    fn("fn None vs null", True, method("return None"), ("1\n2", "null")),
    fn("fn str", True, method("return 'ab'"), ("1\n2", '"ab"')),
    fn("fn dict int keys", False, method("return {1: 2}"), ("1\n2", '{"1": 2}')),
    fn("fn set vs list", False, method("return {1, 2}"), ("1\n2", "[1, 2]")),
    fn("fn order differs", False, method("return [b, a]"), ("1\n2", "[1, 2]")),
    fn("fn numpy array", False, "import numpy as np\n" + method("return np.array([a, b])"), ("1\n2", "[1, 2]")),
    fn("fn numpy int", True, "import numpy as np\n" + method("return np.int64(a + b)")),
    fn("fn deque", False, "from collections import deque\n" + method("return deque([a, b])"), ("1\n2", "[1, 2]")),
    fn("fn generator", False, method("yield a"), ("1\n2", "[1]")),
    fn("fn in-place mutate", False, method("a.append(b)"), ("[1]\n2", "[1, 2]")),
    fn("fn state across tests", True,
       "class Solution:\n    def __init__(self):\n        self.n = 0\n    def f(self, a, b):\n        self.n += 1\n"
       "        return a + b if self.n else 0", ("1\n2", "3"), ("2\n2", "4")),
    fn("fn in class w/ other name", False, "class Sol:\n    def f(self, a, b):\n        return a + b"),
    fn("fn missing", False, "class Solution:\n    def g(self, a, b):\n        return a + b"),
    fn("fn prints noise", True, method("print('noise')\nreturn a + b")),
    # The official rule looks for the words in the text; a real reading finds the plain function.
    fn("fn class Solution in comment", False, "# class Solution\ndef f(a, b):\n    return a + b", real=True),
    fn("fn sys.exit", False, "import sys\n" + method("sys.exit(0)")),
    fn("fn toplevel sys.exit", False, "import sys\n" + method("return a + b") + "\nsys.exit(0)"),
    fn("fn os._exit", False, "import os\n" + method("os._exit(0)")),
]  # fmt: skip

_FRAMES = """import sys
f = sys._getframe()
found = None
while f is not None:
    if 'gt_out' in f.f_locals:
        found = f.f_locals['gt_out']
        break
    f = f.f_back
"""
HACKS = [
    fn("HACK __eq__ True", True, "class E:\n    def __eq__(self, o):\n        return True\n" + method("return E()"),
       real=False, hack=True),
    fn("HACK int subclass eq", True,
       "class E(int):\n    def __eq__(self, o):\n        return True\n" + method("return E(0)"), real=False, hack=True),
    fn("HACK frame read gt_out", True, "import sys\n" + method("return sys._getframe(1).f_locals['gt_out']"),
       real=False, hack=True),
    Quirk("HACK stdio frame read", True, False, _FRAMES + "print(found)", hack=True),
    fn("HACK gc read", True,
       "import gc, json\n" + method(
           "for o in gc.get_objects():\n    if type(o) is dict and 'outputs' in o and 'inputs' in o:\n"
           "        return json.loads(o['outputs'][0])"), real=False, hack=True),
    Quirk("HACK patch get_stripped_lines", True, False,
          "import sys\nfor n, m in list(sys.modules.items()):\n    if n.endswith('testing_util'):\n"
          "        m.get_stripped_lines = lambda v: ['x']\nprint('no idea')", hack=True),
    Quirk("HACK write to result list via frames", True, False,
          "import sys, os\nf = sys._getframe()\nwhile f is not None:\n"
          "    if 'result' in f.f_locals and 'metadata_list' in f.f_locals:\n"
          "        f.f_locals['result'].append([True])\n        f.f_locals['metadata_list'].append({})\n"
          "        os._exit(0)\n    f = f.f_back", hack=True),
    Quirk("HACK str subclass stdout", True, False,
          "import sys\nf = sys._getframe()\nwhile 'gt_out' not in f.f_locals:\n    f = f.f_back\n"
          "gt = f.f_locals['gt_out']\nf.f_locals['captured_output']._stringio = type('S', (), "
          "{'getvalue': lambda s: gt, 'close': lambda s: None, 'write': lambda s, t: len(t)})()", hack=True),
    Quirk("HACK alarm off + swallow", False, False,
          "import signal, time\nsignal.alarm(0)\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\n"
          "while True:\n    try:\n        time.sleep(1)\n    except BaseException:\n        pass"),
    q("slow but caught timeout", False, False,
      "import time\ntry:\n    time.sleep(20)\nexcept Exception:\n    pass\nprint('late')"),
]  # fmt: skip

ALL = [*READING, *STRUCTURE, *COMPARISON, *FUNCTIONS, *HACKS]
