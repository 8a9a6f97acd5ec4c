"""The end of a connection, a client's or a broker's: it sends methods and contents, and keeps what arrives until a test asks for it."""

import collections
import socket
import struct
import time

from .errors import DEFAULT_TIMEOUT, TIME_FACTOR, AmqpError, ChannelClosed, ConnectionClosed, Timeout
from .frames import FRAME_HEARTBEAT, HEARTBEAT, Assembler, method_frame
from .stream import FrameStream


class Peer(FrameStream):
    """`timeout` (seconds) holds for each call that waits and is given none. What arrives is in `inbox`, in its order."""

    def __init__(self, sock, timeout=DEFAULT_TIMEOUT, frame_max=131072):
        super().__init__(sock)
        self.timeout = timeout
        self.assembler = Assembler()
        self.inbox = collections.deque()
        self.frame_max = frame_max
        self.heartbeats_seen = 0
        self.last_frame_at = time.monotonic()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.abort()

    # -- sending

    def send(self, channel, name, **arguments):
        self.send_raw(method_frame(channel, name, **arguments))

    def send_heartbeat(self):
        self.send_raw(HEARTBEAT)

    # -- receiving

    def _pump(self, deadline):
        """Reads one frame; the event that it completes goes to the inbox. False at the deadline."""
        try:
            f = self.read_frame(max(0.0, deadline - time.monotonic()) / TIME_FACTOR)
        except Timeout:
            return False
        self.last_frame_at = time.monotonic()
        if f.type == FRAME_HEARTBEAT:
            self.heartbeats_seen += 1
            return True
        event = self.assembler.feed(f)
        if event is not None:
            self.inbox.append(event)
        return True

    def next_event(self, timeout=None):
        """The next method of any channel, whatever it is (closes too)."""
        deadline = self._deadline(timeout)
        while not self.inbox:
            if not self._pump(deadline):
                raise Timeout("nothing arrived in time")
        return self.inbox.popleft()

    def _deadline(self, timeout):
        return time.monotonic() + (self.timeout if timeout is None else timeout) * TIME_FACTOR

    def wait_for(self, name, channel=None, timeout=None, **match):
        """The first event with this name (or one of a tuple of names), channel and arguments; others stay in the inbox in
        their order. A channel.close on that channel, or a connection.close, is raised, unless it is what is awaited."""
        names = (name,) if isinstance(name, str) else tuple(name)
        deadline = self._deadline(timeout)
        seen = 0
        while True:
            while seen < len(self.inbox):
                event = self.inbox[seen]
                if event.name in names and channel in (None, event.channel) and \
                        all(event.args.get(k) == v for k, v in match.items()):
                    del self.inbox[seen]
                    return event
                if event.name == "connection.close":
                    del self.inbox[seen]
                    self._answer("connection.close-ok", 0)
                    raise ConnectionClosed(event)
                if event.name == "channel.close" and channel in (None, event.channel):
                    del self.inbox[seen]
                    self._answer("channel.close-ok", event.channel)
                    raise ChannelClosed(event)
                seen += 1
            if not self._pump(deadline):
                raise Timeout(f"waited for {'/'.join(names)} {match or ''} on channel {channel}; "
                              f"in the inbox: {list(self.inbox)}")

    def _answer(self, name, channel):
        try:
            self.send(channel, name)
        except AmqpError:
            pass

    def expect(self, name, channel=None, timeout=None, **match):
        """The next event of the connection (or of the channel) must be this one: for tests of order."""
        deadline = self._deadline(timeout)
        while True:
            event = next((e for e in self.inbox if channel in (None, e.channel)), None)
            if event is not None:
                break
            if not self._pump(deadline):
                raise Timeout(f"waited for {name}; nothing arrived")
        self.inbox.remove(event)
        assert event.name == name, f"expected {name}, got {event!r}"
        for key, value in match.items():
            assert event.args.get(key) == value, f"expected {key}={value!r}, got {event!r}"
        return event

    def expect_nothing(self, seconds=0.3, channel=None):
        """Nothing but heartbeats arrives (on this channel) for a while."""
        deadline = self._deadline(seconds)
        while True:
            found = [e for e in self.inbox if channel in (None, e.channel)]
            assert not found, f"expected nothing, got {found}"
            if not self._pump(deadline):
                return

    def expect_close(self, code=None, timeout=None):
        """Waits for connection.close, answers it and returns it."""
        event = self.wait_for("connection.close", 0, timeout=timeout)
        assert code in (None, event.reply_code), f"expected close {code}, got {event!r}"
        self._answer("connection.close-ok", 0)
        return event

    def expect_channel_close(self, channel, code=None, timeout=None):
        event = self.wait_for("channel.close", channel, timeout=timeout)
        assert code in (None, event.reply_code), f"expected close {code}, got {event!r}"
        self._answer("channel.close-ok", channel)
        return event

    # -- ending

    def abort(self):
        """Closes the socket, nothing said."""
        try:
            self.sock.close()
        except OSError:
            pass

    def reset(self):
        """Closes the socket with a TCP reset."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()
