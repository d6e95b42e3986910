"""Pages in a real browser; tests that need one are skipped where there is none."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

_CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--dump-dom",
)  # fmt: skip

needs_browser = pytest.mark.skipif(
    _CHROMIUM is None, reason="no Chromium: install the package `chromium` to click through the pages"
)


def outputs(page: Path, *flags: str, timeout_s: float) -> list[str]:
    """Open a page, and return what its scripts have put into `<output>` elements.

    Args:
        page: the HTML file; the browser's profile is made beside it.
        flags: more options of Chromium.
        timeout_s: wall-clock limit.
    """
    assert _CHROMIUM is not None
    run = subprocess.run(
        [_CHROMIUM, *_FLAGS, *flags, f"--user-data-dir={page.parent / 'profile'}", f"file://{page}"],
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )
    found = re.findall(r"<output>(.*?)</output>", run.stdout)
    assert found, run.stderr[-2000:]
    return found
