"""What a body becomes on the broker: raw, framed inline, or a claim whose object has the payload's bytes."""

import pytest

from support.publishing import (CLAIM, CLAIM_HEADERS, INLINE, KIB, MIB, declare, key_of, pattern, publisher, sent_through)
from support.rabbitmq import version
from support.xxh128 import xxh128

FRAMED = [INLINE, CLAIM, INLINE + b"x", CLAIM + b"a-key", INLINE + pattern(5000)]
NOT_FRAMED = [b"", b"\xac", b"\xac\x01", b"\xac\x02\x00", b"\xac\x01\x02", b"\xac\x01\x09payload", b"\xad\x01\x00", b"plain"]


def routes(name, **claim_check):
    return {"routes": [{"name": "r", "match": {"routing_key": name}, "claim_check": claim_check}]}


@pytest.mark.parametrize("body", NOT_FRAMED, ids=repr)
def test_a_small_body_that_does_not_look_framed_is_sent_raw(bellhop, broker, name, body):
    queue = name()
    direct = declare(broker, queue)
    held = sent_through(bellhop(), direct, queue, body)
    assert held.body == body
    assert "headers" not in held.properties


@pytest.mark.parametrize("body", FRAMED, ids=lambda b: repr(b[:10]))
def test_a_small_body_that_looks_framed_is_escaped(bellhop, broker, name, body):
    queue = name()
    direct = declare(broker, queue)
    held = sent_through(bellhop(), direct, queue, body)
    assert held.body == INLINE + body
    assert "headers" not in held.properties


@pytest.mark.parametrize("body", NOT_FRAMED + FRAMED, ids=lambda b: repr(b[:10]))
def test_with_inline_framing_always_every_small_body_gets_the_inline_prefix(bellhop, broker, name, body):
    queue = name()
    direct = declare(broker, queue)
    held = sent_through(bellhop(routes(queue, inline_framing="always")), direct, queue, body)
    assert held.body == INLINE + body


@pytest.mark.parametrize("body", FRAMED, ids=lambda b: repr(b[:10]))
@pytest.mark.parametrize("framing", ["as_needed", "always"])
def test_with_pass_a_framed_body_stays_as_it_is(bellhop, broker, name, body, framing):
    queue = name()
    direct = declare(broker, queue)
    daemon = bellhop(routes(queue, already_framed="pass", inline_framing=framing))
    assert sent_through(daemon, direct, queue, body).body == body


def test_with_pass_a_framed_body_above_the_threshold_is_not_offloaded(bellhop, broker, name):
    queue = name()
    direct = declare(broker, queue)
    daemon = bellhop(routes(queue, already_framed="pass"))
    body = INLINE + pattern(100 * KIB)
    assert sent_through(daemon, direct, queue, body).body == body
    assert daemon.objects() == []


def test_with_escape_a_framed_body_above_the_threshold_is_stored_whole(bellhop, broker, name):
    queue = name()
    direct = declare(broker, queue)
    daemon = bellhop()
    body = CLAIM + pattern(100 * KIB)
    assert daemon.object(key_of(sent_through(daemon, direct, queue, body))) == body


def test_with_the_claim_check_off_a_body_is_only_escaped(bellhop, broker, name):
    queue = name()
    direct = declare(broker, queue)
    daemon = bellhop(routes(queue, enabled=False, inline_framing="always"))
    large = pattern(200 * KIB)
    assert sent_through(daemon, direct, queue, large).body == large
    assert sent_through(daemon, direct, queue, INLINE + large).body == INLINE + INLINE + large
    assert daemon.objects() == []


@pytest.mark.parametrize("size", [64 * KIB, 64 * KIB + 1, 5 * MIB])
def test_a_body_from_the_threshold_on_becomes_a_claim_check_with_size_and_checksum(bellhop, broker, name, size):
    queue = name()
    direct = declare(broker, queue)
    daemon = bellhop()
    body = pattern(size)
    held = sent_through(daemon, direct, queue, body, content_type="text/plain", headers={"app": 1})
    key = key_of(held)
    assert daemon.objects() == [key]
    assert daemon.object(key) == body
    assert held.headers == {"app": 1, "bellhop-claim-key": key, "bellhop-claim-store": "claims", "bellhop-claim-size": size,
                            "bellhop-claim-xxh128": xxh128(body)}
    assert held.properties["content_type"] == "text/plain"
    assert daemon.debris() == []


def test_a_body_just_below_the_threshold_stays_in_the_message(bellhop, broker, name):
    queue = name()
    direct = declare(broker, queue)
    daemon = bellhop()
    body = pattern(64 * KIB - 1)
    assert sent_through(daemon, direct, queue, body).body == body
    assert daemon.objects() == []


@pytest.mark.parametrize("body", [b"", b"a", b"ab", b"abc", INLINE], ids=repr)
def test_with_threshold_0_every_body_is_offloaded_the_empty_one_too(bellhop, broker, name, body):
    queue = name()
    direct = declare(broker, queue)
    daemon = bellhop({"claim_check": {"threshold": "0B"}})
    held = sent_through(daemon, direct, queue, body)
    key = key_of(held)
    assert daemon.object(key) == body
    assert held.headers["bellhop-claim-size"] == len(body)
    assert held.headers["bellhop-claim-xxh128"] == xxh128(body)


def test_old_claim_headers_are_replaced_when_offloaded_and_removed_when_not(bellhop, broker, name):
    queue = name()
    direct = declare(broker, queue)
    daemon = bellhop()
    copied = {"before": 1, **{key: "old" for key in CLAIM_HEADERS}, "after": 2}
    small = sent_through(daemon, direct, queue, b"small", headers=copied)
    assert small.headers == {"before": 1, "after": 2}
    large = sent_through(daemon, direct, queue, pattern(70 * KIB), headers=copied)
    assert large.headers["bellhop-claim-key"] == key_of(large)
    assert [n for n in large.headers if not n.startswith("bellhop-")] == (["before", "after"] if version() < (4, 0) else ["after", "before"])  # sorted
    assert large.headers["bellhop-claim-size"] == 70 * KIB


def test_a_route_chooses_store_and_threshold(bellhop, broker, name, tmp_path):
    queue = name()
    direct = declare(broker, queue)
    claims, archive = tmp_path / "claims", tmp_path / "archive"
    claims.mkdir()
    archive.mkdir()
    daemon = bellhop({"stores": {"claims": {"type": "filesystem", "path": str(claims)},
                                 "archive": {"type": "filesystem", "path": str(archive)}},
                      "claim_check": {"store": "claims"}, **routes(queue, store="archive", threshold="1KiB")})
    held = sent_through(daemon, direct, queue, pattern(1 * KIB))
    assert held.headers["bellhop-claim-store"] == "archive"
    assert (archive / key_of(held)).read_bytes() == pattern(1 * KIB)
    assert sent_through(daemon, direct, queue, pattern(1 * KIB - 1)).body == pattern(1 * KIB - 1)


def test_without_a_store_nothing_is_offloaded(bellhop, broker, name):
    queue = name()
    direct = declare(broker, queue)
    body = pattern(1 * MIB)
    assert sent_through(bellhop(store=None), direct, queue, body).body == body


def test_a_direct_reply_is_never_offloaded(bellhop, broker, name):
    queue = name()
    caller = broker.channel()
    caller.declare(queue)
    caller.call("basic.consume", queue="amq.rabbitmq.reply-to", consumer_tag="replies", no_ack=True)
    caller.publish("", queue, b"request", reply_to="amq.rabbitmq.reply-to")
    daemon = bellhop({"claim_check": {"inline_framing": "always"}})
    service = publisher(daemon)
    request = service.channel.get_wait(queue)
    reply = pattern(300 * KIB)
    service.channel.publish("", request.properties["reply_to"], reply)
    service.channel.expect("basic.ack", delivery_tag=1)
    assert caller.deliver().body == reply
    assert daemon.objects() == []
