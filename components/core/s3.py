"""Objects on S3: every request is repeated until it is answered, and every byte is checked at both ends.

What lies between may drop, delay or corrupt. An upload counts once the server's digest of what it stored is ours; a
download once its SHA-256 is the one that was uploaded with it.
"""

from __future__ import annotations

import hashlib
import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import boto3
from boto3.exceptions import Boto3Error
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, PartialCredentialsError
from urllib3.exceptions import HTTPError

from components.core.errors import UserError

PART_BYTES = 64 << 20
"""Files from this size on travel in parts of this size, several at a time."""
TRIES = 10
"""Of one request, with growing pauses between them, about a minute in all; the client itself repeats some, too."""
READ_TIMEOUT_S = 60
_LONGEST_PAUSE_S = 15.0
_FINAL_CODES = {"NoSuchBucket", "AccessDenied", "InvalidAccessKeyId", "InvalidBucketName"}
_READ = 1 << 20
# ValueError and KeyError: an answer that was corrupted on its way can break its parser anywhere.
_TRANSIENT = (BotoCoreError, ClientError, Boto3Error, HTTPError, ConnectionError, TimeoutError, ValueError, KeyError)

T = TypeVar("T")


class Corrupted(ValueError):
    """What arrived is not what was sent."""


def endpoint() -> str | None:
    """The S3 server to talk to; None is Amazon's."""
    return os.environ.get("S3_ENDPOINT_URL") or None


def persist(what: str, action: Callable[[], T]) -> T:
    """Call `action` until it succeeds; it must be safe to repeat.

    Raises:
        UserError: it cannot succeed (no such bucket, no access), or has failed TRIES times; names `what`.
    """
    for attempt in range(TRIES):
        try:
            return action()
        except (NoCredentialsError, PartialCredentialsError) as error:
            raise UserError(f"{what}: {error}. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.") from error
        except _TRANSIENT as error:
            last = error
            if error_code(error) in _FINAL_CODES:
                raise UserError(f"{what}: {error}. Check the bucket, the credentials and S3_ENDPOINT_URL.") from error
        if attempt < TRIES - 1:
            time.sleep(min(_LONGEST_PAUSE_S, 0.1 * 2**attempt) * random.uniform(0.5, 1))
    raise UserError(
        f"{what}: failed {TRIES} times, at last with {type(last).__name__}: {last}. Check the network and "
        "S3_ENDPOINT_URL, then rerun: finished parts are kept."
    ) from last


def error_code(error: BaseException | None) -> str:
    """S3's code for an error, also of one that another library wraps; empty if it has none."""
    while error is not None:
        if isinstance(error, ClientError):
            return str(error.response.get("Error", {}).get("Code", ""))
        error = error.__cause__ or error.__context__
    return ""


def _status(error: ClientError) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _without_expect(params: dict[str, Any], **_: Any) -> None:
    params["headers"].pop("Expect", None)


@dataclass(frozen=True)
class Digest:
    """What is known of a file before it travels."""

    sha256: str
    etag: str
    """What S3 calls an object of these bytes unless it is encrypted with a key of one's own: the MD5, or that of the
    parts' MD5s."""
    size: int

    @classmethod
    def of(cls, path: Path) -> Digest:
        """Read the file once."""
        whole, part, parts, size = hashlib.sha256(), _md5(), [], 0
        with open(path, "rb") as file:
            while data := file.read(_READ):
                whole.update(data)
                part.update(data)
                size += len(data)
                if size % PART_BYTES == 0:
                    parts.append(part.digest())
                    part = _md5()
        if size < PART_BYTES:
            return cls(whole.hexdigest(), part.hexdigest(), size)
        if size % PART_BYTES:
            parts.append(part.digest())
        return cls(whole.hexdigest(), f"{_md5(b''.join(parts)).hexdigest()}-{len(parts)}", size)


def _etag(answer: dict[str, Any]) -> str | None:
    """An object's ETag where it is made of MD5s; None if the server encrypts with a key of one's own.

    Raises KeyError if the answer has none, as one whose headers were cut off.
    """
    etag: str = answer["ETag"].strip('"')
    plain = answer.get("ServerSideEncryption", "AES256") == "AES256"
    return etag if plain and len(etag.partition("-")[0]) == 32 else None


def _md5_of(answer: dict[str, Any]) -> str | None:
    """The MD5 of an object that someone else may have uploaded, in parts of an unknown size; None if it is not told."""
    etag = _etag(answer)
    return None if etag is None or "-" in etag else etag


def _sha256_of(answer: dict[str, Any]) -> str | None:
    """The hash that `upload` left with an object. It is a header, and some servers and proxies write it `Sha256`."""
    return next((value for name, value in answer["Metadata"].items() if name.lower() == "sha256"), None)


def _md5(data: bytes = b"") -> Any:
    return hashlib.md5(data, usedforsecurity=False)


def _file_md5(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, _md5).hexdigest()


class Bucket:
    """One bucket; keys are whole keys. Every method raises UserError as `persist` does."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._client = boto3.client(
            "s3",
            endpoint_url=endpoint(),
            config=Config(
                retries={"mode": "standard", "total_max_attempts": 3},
                connect_timeout=10,
                read_timeout=READ_TIMEOUT_S,
                max_pool_connections=64,
            ),
        )
        # With it, botocore waits for a server's leave to send, and for ever if the connection ends in that very answer.
        self._client.meta.events.register_last("before-call.s3", _without_expect)
        self._transfer = TransferConfig(multipart_threshold=PART_BYTES, multipart_chunksize=PART_BYTES)
        self._plain = str(self._client.meta.endpoint_url).startswith("http://")

    def _at(self, key: str) -> str:
        return f"s3://{self.name}/{key}"

    def upload(self, local: Path, key: str) -> str:
        """Store a file whole; returns its SHA-256 in hex, which the object also carries as metadata."""
        digest = Digest.of(local)

        def attempt() -> str:
            extra = {"Metadata": {"sha256": digest.sha256}}
            self._client.upload_file(str(local), self.name, key, ExtraArgs=extra, Config=self._transfer)
            self._check_stored(key, digest)
            return digest.sha256

        return persist(self._at(key), attempt)

    def _check_stored(self, key: str, digest: Digest) -> None:
        # Not every server checks the checksums that it is sent; every one has the size and, unless it encrypts, the
        # MD5 of what it stored.
        head = self._client.head_object(Bucket=self.name, Key=key)
        if head["ContentLength"] != digest.size or _etag(head) not in (None, digest.etag):
            raise Corrupted("the server stored other bytes than were sent")
        if _sha256_of(head) != digest.sha256:
            raise Corrupted("another process wrote the same object meanwhile")

    def create(self, data: bytes, key: str) -> bool:
        """Store a small object only if there is none; False if there is one with other bytes."""
        sha256 = hashlib.sha256(data).hexdigest()
        digest = Digest(sha256, _md5(data).hexdigest(), len(data))

        def attempt() -> bool:
            try:
                self._client.put_object(
                    Bucket=self.name, Key=key, Body=data, Metadata={"sha256": sha256}, IfNoneMatch="*"
                )
            except ClientError as error:
                if _status(error) != 412:
                    raise
                # It may be our own: the answer to an earlier try can have been lost on its way. Or it is what the
                # server made of a request that was cut off: nobody can read that, so it gives way.
                try:
                    stored = self.read(key, ours=True)
                except UserError as error:
                    self._client.delete_object(Bucket=self.name, Key=key)
                    raise Corrupted("what was stored is not whole") from error
                if stored != data:
                    return False
            try:
                self._check_stored(key, digest)
            except Corrupted:
                self._client.delete_object(Bucket=self.name, Key=key)
                raise
            return True

        return persist(self._at(key), attempt)

    def read(self, key: str, *, ours: bool = False) -> bytes | None:
        """The bytes of a small object, or None if there is none. `ours`: refuse one without the hash that we add."""

        def attempt() -> bytes | None:
            try:
                answer = self._client.get_object(Bucket=self.name, Key=key)
            except ClientError as error:
                if _status(error) == 404 and error_code(error) not in _FINAL_CODES:
                    return None
                raise
            data: bytes = answer["Body"].read()
            # An answer whose headers were cut off lacks some, and its body is no body: the ETag must be there.
            md5, wanted = _md5_of(answer), _sha256_of(answer)
            if ours or wanted:
                right = hashlib.sha256(data).hexdigest() == wanted
            else:
                right = md5 in (None, _md5(data).hexdigest())
            if not right:
                raise Corrupted("the bytes are not those that were uploaded")
            return data

        return persist(self._at(key), attempt)

    def sha256(self, key: str) -> str | None:
        """The hash that `upload` left with an object; None if someone else put it there."""
        return _sha256_of(persist(self._at(key), lambda: self._client.head_object(Bucket=self.name, Key=key)))

    def download(self, key: str, local: Path, sha256: str | None = None) -> None:
        """Fetch an object to a local path, where it appears only when it is whole and right.

        Args:
            key: the object.
            local: where to.
            sha256: its hash in hex; None takes the one that it carries, and if it has none, its ETag's word.

        Raises:
            UserError: also when what is stored does not have that hash.
        """
        temporary = local.with_name(f".{local.name}.{os.getpid()}-{random.getrandbits(64):x}.tmp")

        def attempt() -> None:
            head = self._client.head_object(Bucket=self.name, Key=key)
            self._client.download_file(self.name, key, str(temporary), Config=self._transfer)
            digest = Digest.of(temporary)
            wanted = sha256 or _sha256_of(head)
            if digest.size != head["ContentLength"] or (wanted and digest.sha256 != wanted):
                raise Corrupted(f"the bytes are not those that were uploaded (SHA-256 {wanted})")
            if not wanted and (md5 := _md5_of(head)) not in (None, _file_md5(temporary)):
                raise Corrupted(f"the bytes are not those that were uploaded (MD5 {md5})")

        local.parent.mkdir(parents=True, exist_ok=True)
        try:
            persist(self._at(key), attempt)
            os.replace(temporary, local)
        finally:
            temporary.unlink(missing_ok=True)

    def entries(self, prefix: str) -> list[dict[str, Any]]:
        """Every object whose key starts with the prefix: Key, Size, ETag, in the order of their keys."""

        def attempt() -> list[dict[str, Any]]:
            pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=prefix)
            found = [entry for page in pages for entry in page.get("Contents", [])]
            return [{"Key": entry["Key"], "Size": entry["Size"], "ETag": entry["ETag"]} for entry in found]

        listed = persist(self._at(prefix), attempt)
        # A listing has no checksum. Without TLS it counts once two answers agree.
        while self._plain and (again := persist(self._at(prefix), attempt)) != listed:
            listed = again
        return listed

    def delete(self, key: str) -> None:
        """Remove an object; none is fine."""
        persist(self._at(key), lambda: self._client.delete_object(Bucket=self.name, Key=key))
