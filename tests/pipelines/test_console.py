"""What a local run leaves on the terminal."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

import pytest

from components.core.errors import UserError
from pipelines.console import quiet


def test_a_run_fails_with_the_words_of_the_step_that_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError, match=r"^rows\.jsonl row 3: no question\n"), quiet(tmp_path / "log.txt"):
        try:
            raise UserError("rows.jsonl row 3: no question")
        except UserError:
            traceback.print_exc(file=sys.stdout)
        print("a later line of another step")
        raise RuntimeError("the pipeline has failed")
    assert capsys.readouterr().out == ""
    assert "row 3" in (tmp_path / "log.txt").read_text()


def test_a_run_that_fails_without_such_words_shows_the_last_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(RuntimeError, match="failed"), quiet(tmp_path / "log.txt"):
        print("Killed")
        raise RuntimeError("the pipeline has failed")
    assert "Killed" in capsys.readouterr().out
