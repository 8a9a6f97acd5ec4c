"""What bellhop adds to a message's properties and headers, and what it leaves byte for byte."""

import datetime
import decimal
import socket
import time

import pytest

from support.amqp import Typed, encode_table
from support.publishing import KIB, UUID, declare, key_of, pattern, publisher, sent_through
from support.rabbitmq import as_kept, version

ALL_TYPES = encode_table([
    ("true", True), ("false", False), ("b", Typed("b", -128)), ("B", Typed("B", 255)), ("s", Typed("s", -32768)),
    ("u", Typed("u", 65535)), ("I", Typed("I", -2**31)), ("i", Typed("i", 2**32 - 1)), ("l", Typed("l", -2**63)),
    ("f", Typed("f", 1.5)), ("d", Typed("d", -2.25)), ("D", decimal.Decimal("3.14")), ("S", "text \N{EURO SIGN}"),
    ("S not UTF-8", Typed("S", b"\xff\xfe\x00")), ("S empty", ""), ("x", b"\x00\x01\xce"),
    ("T", datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc)), ("V", None), ("A", [1, "two", [3, {"four": None}], Typed("b", 5)]),
    ("A empty", []), ("F", {"nested": {"deeper": [True, 1.0, b"\xac"]}, "n": 1}), ("F empty", {}), ("", "an empty name"),
    ("n" * 255, "a long name"), ("x-acemq-claim", "the application's own"), ("bellhop-claims", "no header of bellhop"),
])
SET = {"delivery_mode": 1, "message_id": "m-1"}


def test_a_message_with_mode_and_id_passes_byte_for_byte(bellhop, broker, name):
    queue = name()
    direct = declare(broker, queue)
    held = sent_through(bellhop(), direct, queue, b"body", headers=ALL_TYPES, content_type="a/b", content_encoding="c", priority=9,
                        correlation_id="r", reply_to="q", expiration="60000", timestamp=2**63, type="t", user_id="guest",
                        app_id="a", cluster_id="k", **SET)
    assert held.headers_raw == as_kept(ALL_TYPES)
    del held.properties["headers"]
    assert held.properties == {"content_type": "a/b", "content_encoding": "c", "delivery_mode": 1, "priority": 9,
                               "correlation_id": "r", "reply_to": "q", "expiration": "60000", "message_id": "m-1",
                               "timestamp": 2**63, "type": "t", "user_id": "guest", "app_id": "a", "cluster_id": "k"}


def test_foreign_headers_stay_byte_for_byte_when_others_are_added_or_removed(bellhop, broker, name):
    queue = name()
    direct = declare(broker, queue)
    daemon = bellhop({"routes": [{"name": "r", "match": {"routing_key": queue}, "headers": {"x-tenant": "acme"}}]})
    held = sent_through(daemon, direct, queue, b"small", headers=ALL_TYPES, **SET)
    tenant = encode_table({"x-tenant": "acme"})[4:]
    expected = as_kept(len(ALL_TYPES[4:] + tenant).to_bytes(4, "big") + ALL_TYPES[4:] + tenant)
    assert held.headers_raw == expected

    large = sent_through(daemon, direct, queue, pattern(70 * KIB), headers=ALL_TYPES)
    if version() < (4, 0):  # later ones sort the table
        assert large.headers_raw[4:].startswith(ALL_TYPES[4:])
    assert large.headers["bellhop-claim-key"] == key_of(large)

    stale = encode_table({"bellhop-claim-key": "old"})[4:]
    mixed = len(ALL_TYPES[4:] + stale).to_bytes(4, "big") + stale + ALL_TYPES[4:]
    again = sent_through(daemon, direct, queue, b"small", headers=mixed)
    assert again.headers_raw == expected


def test_an_empty_header_table_stays_an_empty_header_table(bellhop, broker, name):
    queue = name()
    direct = declare(broker, queue)
    assert sent_through(bellhop(), direct, queue, b"body", headers={}).headers_raw == b"\0\0\0\0"


@pytest.mark.parametrize("stamp, sent, stored", [
    ({}, None, 2), ({}, 1, 1), ({}, 2, 2),
    ({"delivery_mode": "transient"}, None, 1), ({"delivery_mode": "transient"}, 2, 2),
    ({"delivery_mode": "persistent"}, 1, 1),
    ({"delivery_mode": "keep"}, None, None), ({"delivery_mode": "keep"}, 1, 1),
], ids=str)
@pytest.mark.parametrize("size", [10, 70 * KIB])
def test_the_delivery_mode_is_the_applications_else_the_configured_one(bellhop, broker, name, stamp, sent, stored, size):
    queue = name()
    direct = declare(broker, queue)
    held = sent_through(bellhop({"stamp": stamp}), direct, queue, pattern(size), delivery_mode=sent)
    assert held.properties.get("delivery_mode") == stored


@pytest.mark.parametrize("size", [10, 70 * KIB])
def test_a_message_id_is_kept_or_filled_with_a_fresh_uuid_or_left_out(bellhop, broker, name, size):
    queue = name()
    direct = declare(broker, queue)
    daemon = bellhop()
    assert sent_through(daemon, direct, queue, pattern(size), message_id="mine").properties["message_id"] == "mine"
    ids = {sent_through(daemon, direct, queue, pattern(size)).properties["message_id"] for _ in range(3)}
    assert len(ids) == 3 and all(UUID.fullmatch(i) for i in ids)

    keeping = bellhop({"stamp": {"message_id": "keep"}})
    assert "message_id" not in sent_through(keeping, direct, queue, pattern(size)).properties


def test_with_both_stamps_off_a_bare_message_stays_bare(bellhop, broker, name):
    queue = name()
    direct = declare(broker, queue)
    held = sent_through(bellhop({"stamp": {"delivery_mode": "keep", "message_id": "keep"}}), direct, queue, b"bare")
    assert held.properties == {}


def test_a_timestamp_is_kept_and_never_added(bellhop, broker, name):
    queue = name()
    direct = declare(broker, queue)
    daemon = bellhop()
    assert sent_through(daemon, direct, queue, b"x", timestamp=12345).properties["timestamp"] == 12345
    assert "timestamp" not in sent_through(daemon, direct, queue, b"x").properties


def test_a_routes_stamp_comes_before_the_common_one(bellhop, broker, name):
    queue = name()
    direct = declare(broker, queue)
    daemon = bellhop({"stamp": {"delivery_mode": "transient", "message_id": "keep"},
                      "routes": [{"name": "r", "match": {"routing_key": queue}, "stamp": {"delivery_mode": "persistent"}}]})
    held = sent_through(daemon, direct, queue, b"x")
    assert held.properties == {"delivery_mode": 2}


def test_static_headers_are_added_only_where_they_are_absent(bellhop, broker, name):
    queue = name()
    direct = declare(broker, queue)
    daemon = bellhop({"routes": [{"name": "r", "match": {"routing_key": queue}, "headers": {"x-tenant": "acme", "x-region": "eu"}}]})
    assert sent_through(daemon, direct, queue, b"x").headers == {"x-tenant": "acme", "x-region": "eu"}
    held = sent_through(daemon, direct, queue, b"x", headers={"x-region": 7, "a": 1})
    assert held.headers == {"x-region": 7, "a": 1, "x-tenant": "acme"}


ENVELOPE = {"service": "orders-api", "stamp": {"envelope": "acemq"}}


@pytest.mark.parametrize("size", [10, 70 * KIB])
def test_the_envelope_has_all_its_headers(bellhop, broker, name, size):
    queue = name()
    direct = declare(broker, queue)
    before = int(time.time() * 1000)
    held = sent_through(bellhop(ENVELOPE), direct, queue, pattern(size), headers={"app": 1})
    headers = {key: value for key, value in held.headers.items() if key.startswith("x-acemq-")}
    first_seen = headers.pop("x-acemq-first-seen")
    assert before <= first_seen <= time.time() * 1000
    message_id = held.properties["message_id"]
    assert UUID.fullmatch(message_id)
    assert headers == {"x-acemq-id": message_id, "x-acemq-type": queue, "x-acemq-version": 1, "x-acemq-correlation": message_id,
                       "x-acemq-attempt": 1, "x-acemq-origin": f"orders-api@{socket.gethostname()}"}
    assert held.headers["app"] == 1


def test_the_envelope_takes_type_id_and_correlation_from_the_message(bellhop, broker, name):
    queue = name()
    direct = declare(broker, queue)
    held = sent_through(bellhop(ENVELOPE), direct, queue, b"x", message_id="m", type="order.created", correlation_id="c")
    assert held.headers["x-acemq-id"] == "m"
    assert held.headers["x-acemq-type"] == "order.created"
    assert held.headers["x-acemq-correlation"] == "c"


def test_without_type_and_routing_key_the_envelopes_type_is_message(bellhop, broker, name):
    queue, exchange = name(), name("fanout")
    direct = declare(broker, queue)
    direct.call("exchange.declare", exchange=exchange, type="fanout", auto_delete=True)
    direct.call("queue.bind", queue=queue, exchange=exchange)
    daemon = bellhop(ENVELOPE)
    up = publisher(daemon)
    up.channel.publish(exchange, "", b"x")
    up.channel.expect("basic.ack")
    assert direct.get_wait(queue).headers["x-acemq-type"] == "message"


def test_envelope_headers_that_the_application_set_are_kept(bellhop, broker, name):
    queue = name()
    direct = declare(broker, queue)
    mine = {"x-acemq-id": "i", "x-acemq-type": "t", "x-acemq-version": 7, "x-acemq-correlation": "c", "x-acemq-attempt": 3,
            "x-acemq-first-seen": "2026-01-01T00:00:00Z", "x-acemq-origin": "me"}
    assert sent_through(bellhop(ENVELOPE), direct, queue, b"x", headers=mine).headers == mine
    one = sent_through(bellhop(ENVELOPE), direct, queue, b"x", headers={"x-acemq-id": "i"}).headers
    assert one["x-acemq-id"] == one["x-acemq-correlation"] == "i"


def test_a_static_header_and_the_envelope_never_write_the_same_name_twice(bellhop, broker, name):
    queue = name()
    direct = declare(broker, queue)
    daemon = bellhop({"routes": [{"name": "r", "match": {"routing_key": queue}, "headers": {"x-acemq-origin": "fixed"},
                                  "stamp": {"envelope": "acemq"}}]})
    held = sent_through(daemon, direct, queue, b"x")
    assert held.headers["x-acemq-origin"] == "fixed"
    assert held.headers_raw.count(b"x-acemq-origin") == 1
