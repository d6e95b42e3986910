from collections.abc import Iterator

import pytest

from tests.chaos.s3_server import S3Server


@pytest.fixture
def s3_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    """An S3 server on loopback, which is what this process then takes for S3."""
    with S3Server() as server:
        server.use(monkeypatch)
        yield server
