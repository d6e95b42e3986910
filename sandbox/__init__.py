"""Grades untrusted Python programs against tests: safe without privilege, faithful, and fast.

from sandbox import grade, extract_code

for verdict in grade([{"id": 1, "code": code, "tests": [{"kind": "stdin", "input": "1 2", "output": "3"}]}]):
    print(verdict["verdict"])
"""

from .api import Grader, WeakSandboxError, grade
from .extract import extract_code
from .model import VERDICTS

__all__ = ["VERDICTS", "Grader", "WeakSandboxError", "extract_code", "grade"]
