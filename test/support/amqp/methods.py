"""The codec of methods: their numbers and arguments, to bytes and back."""

import struct

from .errors import ProtocolError
from .tables import decode_table, encode_table, long_string, short_string

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
NUMBERS = {"o": "!B", "h": "!H", "l": "!I", "q": "!Q"}


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
        if kind in NUMBERS:
            out.append(struct.pack(NUMBERS[kind], value or 0))
        elif kind == "S":
            out.append(short_string(value or b""))
        elif kind == "L":
            out.append(long_string(value or b""))
        else:
            out.append(encode_table(value or {}))
    flush()
    return b"".join(out)


def decode_arguments(payload):
    """The name of a method and its arguments as a dict."""
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
        if kind in NUMBERS:
            (args[field],) = struct.unpack_from(NUMBERS[kind], payload, offset)
            offset += struct.calcsize(NUMBERS[kind])
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
    return name, args
