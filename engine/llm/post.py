"""The worker's connections: a thread that takes clients in, cuts their bytes into messages and carries answers back.

It answers what needs no model by itself, tells when nobody is left, and then ends the process: at once when its one
client was a pair of pipes, after a time without clients when they come by a socket. Knows no model.
"""

from __future__ import annotations

import contextlib
import os
import queue
import selectors
import socket
import threading
import time
from collections.abc import Callable

import msgspec

from gsum.engine.executors.channel import Lines, OversizedLine
from gsum.engine.executors.runtime import LOG_BYTES, Runtime, require_own
from gsum.engine.llm.wire import TO_WORKER, Ask, Drop, FromWorker, Hello, Probe, Status, Stop

_CHUNK = 1 << 20
_TICK_SECONDS = 1.0
_FIRST_SECONDS = 60.0
"""How long a worker waits for its first greeting."""
STANDARD_ERROR = 2


class Letter(msgspec.Struct, frozen=True):
    """What a client says to the model's thread. Null: it is gone."""

    client: int
    message: Hello | Ask | Drop | None


class Tally(msgspec.Struct):
    """What the model's thread lets others know. Written by it alone, but for `idle_seconds`."""

    toolchain: str = ""
    device: str = ""
    ready: bool = False
    at_hand: int = 0
    served: int = 0
    idle_seconds: int = 0


class _Client(msgspec.Struct, eq=False):
    reading: int
    writing: int
    sock: socket.socket | None
    incoming: Lines
    outgoing: bytearray
    greeted: bool = False
    watching: bool = False
    """It only asked how the worker is: no reason to stay."""


class Door(msgspec.Struct, frozen=True):
    """Where clients come in: a listening socket, and its name in the folder of sockets."""

    listener: socket.socket
    runtime: Runtime
    name: str
    inode: int | None


class Post:
    """The connections of a worker. `inbox` is for the model's thread, which answers by `send`."""

    def __init__(
        self,
        tally: Tally,
        describe: Callable[[int, float, float, bool], Status],
        *,
        door: Door | None = None,
        pipes: tuple[int, int] | None = None,
    ) -> None:
        self.inbox: queue.SimpleQueue[Letter] = queue.SimpleQueue()
        self._tally = tally
        self._describe = describe
        self._door = door
        self._open = door is not None
        self._piped = pipes is not None
        self._clients: dict[int, _Client] = {}
        self._next = 0
        self._began = self._alone_since = time.monotonic()
        self._outbox: queue.SimpleQueue[tuple[int, FromWorker] | None] = queue.SimpleQueue()
        self._selector = selectors.DefaultSelector()
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._woken, False)
        self._selector.register(self._woken, selectors.EVENT_READ, None)
        if door is not None:
            door.listener.setblocking(False)
            self._selector.register(door.listener, selectors.EVENT_READ, None)
        if pipes is not None:
            self._take_in(*pipes, None)

    def start(self) -> None:
        """Begin to serve, in a thread of its own."""
        threading.Thread(target=self._run, daemon=True).start()

    def send(self, client: int, message: FromWorker) -> None:
        """Give a client a message, if it is still there. From the model's thread."""
        self._outbox.put((client, message))
        os.write(self._wake, b".")

    def retire(self) -> None:
        """Take no new clients, and end when the last one has gone. From the model's thread."""
        self._outbox.put(None)
        os.write(self._wake, b".")

    def _run(self) -> None:
        try:
            while True:
                for key, events in self._selector.select(_TICK_SECONDS):
                    self._serve(key, events)
                self._carry()
                self._look_around()
        except BaseException as error:
            os.write(STANDARD_ERROR, f"the worker's connections failed: {type(error).__name__}\n".encode())
            os._exit(70)

    def _serve(self, key: selectors.SelectorKey, events: int) -> None:
        if key.data is None:
            if key.fd == self._woken:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._woken, _CHUNK)
            else:
                self._accept()
            return
        number = int(key.data)
        if number in self._clients and events & selectors.EVENT_WRITE:
            self._write(number)
        if number in self._clients and events & selectors.EVENT_READ:
            self._read(number)

    def _accept(self) -> None:
        """Take in whoever waits at the door; another user's process is turned away."""
        while self._open and self._door is not None:
            try:
                sock, _ = self._door.listener.accept()
            except OSError:
                return
            try:
                require_own(sock)
            except OSError:
                sock.close()
                continue
            sock.setblocking(False)
            self._take_in(sock.fileno(), sock.fileno(), sock)

    def _take_in(self, reading: int, writing: int, sock: socket.socket | None) -> None:
        os.set_blocking(reading, False)
        os.set_blocking(writing, False)
        self._clients[self._next] = _Client(reading, writing, sock, Lines(), bytearray())
        self._selector.register(reading, selectors.EVENT_READ, self._next)
        self._next += 1

    def _read(self, number: int) -> None:
        client = self._clients[number]
        try:
            data = os.read(client.reading, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lose(number)
            return
        client.incoming.take(data)
        try:
            for line in client.incoming.complete():
                self._receive(number, client, line)
        except (OversizedLine, msgspec.DecodeError, UnicodeDecodeError):
            self._lose(number)  # it does not speak our language

    def _receive(self, number: int, client: _Client, line: bytes) -> None:
        message = TO_WORKER.decode(line)
        if isinstance(message, Probe | Stop):
            client.watching = not client.greeted
            if isinstance(message, Stop):
                if message.now:
                    self._leave()
                    os._exit(0)
                self._leave()
            self._queue(number, self._status())
            return
        if isinstance(message, Hello):
            client.greeted, client.watching = True, False
            self._tally.idle_seconds = message.idle_seconds
        elif not client.greeted:
            raise msgspec.DecodeError("asked before it greeted")
        self.inbox.put(Letter(number, message))

    def _status(self) -> Status:
        now = time.monotonic()
        clients = sum(client.greeted for client in self._clients.values())
        alone = 0.0 if clients else now - self._alone_since
        return self._describe(clients, now - self._began, alone, not self._open and not self._piped)

    def _carry(self) -> None:
        """Give clients what the model's thread has for them."""
        with contextlib.suppress(queue.Empty):
            while True:
                item = self._outbox.get_nowait()
                if item is None:
                    self._leave()
                else:
                    self._queue(*item)

    def _queue(self, number: int, message: FromWorker) -> None:
        if number in self._clients:
            self._clients[number].outgoing += msgspec.json.encode(message) + b"\n"
            self._write(number)

    def _write(self, number: int) -> None:
        client = self._clients[number]
        try:
            while client.outgoing:
                del client.outgoing[: os.write(client.writing, client.outgoing[:_CHUNK])]
        except BlockingIOError:
            pass
        except OSError:
            self._lose(number)
            return
        self._wait_to_write(number, client)

    def _wait_to_write(self, number: int, client: _Client) -> None:
        events = selectors.EVENT_WRITE if client.outgoing else 0
        if client.reading == client.writing:
            self._selector.modify(client.reading, selectors.EVENT_READ | events, number)
            return
        registered = client.writing in self._selector.get_map()
        if events and not registered:
            self._selector.register(client.writing, events, number)
        elif not events and registered:
            self._selector.unregister(client.writing)

    def _lose(self, number: int) -> None:
        """Forget a client that has gone, and what it wanted."""
        client = self._clients.pop(number, None)
        if client is None:
            return
        for fd in {client.reading, client.writing}:
            with contextlib.suppress(KeyError):
                self._selector.unregister(fd)
        if client.sock is None:
            os._exit(0)  # the pipes' other end is gone: nobody wants the generation in progress
        client.sock.close()
        if client.greeted:
            self.inbox.put(Letter(number, None))
            self._alone_since = time.monotonic()

    def _look_around(self) -> None:
        """Empty a log that has grown, and end when nobody is left and nobody comes."""
        with contextlib.suppress(OSError):
            if self._door is not None and os.fstat(STANDARD_ERROR).st_size > LOG_BYTES:
                os.ftruncate(STANDARD_ERROR, 0)
        if self._piped or any(not client.watching for client in self._clients.values()):
            return
        if not self._open:
            os._exit(0)
        allowed = self._tally.idle_seconds if self._tally.toolchain else _FIRST_SECONDS
        if time.monotonic() - self._alone_since >= allowed and self._leave(if_alone=True):
            os._exit(0)

    def _leave(self, *, if_alone: bool = False) -> bool:
        """Close the door, under the lock: who is in front of it is taken in first, and none can come after."""
        door = self._door
        if door is None or not self._open:
            return True
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(door.runtime.lock())
            except TimeoutError:
                return False
            before = len(self._clients)
            self._accept()
            if if_alone and len(self._clients) > before:
                return False
            self._open = False
            if door.runtime.inode(door.name) == door.inode:
                door.runtime.remove(door.name)
        self._selector.unregister(door.listener)
        door.listener.close()
        return True
