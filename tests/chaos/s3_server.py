"""An S3 server on loopback: moto's, which does not check what it is sent, behind a layer that does, as S3 does."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import logging
import threading
import zlib
from collections.abc import Callable, Iterable
from typing import Any, Self

import boto3
import pytest
from werkzeug.serving import make_server

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"}


class S3Server:
    """A server with one bucket, `bucket`; a context manager.

    strict: refuse a body that is short, or does not have the digests that its headers give.
    capitals: send `X-Amz-Meta-Sha256`, as servers and proxies written in Go do, where S3 sends `x-amz-meta-sha256`.
    """

    def __init__(self, *, strict: bool = True, capitals: bool = False) -> None:
        from moto.server import DomainDispatcherApplication, create_backend_app  # takes seconds

        application = DomainDispatcherApplication(create_backend_app)
        application = _checked(application) if strict else application
        application = _capitalised(application) if capitals else application
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self._server = make_server("127.0.0.1", 0, application, threaded=True)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.port = self._server.port
        self.url = f"http://127.0.0.1:{self.port}"
        self.client = boto3.client(
            "s3",
            endpoint_url=self.url,
            region_name=CREDENTIALS["AWS_DEFAULT_REGION"],
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )
        self.client.create_bucket(Bucket="bucket")

    def keys(self) -> list[str]:
        """Every key of the bucket."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket="bucket")
        return [entry["Key"] for page in pages for entry in page.get("Contents", [])]

    def objects(self) -> dict[str, bytes]:
        """Every key of the bucket and what is stored there."""
        return {key: self.client.get_object(Bucket="bucket", Key=key)["Body"].read() for key in self.keys()}

    def use(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Make it the S3 that this process talks to."""
        for name, value in {**CREDENTIALS, "S3_ENDPOINT_URL": self.url}.items():
            monkeypatch.setenv(name, value)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Stop, and forget every object: moto keeps them for the process."""
        for key in self.keys():
            self.client.delete_object(Bucket="bucket", Key=key)
        self.client.delete_bucket(Bucket="bucket")
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _checked(application: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
    def checking(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        length = int(environ.get("CONTENT_LENGTH") or 0)
        body = environ["wsgi.input"].read(length) if length else b""
        digests = {
            "HTTP_X_AMZ_CONTENT_SHA256": hashlib.sha256(body).hexdigest(),
            "HTTP_X_AMZ_CHECKSUM_CRC32": base64.b64encode(zlib.crc32(body).to_bytes(4, "big")).decode(),
            "HTTP_CONTENT_MD5": base64.b64encode(hashlib.md5(body).digest()).decode(),
        }
        wrong = [name for name, digest in digests.items() if environ.get(name, digest) != digest]
        if len(body) == length and not wrong:
            with contextlib.suppress(IndexError):  # moto falls over a head that was cut off
                return application({**environ, "wsgi.input": io.BytesIO(body)}, start_response)
        start_response("400 Bad Request", [("Content-Type", "application/xml")])
        return [b"<Error><Code>BadDigest</Code><Message>" + ", ".join(wrong).encode() + b"</Message></Error>"]

    return checking


def _capitalised(application: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
    def answering(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        def start(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            return start_response(status, [(name.title(), value) for name, value in headers], *rest)

        return application(environ, start)

    return answering
