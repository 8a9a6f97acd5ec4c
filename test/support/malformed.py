"""What a client may do wrong on an open connection with channels 1 and 2 open: {what: (the code of the answer, the bytes)}."""

import struct

from . import amqp


def method(channel, name, **arguments):
    return amqp.method_frame(channel, name, **arguments)


def header(size, properties=None, channel=1):
    return amqp.frame(2, channel, amqp.encode_header(size, properties or {}))


def nested(depth):
    """An encoded table of tables."""
    table = b"\x00\x00\x00\x00"
    for _ in range(depth):
        table = struct.pack("!I", len(table) + 3) + b"\x01aF" + table
    return table


PUBLISH = method(1, "basic.publish", exchange="", routing_key="q")

WRONG = {
    "a frame without its end octet": (501, amqp.HEARTBEAT[:-1] + b"\x00"),
    "a method without its end octet": (501, method(1, "tx.select")[:-1] + b"\xcd"),
    "a frame larger than frame_max": (501, amqp.frame(3, 1, b"x" * (131072 + 1))),
    "the head of a frame of 4 GiB": (501, struct.pack("!BHI", 1, 1, 0xFFFFFFFF)),
    "a frame type that there is not": (501, amqp.frame(4, 1, b"")),
    "a frame of type 0": (501, amqp.frame(0, 0, b"")),
    "a heartbeat on a channel": (505, amqp.frame(8, 1, b"")),
    "a heartbeat on a channel that is not open": (505, amqp.frame(8, 3, b"")),
    "a heartbeat where the header belongs": (505, PUBLISH + amqp.frame(8, 1, b"")),
    "a heartbeat in the middle of a body": (505, PUBLISH + header(5) + amqp.frame(3, 1, b"abc") + amqp.frame(8, 1, b"")),
    "a second protocol header": (501, amqp.PROTOCOL_HEADER),
    "a content header without a publish": (505, header(5)),
    "a content header for a method that has none": (505, method(1, "exchange.declare", exchange="amq.direct", type="direct", passive=True) + header(5)),
    "a body after a publish without one": (505, PUBLISH + header(0) + amqp.frame(3, 1, b"hello")),
    "a body after the whole body": (505, PUBLISH + header(2) + amqp.frame(3, 1, b"ab") + amqp.frame(3, 1, b"c")),
    "a body without a publish": (505, amqp.frame(3, 1, b"hello")),
    "a body where the header belongs": (505, PUBLISH + amqp.frame(3, 1, b"hello")),
    "a method where the header belongs": (505, PUBLISH + method(1, "basic.qos")),
    "a method in the middle of a body": (505, PUBLISH + header(5) + amqp.frame(3, 1, b"abc") + method(1, "basic.qos")),
    "a publish in the middle of a body": (505, PUBLISH + header(5) + amqp.frame(3, 1, b"abc") + PUBLISH),
    "a header in the middle of a body": (505, PUBLISH + header(5) + amqp.frame(3, 1, b"abc") + header(5)),
    "a header of another class": (505, PUBLISH + amqp.frame(2, 1, struct.pack("!HHQH", 50, 0, 5, 0))),
    "a header that is too short": (501, PUBLISH + amqp.frame(2, 1, b"\x00\x3c\x00")),
    "a header whose properties are cut": (502, PUBLISH + amqp.frame(2, 1, struct.pack("!HHQH", 60, 0, 0, 0x8000) + b"\x09abc")),
    "a header with more flags than there are": (502, PUBLISH + amqp.frame(2, 1, struct.pack("!HHQHH", 60, 0, 0, 1, 0xFFFF))),
    "a header table that is longer than its frame": (502, PUBLISH + amqp.frame(2, 1, struct.pack("!HHQHI", 60, 0, 0, 0x2000, 999))),
    "a body longer than announced": (501, PUBLISH + header(5) + amqp.frame(3, 1, b"abcdef")),
    "a body longer than announced, in pieces": (501, PUBLISH + header(5) + amqp.frame(3, 1, b"abcd") * 2),
    "a large body longer than announced": (501, PUBLISH + header(70000) + amqp.frame(3, 1, b"x" * 65000) * 2),
    "a publish that is cut": (501, amqp.frame(1, 1, struct.pack("!HHH", 60, 40, 0) + b"\x20abc") + header(0)),
    "a method on a channel that is not open": (504, method(7, "basic.qos", prefetch_count=1)),
    "a body on a channel that is not open": (505, amqp.frame(3, 7, b"x")),
    "a second open of a channel": (504, method(1, "channel.open")),
    "a channel above channel_max": (530, method(60000, "channel.open")),
    "a channel's method on channel 0": (504, method(0, "queue.declare", queue="q")),
    "a publish on channel 0": (504, method(0, "basic.publish", routing_key="q")),
    "a body on channel 0": (505, amqp.frame(3, 0, b"x")),
    "a second start-ok": (504, method(0, "connection.start-ok", mechanism="PLAIN")),
    "a second open of the connection": (504, method(0, "connection.open", virtual_host="/")),
    "a method of the broker's": (504, method(0, "connection.blocked", reason="no")),
    "a connection's method on a channel": (503, method(1, "connection.close", reply_code=200)),
    "a method frame without a method": (501, amqp.frame(1, 1, b"")),
    "a virtual exchange's declaration that is nested too deep": (501, amqp.frame(1, 1, amqp.encode_method(
        "exchange.declare", exchange="bellhop.next", type="direct")[:-4] + nested(5000))),
    "a consumer whose arguments are nested too deep": (501, amqp.frame(1, 1, amqp.encode_method(
        "basic.consume", queue="q", no_ack=True)[:-4] + nested(5000))),
    "a queue whose arguments are nested too deep": (501, amqp.frame(1, 1, amqp.encode_method("queue.declare")[:-4] + nested(5000))),
    "a consumer whose arguments are cut": (501, amqp.frame(1, 1, amqp.encode_method("basic.consume", queue="q")[:-1])),
    "half a method number": (501, amqp.frame(1, 0, b"\x00\x0a\x00")),
}
