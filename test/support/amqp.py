"""A small AMQP 0-9-1 client for tests that look at bytes.

It hides nothing: a test may stop at any stage of the handshake, send any bytes, split a body as it likes, and gets back the
header and the header table of a message exactly as they were on the wire.

    client = amqp.connect("/run/bellhop.sock")          # or "127.0.0.1:5672", or ("127.0.0.1", 5672)
    ch = client.channel()                               # opens the next free channel
    ch.call("queue.declare", queue="q", exclusive=True)
    ch.call("confirm.select")
    ch.publish("", "q", b"body", headers={"a": 1}, message_id="m")
    ch.wait_for("basic.ack")
    ch.call("basic.consume", queue="q", consumer_tag="c")
    d = ch.deliver()                                    # d.delivery_tag, d.body, d.properties, d.headers_raw
    ch.send("basic.ack", delivery_tag=d.delivery_tag)
    client.close()

Whatever waits has a deadline. A channel.close or connection.close that arrives while a test waits for something else is raised as
ChannelClosed or ConnectionClosed (with .code, .text and .failed_method).
"""

import collections
import datetime
import decimal
import os
import select
import socket
import struct
import time

FRAME_METHOD, FRAME_HEADER, FRAME_BODY, FRAME_HEARTBEAT = 1, 2, 3, 8
FRAME_END = b"\xce"
PROTOCOL_HEADER = b"AMQP\x00\x00\x09\x01"
HEARTBEAT = b"\x08\x00\x00\x00\x00\x00\x00\xce"

# Sanitizer builds and busy machines are slower; every deadline is multiplied by this.
TIME_FACTOR = float(os.environ.get("BELLHOP_TEST_TIME_FACTOR", "1"))
DEFAULT_TIMEOUT = 15.0


class AmqpError(Exception):
    pass


class ProtocolError(AmqpError):
    """The peer broke the protocol (bad frame end, body too long, content interleaved)."""


class Timeout(AmqpError, AssertionError):
    pass


class SocketClosed(AmqpError):
    """The peer closed the socket without the closing methods."""


class Closed(AmqpError):
    def __init__(self, method):
        self.method = method
        self.channel = method.channel
        self.code = method.reply_code
        self.text = method.reply_text
        self.failed_method = METHOD_NAMES.get((method.class_id, method.method_id))
        super().__init__(f"{method.name} {self.code} {self.text!r} (because of {self.failed_method})")


class ChannelClosed(Closed):
    pass


class ConnectionClosed(Closed):
    pass


# ---- methods ---------------------------------------------------------------------------------------------------------------

_METHODS_TEXT = """
connection.start 10 10 version_major:o version_minor:o server_properties:t mechanisms:L locales:L
connection.start-ok 10 11 client_properties:t mechanism:S response:L locale:S
connection.secure 10 20 challenge:L
connection.secure-ok 10 21 response:L
connection.tune 10 30 channel_max:h frame_max:l heartbeat:h
connection.tune-ok 10 31 channel_max:h frame_max:l heartbeat:h
connection.open 10 40 virtual_host:S reserved1:S insist:b
connection.open-ok 10 41 reserved1:S
connection.close 10 50 reply_code:h reply_text:S class_id:h method_id:h
connection.close-ok 10 51
connection.blocked 10 60 reason:S
connection.unblocked 10 61
connection.update-secret 10 70 new_secret:L reason:S
connection.update-secret-ok 10 71
channel.open 20 10 reserved1:S
channel.open-ok 20 11 reserved1:L
channel.flow 20 20 active:b
channel.flow-ok 20 21 active:b
channel.close 20 40 reply_code:h reply_text:S class_id:h method_id:h
channel.close-ok 20 41
exchange.declare 40 10 reserved1:h exchange:S type:S passive:b durable:b auto_delete:b internal:b nowait:b arguments:t
exchange.declare-ok 40 11
exchange.delete 40 20 reserved1:h exchange:S if_unused:b nowait:b
exchange.delete-ok 40 21
exchange.bind 40 30 reserved1:h destination:S source:S routing_key:S nowait:b arguments:t
exchange.bind-ok 40 31
exchange.unbind 40 40 reserved1:h destination:S source:S routing_key:S nowait:b arguments:t
exchange.unbind-ok 40 51
queue.declare 50 10 reserved1:h queue:S passive:b durable:b exclusive:b auto_delete:b nowait:b arguments:t
queue.declare-ok 50 11 queue:S message_count:l consumer_count:l
queue.bind 50 20 reserved1:h queue:S exchange:S routing_key:S nowait:b arguments:t
queue.bind-ok 50 21
queue.purge 50 30 reserved1:h queue:S nowait:b
queue.purge-ok 50 31 message_count:l
queue.delete 50 40 reserved1:h queue:S if_unused:b if_empty:b nowait:b
queue.delete-ok 50 41 message_count:l
queue.unbind 50 50 reserved1:h queue:S exchange:S routing_key:S arguments:t
queue.unbind-ok 50 51
basic.qos 60 10 prefetch_size:l prefetch_count:h global:b
basic.qos-ok 60 11
basic.consume 60 20 reserved1:h queue:S consumer_tag:S no_local:b no_ack:b exclusive:b nowait:b arguments:t
basic.consume-ok 60 21 consumer_tag:S
basic.cancel 60 30 consumer_tag:S nowait:b
basic.cancel-ok 60 31 consumer_tag:S
basic.publish 60 40 reserved1:h exchange:S routing_key:S mandatory:b immediate:b
basic.return 60 50 reply_code:h reply_text:S exchange:S routing_key:S
basic.deliver 60 60 consumer_tag:S delivery_tag:q redelivered:b exchange:S routing_key:S
basic.get 60 70 reserved1:h queue:S no_ack:b
basic.get-ok 60 71 delivery_tag:q redelivered:b exchange:S routing_key:S message_count:l
basic.get-empty 60 72 reserved1:S
basic.ack 60 80 delivery_tag:q multiple:b
basic.reject 60 90 delivery_tag:q requeue:b
basic.recover-async 60 100 requeue:b
basic.recover 60 110 requeue:b
basic.recover-ok 60 111
basic.nack 60 120 delivery_tag:q multiple:b requeue:b
confirm.select 85 10 nowait:b
confirm.select-ok 85 11
tx.select 90 10
tx.select-ok 90 11
tx.commit 90 20
tx.commit-ok 90 21
tx.rollback 90 30
tx.rollback-ok 90 31
"""

METHODS = {}
METHOD_NAMES = {}
for _line in _METHODS_TEXT.strip().splitlines():
    _name, _class, _method, *_fields = _line.split()
    METHODS[_name] = (int(_class), int(_method), [tuple(f.split(":")) for f in _fields])
    METHOD_NAMES[(int(_class), int(_method))] = _name

CONTENT_METHODS = {"basic.deliver", "basic.get-ok", "basic.return", "basic.publish"}
_NUMBERS = {"o": "!B", "h": "!H", "l": "!I", "q": "!Q"}


def _bytes(value):
    return value.encode() if isinstance(value, str) else bytes(value)


def short_string(value):
    raw = _bytes(value)
    return bytes([len(raw)]) + raw


def long_string(value):
    raw = _bytes(value)
    return struct.pack("!I", len(raw)) + raw


def encode_method(name, **arguments):
    """The payload of a method frame. Arguments that are left out are 0, empty or false; `arguments` and properties are dicts."""
    class_id, method_id, fields = METHODS[name]
    unknown = set(arguments) - {f for f, _ in fields}
    assert not unknown, f"{name} has no argument {sorted(unknown)}"
    out = [struct.pack("!HH", class_id, method_id)]
    bits, bit_count = 0, 0

    def flush():
        nonlocal bits, bit_count
        if bit_count:
            out.append(bytes([bits]))
        bits, bit_count = 0, 0

    for field, kind in fields:
        value = arguments.get(field)
        if kind == "b":
            bits |= (1 if value else 0) << bit_count
            bit_count += 1
            continue
        flush()
        if kind in _NUMBERS:
            out.append(struct.pack(_NUMBERS[kind], value or 0))
        elif kind == "S":
            out.append(short_string(value or b""))
        elif kind == "L":
            out.append(long_string(value or b""))
        else:
            out.append(encode_table(value or {}))
    flush()
    return b"".join(out)


class Event:
    """One method as it arrived, with its content when it has one.

    The method's arguments are attributes (`event.delivery_tag`). With content: `properties` (dict), `headers` (dict or None),
    `headers_raw` (the encoded table with its length, or None), `header` (payload of the header frame), `body`,
    `body_frames` (sizes of the body frames).
    """

    def __init__(self, channel, name, args, payload):
        self.channel, self.name, self.args, self.payload = channel, name, args, payload
        self.header = self.body = self.properties = self.headers = self.headers_raw = None
        self.body_size = 0
        self.body_frames = []

    def __getattr__(self, name):
        try:
            return self.__dict__["args"][name]
        except KeyError:
            raise AttributeError(name) from None

    def set_header(self, payload):
        self.header = payload
        self.body_size, self.properties, self.headers_raw = decode_header(payload)
        self.headers = self.properties.get("headers")
        self._parts = []
        self._have = 0

    def add_body(self, payload):
        self._parts.append(payload)
        self._have += len(payload)
        self.body_frames.append(len(payload))
        if self._have > self.body_size:
            raise ProtocolError(f"{self.name}: {self._have} bytes of body, {self.body_size} announced")

    def complete(self):
        if self.name not in CONTENT_METHODS:
            return True
        if self.header is None or self._have < self.body_size:
            return False
        if self.body is None:
            self.body = b"".join(self._parts)
        return True

    def __repr__(self):
        args = ", ".join(f"{k}={v!r}" for k, v in self.args.items() if not k.startswith("reserved"))
        content = "" if self.header is None else f" properties={self.properties} body[{self.body_size}]"
        return f"<{self.channel}: {self.name}({args}){content}>"


def decode_method(channel, payload):
    key = struct.unpack_from("!HH", payload)
    name = METHOD_NAMES.get(key)
    if name is None:
        raise ProtocolError(f"unknown method {key}")
    offset, args, bit = 4, {}, 8
    for field, kind in METHODS[name][2]:
        if kind == "b":
            if bit == 8:
                bit, octet = 0, payload[offset]
                offset += 1
            args[field] = bool(octet >> bit & 1)
            bit += 1
            continue
        bit = 8
        if kind in _NUMBERS:
            (args[field],) = struct.unpack_from(_NUMBERS[kind], payload, offset)
            offset += struct.calcsize(_NUMBERS[kind])
        elif kind == "S":
            size = payload[offset]
            args[field] = payload[offset + 1:offset + 1 + size].decode("utf-8", "surrogateescape")
            offset += 1 + size
        elif kind == "L":
            (size,) = struct.unpack_from("!I", payload, offset)
            args[field] = payload[offset + 4:offset + 4 + size]
            offset += 4 + size
        else:
            (size,) = struct.unpack_from("!I", payload, offset)
            args[field] = decode_table(payload[offset:offset + 4 + size])
            offset += 4 + size
    if offset != len(payload):
        raise ProtocolError(f"{name}: {len(payload) - offset} bytes too many")
    return Event(channel, name, args, payload)


# ---- tables ----------------------------------------------------------------------------------------------------------------

class Typed(collections.namedtuple("Typed", "type value")):
    """A table value with its wire type said: Typed("b", -3). Used where Python's own types do not say which one is meant."""


_SIMPLE = {"b": "!b", "B": "!B", "s": "!h", "u": "!H", "I": "!i", "i": "!I", "l": "!q", "L": "!Q", "f": "!f", "d": "!d"}


def _typed(value):
    if isinstance(value, Typed):
        return value
    if value is None:
        return Typed("V", None)
    if isinstance(value, bool):
        return Typed("t", value)
    if isinstance(value, int):
        return Typed("I" if -2**31 <= value < 2**31 else "l", value)
    if isinstance(value, float):
        return Typed("d", value)
    if isinstance(value, str):
        return Typed("S", value)
    if isinstance(value, (bytes, bytearray)):
        return Typed("x", bytes(value))
    if isinstance(value, decimal.Decimal):
        return Typed("D", value)
    if isinstance(value, datetime.datetime):
        return Typed("T", int(value.timestamp()))
    if isinstance(value, dict):
        return Typed("F", value)
    if isinstance(value, (list, tuple)):
        return Typed("A", value)
    raise TypeError(type(value))


def encode_value(value):
    kind, value = _typed(value)
    tag = kind.encode()
    if kind == "t":
        return tag + (b"\x01" if value else b"\x00")
    if kind in _SIMPLE:
        return tag + struct.pack(_SIMPLE[kind], value)
    if kind == "T":
        return tag + struct.pack("!Q", value)
    if kind == "D":
        sign, digits, exponent = decimal.Decimal(value).as_tuple()
        number = int("".join(map(str, digits))) * (-1 if sign else 1)
        if exponent > 0:
            number, exponent = number * 10**exponent, 0
        return tag + struct.pack("!Bi", -exponent, number)
    if kind in "Sx":
        return tag + long_string(value)
    if kind == "F":
        return tag + encode_table(value)
    if kind == "A":
        raw = b"".join(map(encode_value, value))
        return tag + struct.pack("!I", len(raw)) + raw
    if kind == "V":
        return tag
    raise ValueError(kind)


def encode_table(table):
    """The encoded table with its length in front. Bytes are taken to be such a table already."""
    if isinstance(table, (bytes, bytearray)):
        return bytes(table)
    items = table.items() if isinstance(table, dict) else table
    raw = b"".join(short_string(k) + encode_value(v) for k, v in items)
    return struct.pack("!I", len(raw)) + raw


def _decode_value(raw, offset, typed):
    kind = chr(raw[offset])
    offset += 1
    if kind == "t":
        value, offset = raw[offset] != 0, offset + 1
    elif kind in _SIMPLE:
        (value,) = struct.unpack_from(_SIMPLE[kind], raw, offset)
        offset += struct.calcsize(_SIMPLE[kind])
    elif kind == "T":
        (value,) = struct.unpack_from("!Q", raw, offset)
        offset += 8
    elif kind == "D":
        scale, number = struct.unpack_from("!Bi", raw, offset)
        value, offset = decimal.Decimal(number).scaleb(-scale), offset + 5
    elif kind in "SxFA":
        (size,) = struct.unpack_from("!I", raw, offset)
        if offset + 4 + size > len(raw):
            raise ProtocolError(f"a table value of type {kind} passes the end of its table")
        part = raw[offset + 4:offset + 4 + size]
        if kind == "S":
            value = part.decode("utf-8", "surrogateescape")
        elif kind == "x":
            value = part
        elif kind == "F":
            value = decode_table(raw[offset:offset + 4 + size], typed)
        else:
            value, at = [], 0
            while at < len(part):
                item, at = _decode_value(part, at, typed)
                value.append(item)
        offset += 4 + size
    elif kind == "V":
        value = None
    else:
        raise ProtocolError(f"table value of unknown type {kind!r}")
    return (Typed(kind, value) if typed else value), offset


def decode_table(raw, typed=False):
    """A dict of an encoded table (length in front). With typed=True every value is a Typed, so that a test can compare types."""
    (size,) = struct.unpack_from("!I", raw)
    if size + 4 != len(raw):
        raise ProtocolError(f"a table of {len(raw) - 4} bytes says {size}")
    table, offset = {}, 4
    while offset < len(raw):
        length = raw[offset]
        key = raw[offset + 1:offset + 1 + length].decode("utf-8", "surrogateescape")
        table[key], offset = _decode_value(raw, offset + 1 + length, typed)
    return table


def sorted_table(raw):
    """The same encoded table with its entries in the order of their names."""
    entries, offset = [], 4
    while offset < len(raw):
        begin, length = offset, raw[offset]
        _, offset = _decode_value(raw, offset + 1 + length, True)
        entries.append((raw[begin + 1:begin + 1 + length], raw[begin:offset]))
    return raw[:4] + b"".join(entry for _, entry in sorted(entries, key=lambda e: e[0]))


# ---- content headers -------------------------------------------------------------------------------------------------------

PROPERTIES = [("content_type", "S"), ("content_encoding", "S"), ("headers", "t"), ("delivery_mode", "o"), ("priority", "o"),
              ("correlation_id", "S"), ("reply_to", "S"), ("expiration", "S"), ("message_id", "S"), ("timestamp", "q"),
              ("type", "S"), ("user_id", "S"), ("app_id", "S"), ("cluster_id", "S")]


def encode_header(body_size, properties):
    unknown = set(properties) - {p for p, _ in PROPERTIES}
    assert not unknown, f"no such property: {sorted(unknown)}"
    flags, out = 0, []
    for index, (name, kind) in enumerate(PROPERTIES):
        value = properties.get(name)
        if value is None:
            continue
        flags |= 1 << (15 - index)
        if kind == "S":
            out.append(short_string(value))
        elif kind == "t":
            out.append(encode_table(value))
        else:
            out.append(struct.pack(_NUMBERS[kind], value))
    return struct.pack("!HHQH", 60, 0, body_size, flags) + b"".join(out)


def decode_header(payload):
    """(body size, properties as a dict, the raw header table or None)."""
    class_id, _weight, size, flags = struct.unpack_from("!HHQH", payload)
    if class_id != 60:
        raise ProtocolError(f"content header of class {class_id}")
    offset, properties, table = 14, {}, None
    for index, (name, kind) in enumerate(PROPERTIES):
        if not flags >> (15 - index) & 1:
            continue
        if kind == "S":
            length = payload[offset]
            properties[name] = payload[offset + 1:offset + 1 + length].decode("utf-8", "surrogateescape")
            offset += 1 + length
        elif kind == "t":
            (length,) = struct.unpack_from("!I", payload, offset)
            table = payload[offset:offset + 4 + length]
            properties[name] = decode_table(table)
            offset += 4 + length
        else:
            (properties[name],) = struct.unpack_from(_NUMBERS[kind], payload, offset)
            offset += struct.calcsize(_NUMBERS[kind])
    if offset != len(payload):
        raise ProtocolError(f"content header: {len(payload) - offset} bytes too many")
    return size, properties, table


def frame(kind, channel, payload):
    return struct.pack("!BHI", kind, channel, len(payload)) + payload + FRAME_END


def method_frame(channel, name, **arguments):
    return frame(FRAME_METHOD, channel, encode_method(name, **arguments))


def content_frames(channel, method_payload, body=b"", properties=None, frame_max=131072, split=None, body_size=None):
    """The frames of one message. `split` is a list of body frame sizes (the rest follows in full frames)."""
    frames = [frame(FRAME_METHOD, channel, method_payload),
              frame(FRAME_HEADER, channel, encode_header(len(body) if body_size is None else body_size, properties or {}))]
    offset, sizes = 0, list(split or [])
    view = memoryview(body)
    room = (frame_max or 131072) - 8
    while offset < len(body):
        size = sizes.pop(0) if sizes else room
        frames.append(frame(FRAME_BODY, channel, bytes(view[offset:offset + size])))
        offset += size
    return frames


Frame = collections.namedtuple("Frame", "type channel payload")


# ---- transport -------------------------------------------------------------------------------------------------------------

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


class Assembler:
    """Puts methods, headers and body frames together, and insists that the frames of one content are contiguous."""

    def __init__(self):
        self._open = None

    def feed(self, f):
        """The event that this frame completes, or None."""
        if f.type == FRAME_HEARTBEAT:
            return None
        if self._open is not None:
            event = self._open
            if f.channel != event.channel or f.type == FRAME_METHOD:
                raise ProtocolError(f"a frame of type {f.type} on channel {f.channel} inside the content of {event!r}")
            if f.type == FRAME_HEADER:
                event.set_header(f.payload)
            else:
                event.add_body(f.payload)
        else:
            if f.type != FRAME_METHOD:
                raise ProtocolError(f"a frame of type {f.type} on channel {f.channel} without a method before it")
            event = decode_method(f.channel, f.payload)
        if event.complete():
            self._open = None
            return event
        self._open = event
        return None


def _plain(username, password):
    return b"\0" + _bytes(username) + b"\0" + _bytes(password)


CLIENT_PROPERTIES = {"product": "test", "capabilities": {"publisher_confirms": True, "consumer_cancel_notify": True,
                                                         "basic.nack": True, "connection.blocked": True,
                                                         "authentication_failure_close": True}}


class Client(FrameStream):
    """One connection. Use connect(); or make a Client and go through the stages one by one:
    send_header(), start(), start_ok(), tune(), tune_ok(), open()."""

    def __init__(self, address, timeout=DEFAULT_TIMEOUT, **options):
        super().__init__(open_socket(address, timeout))
        self.options = dict(username="guest", password="guest", mechanism="PLAIN", response=None, vhost="/", locale="en_US",
                            channel_max=None, frame_max=None, heartbeat=0, client_properties=CLIENT_PROPERTIES)
        unknown = set(options) - set(self.options)
        assert not unknown, f"no such option: {sorted(unknown)}"
        self.options.update(options)
        self.timeout = timeout
        self.assembler = Assembler()
        self.inbox = collections.deque()
        self.frame_max = 131072
        self.channel_max = 2047
        self.heartbeats_seen = 0
        self.last_frame_at = time.monotonic()
        self.server_properties = None
        self.tuned = None
        self._next_channel = 1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.abort()

    # -- handshake, one stage a call

    def send_header(self):
        self.send_raw(PROTOCOL_HEADER)

    def start(self, timeout=None):
        event = self.wait_for("connection.start", 0, timeout=timeout)
        self.server_properties = event.server_properties
        return event

    def start_ok(self, **overrides):
        o = self.options
        response = o["response"]
        if response is None:
            if o["mechanism"] == "PLAIN":
                response = _plain(o["username"], o["password"])
            elif o["mechanism"] == "AMQPLAIN":
                response = encode_table({"LOGIN": o["username"], "PASSWORD": o["password"]})[4:]
            else:
                response = b""
        arguments = dict(client_properties=o["client_properties"], mechanism=o["mechanism"], response=response,
                         locale=o["locale"])
        arguments.update(overrides)
        self.send(0, "connection.start-ok", **arguments)

    def tune(self, timeout=None):
        self.tuned = self.wait_for("connection.tune", 0, timeout=timeout)
        return self.tuned

    def tune_ok(self, **overrides):
        """Sends the offered values, unless the options or this call say otherwise."""
        o, t = self.options, self.tuned
        arguments = dict(channel_max=t.channel_max if o["channel_max"] is None else o["channel_max"],
                         frame_max=t.frame_max if o["frame_max"] is None else o["frame_max"],
                         heartbeat=t.heartbeat if o["heartbeat"] is None else o["heartbeat"])
        arguments.update(overrides)
        self.frame_max = arguments["frame_max"] or 131072
        self.channel_max = arguments["channel_max"] or 65535
        self.send(0, "connection.tune-ok", **arguments)

    def open(self, vhost=None, timeout=None):
        self.send(0, "connection.open", virtual_host=self.options["vhost"] if vhost is None else vhost)
        return self.wait_for("connection.open-ok", 0, timeout=timeout)

    def handshake(self, timeout=None):
        self.send_header()
        self.start(timeout)
        self.start_ok()
        self.tune(timeout)
        self.tune_ok()
        self.open(timeout=timeout)
        return self

    # -- sending

    def send(self, channel, name, **arguments):
        self.send_raw(method_frame(channel, name, **arguments))

    def send_heartbeat(self):
        self.send_raw(HEARTBEAT)

    def publish(self, channel, exchange, routing_key, body=b"", mandatory=False, split=None, body_size=None, header=None,
                method=None, **properties):
        """Publishes in one write. `header` is a whole header payload that replaces the one made of the properties;
        `method` a whole method payload; `headers` may be a dict or the bytes of an encoded table."""
        self.send_raw(b"".join(self.publish_frames(channel, exchange, routing_key, body, mandatory, split, body_size, header,
                                                   method, **properties)))

    def publish_frames(self, channel, exchange, routing_key, body=b"", mandatory=False, split=None, body_size=None, header=None,
                       method=None, **properties):
        """The frames of a publish as a list, for tests that send them one by one."""
        method = method or encode_method("basic.publish", exchange=exchange, routing_key=routing_key, mandatory=mandatory)
        frames = content_frames(channel, method, _bytes(body), properties, self.frame_max, split, body_size)
        if header is not None:
            frames[1] = frame(FRAME_HEADER, channel, header)
        return frames

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

    # -- conveniences

    def call(self, channel, name, timeout=None, **arguments):
        """Sends a method and waits for its reply."""
        self.send(channel, name, **arguments)
        reply = ("basic.get-ok", "basic.get-empty") if name == "basic.get" else name + "-ok"
        return self.wait_for(reply, channel, timeout=timeout)

    def channel(self, number=None):
        """Opens a channel (the next number, unless one is given)."""
        if number is None:
            number = self._next_channel
        self._next_channel = max(self._next_channel, number + 1)
        self.call(number, "channel.open")
        return Channel(self, number)

    def close(self, timeout=None):
        """A clean close: connection.close, its reply, and the end of the stream."""
        self.send(0, "connection.close", reply_code=200, reply_text="bye")
        self.wait_for("connection.close-ok", 0, timeout=timeout)
        self.abort()

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


class Channel:
    """A channel number with a client: the client's calls without the number."""

    def __init__(self, client, number):
        self.client, self.number = client, number

    def send(self, name, **arguments):
        self.client.send(self.number, name, **arguments)

    def call(self, name, timeout=None, **arguments):
        return self.client.call(self.number, name, timeout=timeout, **arguments)

    def publish(self, exchange, routing_key, body=b"", **options):
        self.client.publish(self.number, exchange, routing_key, body, **options)

    def publish_frames(self, exchange, routing_key, body=b"", **options):
        return self.client.publish_frames(self.number, exchange, routing_key, body, **options)

    def send_frame(self, kind, payload):
        self.client.send_frame(kind, self.number, payload)

    def wait_for(self, name, timeout=None, **match):
        return self.client.wait_for(name, self.number, timeout=timeout, **match)

    def expect(self, name, timeout=None, **match):
        return self.client.expect(name, self.number, timeout=timeout, **match)

    def expect_nothing(self, seconds=0.3):
        self.client.expect_nothing(seconds, self.number)

    def expect_close(self, code=None, timeout=None):
        return self.client.expect_channel_close(self.number, code, timeout)

    def deliver(self, timeout=None, **match):
        """The next basic.deliver."""
        return self.wait_for("basic.deliver", timeout=timeout, **match)

    def get(self, queue, no_ack=False, timeout=None):
        """A basic.get: the get-ok with its content, or None when the queue is empty."""
        event = self.call("basic.get", timeout=timeout, queue=queue, no_ack=no_ack)
        return None if event.name == "basic.get-empty" else event

    def get_wait(self, queue, no_ack=True, timeout=DEFAULT_TIMEOUT):
        """basic.get until there is a message."""
        deadline = time.monotonic() + timeout * TIME_FACTOR
        while True:
            event = self.get(queue, no_ack)
            if event is not None:
                return event
            if time.monotonic() > deadline:
                raise Timeout(f"queue {queue} stayed empty")
            time.sleep(0.02)

    def ack(self, delivery_tag, multiple=False):
        self.send("basic.ack", delivery_tag=delivery_tag, multiple=multiple)

    def declare(self, queue="", **options):
        """Declares a queue and returns its name."""
        return self.call("queue.declare", queue=queue, **options).queue

    def confirms(self, count, timeout=None):
        """Waits until `count` publishes (tags 1 to count, or those not settled by an earlier call) have an outcome.
        Returns {tag: "ack" or "nack"}."""
        settled = self.__dict__.setdefault("_settled", {})
        deadline = self.client._deadline(timeout)
        while len(settled) < count:
            left = max(0.0, deadline - time.monotonic()) / TIME_FACTOR
            event = self.wait_for(("basic.ack", "basic.nack"), timeout=left)
            first = 1 if event.multiple else event.delivery_tag
            for tag in range(first, event.delivery_tag + 1):
                assert event.multiple or tag not in settled, f"tag {tag} was settled twice"
                settled.setdefault(tag, event.name[len("basic."):])
        return dict(settled)

    def close(self):
        self.call("channel.close", reply_code=200, reply_text="bye")


def connect(address, timeout=DEFAULT_TIMEOUT, **options):
    """A connection with its handshake done."""
    client = Client(address, timeout, **options)
    try:
        return client.handshake()
    except BaseException:
        client.abort()
        raise
