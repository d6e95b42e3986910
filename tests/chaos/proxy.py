"""A TCP proxy for HTTP that drops connections, delays, stalls, and flips bits in bodies, by a seed."""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from collections import Counter
from dataclasses import dataclass
from typing import Self

_CHUNK = 1 << 16
_HEADS = (b"HTTP/", b"GET ", b"PUT ", b"POST ", b"HEAD ", b"DELETE ")


@dataclass(frozen=True)
class Faults:
    """The probability of each fault: for a message's head, for the beginning of its body, for each further MiB."""

    drop: float = 0.0
    """Cut the connection after part of the piece."""
    delay: float = 0.0
    """Wait up to `delay_s`."""
    corrupt_requests: float = 0.0
    """Flip one bit of the body."""
    corrupt_answers: float = 0.0
    delay_s: float = 0.2


class Proxy:
    """A context manager; `port` is where it listens, `happened` counts the faults so far."""

    def __init__(self, upstream: int, faults: Faults, seed: int = 0) -> None:
        self._upstream, self._faults, self._random = upstream, faults, random.Random(seed)
        self.happened: Counter[str] = Counter()
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _serve(self) -> None:
        server = self._loop.run_until_complete(asyncio.start_server(self._connection, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        server.close()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.CancelledError):
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._upstream)
            ways = [
                asyncio.ensure_future(self._pipe(reader, up_writer, self._faults.corrupt_requests, "request")),
                asyncio.ensure_future(self._pipe(up_reader, writer, self._faults.corrupt_answers, "answer")),
            ]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
            up_writer.transport.abort()
        writer.transport.abort()

    async def _pipe(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, corrupt: float, direction: str
    ) -> None:
        since_head = 0
        with contextlib.suppress(OSError):
            while data := await reader.read(_CHUNK):
                since_head = 0 if data.startswith(_HEADS) else since_head + 1
                share = 1.0 if since_head < 2 else len(data) / (1 << 20)
                if self._random.random() < self._faults.delay * share:
                    self.happened["delay"] += 1
                    await asyncio.sleep(self._random.random() * self._faults.delay_s)
                if self._random.random() < self._faults.drop * share:
                    self.happened["drop"] += 1
                    writer.write(data[: self._random.randrange(len(data))])
                    await writer.drain()
                    return
                if self._random.random() < corrupt * share:
                    data = self._flipped(data, direction)
                writer.write(data)
                await writer.drain()

    def _flipped(self, data: bytes, direction: str) -> bytes:
        """One bit of the body another way; a piece that starts with a head is spared up to the head's end."""
        is_head = data.startswith(_HEADS)
        start = data.find(b"\r\n\r\n") + 4 if is_head else 0
        if (is_head and start < 4) or start >= len(data):
            return data
        at = self._random.randrange(start, len(data))
        self.happened[f"corrupt {direction}"] += 1
        return data[:at] + bytes([data[at] ^ (1 << self._random.randrange(8))]) + data[at + 1 :]
