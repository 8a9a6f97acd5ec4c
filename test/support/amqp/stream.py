"""Frames over a socket."""

import os
import select
import socket
import struct
import time

from .errors import DEFAULT_TIMEOUT, TIME_FACTOR, ProtocolError, SocketClosed, Timeout
from .frames import Frame, frame


def open_socket(address, timeout=DEFAULT_TIMEOUT):
    """A connected blocking socket. Addresses: "/path", "host:port", ("host", port)."""
    if isinstance(address, (str, os.PathLike)) and os.fspath(address).startswith("/"):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.settimeout(timeout * TIME_FACTOR)
        sock.connect(os.fspath(address))
        return sock
    if isinstance(address, str):
        host, _, port = address.rpartition(":")
        address = (host, int(port))
    sock = socket.create_connection(address, timeout=timeout * TIME_FACTOR)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


class FrameStream:
    """Frames in and out of a connected socket. Shared by the client and by the scripted broker."""

    def __init__(self, sock):
        self.sock = sock
        self._buffer = bytearray()
        self._at = 0
        self.eof = False

    def send_raw(self, data, timeout=None):
        """Sends all bytes; raises Timeout when the peer does not take them in time."""
        self.sock.settimeout((timeout or 60) * TIME_FACTOR)
        try:
            self.sock.sendall(data)
        except socket.timeout:
            raise Timeout(f"the peer does not read: {len(data)} bytes could not be sent") from None
        except OSError as error:
            raise SocketClosed(f"sending failed: {error}") from None

    def send_frame(self, kind, channel, payload):
        self.send_raw(frame(kind, channel, payload))

    def _fill(self, deadline):
        """Reads what there is; False at the deadline."""
        while True:
            left = deadline - time.monotonic()
            ready, _, _ = select.select([self.sock], [], [], max(0, left))
            if not ready:
                return False
            try:
                data = self.sock.recv(1 << 18)
            except (ConnectionResetError, BrokenPipeError):
                data = b""
            if not data:
                self.eof = True
                raise SocketClosed("the peer closed the socket")
            if self._at > 1 << 20:
                del self._buffer[:self._at]
                self._at = 0
            self._buffer += data
            return True

    def read_exactly(self, count, timeout=DEFAULT_TIMEOUT):
        deadline = time.monotonic() + timeout * TIME_FACTOR
        while len(self._buffer) - self._at < count:
            if not self._fill(deadline):
                raise Timeout(f"{count} bytes wanted, {len(self._buffer) - self._at} came")
        data = bytes(self._buffer[self._at:self._at + count])
        self._at += count
        return data

    def read_frame(self, timeout=DEFAULT_TIMEOUT):
        """The next frame, heartbeats included."""
        deadline = time.monotonic() + timeout * TIME_FACTOR
        while True:
            have = len(self._buffer) - self._at
            if have >= 7:
                if self._buffer[self._at:self._at + 4] == b"AMQP":
                    raise ProtocolError("the peer answered with a protocol header: "
                                        f"{bytes(self._buffer[self._at:self._at + 8])!r}")
                kind, channel, size = struct.unpack_from("!BHI", self._buffer, self._at)
                if have >= size + 8:
                    start = self._at + 7
                    payload = bytes(self._buffer[start:start + size])
                    if self._buffer[start + size] != 0xCE:
                        raise ProtocolError("a frame without its end octet")
                    self._at = start + size + 1
                    if self._at == len(self._buffer):
                        self._buffer.clear()
                        self._at = 0
                    return Frame(kind, channel, payload)
            if not self._fill(deadline):
                raise Timeout("no frame in time")

    def expect_closed(self, timeout=DEFAULT_TIMEOUT):
        """Waits until the peer closes the socket; what it still sends is read and returned as frames."""
        frames = []
        deadline = time.monotonic() + timeout * TIME_FACTOR
        while True:
            try:
                frames.append(self.read_frame(max(0.001, deadline - time.monotonic()) / TIME_FACTOR))
            except SocketClosed:
                return frames
            except Timeout:
                raise Timeout(f"the peer did not close the socket; it sent {frames!r}") from None
