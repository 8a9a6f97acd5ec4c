"""The codec of strings and header tables."""

import collections
import datetime
import decimal
import struct

from .errors import ProtocolError


def as_bytes(value):
    return value.encode() if isinstance(value, str) else bytes(value)


def short_string(value):
    raw = as_bytes(value)
    return bytes([len(raw)]) + raw


def long_string(value):
    raw = as_bytes(value)
    return struct.pack("!I", len(raw)) + raw


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
