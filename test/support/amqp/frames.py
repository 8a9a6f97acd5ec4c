"""The codec of frames and of the contents that they carry: headers, bodies, and the events that a run of frames makes."""

import collections
import struct

from .errors import ProtocolError
from .methods import CONTENT_METHODS, METHOD_NAMES, NUMBERS, decode_arguments, encode_method
from .tables import decode_table, encode_table, short_string

FRAME_METHOD, FRAME_HEADER, FRAME_BODY, FRAME_HEARTBEAT = 1, 2, 3, 8
FRAME_END = b"\xce"
PROTOCOL_HEADER = b"AMQP\x00\x00\x09\x01"
HEARTBEAT = b"\x08\x00\x00\x00\x00\x00\x00\xce"

PROPERTIES = [("content_type", "S"), ("content_encoding", "S"), ("headers", "t"), ("delivery_mode", "o"), ("priority", "o"),
              ("correlation_id", "S"), ("reply_to", "S"), ("expiration", "S"), ("message_id", "S"), ("timestamp", "q"),
              ("type", "S"), ("user_id", "S"), ("app_id", "S"), ("cluster_id", "S")]

Frame = collections.namedtuple("Frame", "type channel payload")


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
            out.append(struct.pack(NUMBERS[kind], value))
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
            (properties[name],) = struct.unpack_from(NUMBERS[kind], payload, offset)
            offset += struct.calcsize(NUMBERS[kind])
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

    @property
    def closes(self):
        """The name of the method that a close is for."""
        return METHOD_NAMES.get((self.class_id, self.method_id))

    def __repr__(self):
        args = ", ".join(f"{k}={v!r}" for k, v in self.args.items() if not k.startswith("reserved"))
        content = "" if self.header is None else f" properties={self.properties} body[{self.body_size}]"
        return f"<{self.channel}: {self.name}({args}){content}>"


def decode_method(channel, payload):
    """The event of a method frame, without the content that may follow it."""
    return Event(channel, *decode_arguments(payload), payload)


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
