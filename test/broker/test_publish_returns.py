"""A mandatory publish that no queue takes comes back as the client sent it, before its ack. Its object is removed if the
exchange surely keeps nothing: any other may have kept the message for later."""

import itertools

import pytest

from support.publishing import INLINE, KIB, MIB, declare, key_of, pattern, publisher
from support.rabbitmq import wait_until

HEADERS = {"app": 1, "nested": {"a": [1, 2]}}
ALWAYS = {"claim_check": {"inline_framing": "always"}}
ENVELOPE = {"stamp": {"envelope": "acemq"}}
BODIES = [b"", b"x", b"xy", b"xyz", INLINE, INLINE + b"framed", pattern(5000), pattern(64 * KIB), pattern(3 * MIB)]


def expect_return(up, exchange, key, body, properties, timeout=30):
    returned = up.channel.expect("basic.return", timeout=timeout)
    assert (returned.reply_code, returned.reply_text) == (312, "NO_ROUTE")
    assert (returned.exchange, returned.routing_key) == (exchange, key)
    assert returned.body == body
    assert returned.properties == properties
    return returned


@pytest.mark.parametrize("config", [{}, ALWAYS, ENVELOPE, {"claim_check": {"threshold": "0B"}},
                                    {"stores": {"m": {"type": "memory"}}, "claim_check": {"threshold": "1KiB"}}],
                         ids=["default", "always", "envelope", "threshold-0", "memory"])
@pytest.mark.parametrize("confirm", [True, False])
def test_it_has_the_clients_exchange_key_headers_and_body(bellhop, name, config, confirm):
    daemon = bellhop(config)
    up = publisher(daemon, confirm=confirm)
    for exchange, body in itertools.product(("amq.direct", ""), BODIES):
        for properties in ({}, {"headers": HEADERS, "delivery_mode": 1, "message_id": "m", "content_type": "a/b"}):
            up.channel.publish(exchange, name("nobody"), body, mandatory=True, **properties)
            expect_return(up, exchange, name("nobody"), body, properties)
            if confirm:
                up.channel.expect("basic.ack")
    if "stores" not in config:
        wait_until(lambda: daemon.objects() == [], what="the removal of the returned publishes' objects")


def test_many_at_once_come_back_in_order_each_before_its_ack(bellhop, name):
    daemon = bellhop()
    up = publisher(daemon)
    bodies = [pattern(70 * KIB if i % 4 == 0 else i, i) for i in range(40)]
    up.client.send_raw(b"".join(frame for i, body in enumerate(bodies)
                                for frame in up.channel.publish_frames("", name(), body, mandatory=True, type=str(i))))
    returned, acked = [], set()
    while len(acked) < 40:
        event = up.channel.wait_for(("basic.return", "basic.ack"))
        if event.name == "basic.return":
            assert event.body == bodies[len(returned)] and event.properties == {"type": str(len(returned))}
            returned.append(event)
        else:
            acked |= set(range(1, event.delivery_tag + 1)) if event.multiple else {event.delivery_tag}
            assert max(acked) <= len(returned), "an ack came before its return"
    wait_until(lambda: daemon.objects() == [], what="an empty store")


@pytest.mark.parametrize("size", [10, 70 * KIB])
def test_a_rewritten_publish_comes_back_with_its_own_exchange_and_key(bellhop, name, size):
    daemon = bellhop({"routes": [{"name": "r", "match": {"exchange": "mine"}, "headers": {"x": "y"},
                                  "to": {"exchange": "amq.topic", "routing_key": name("nobody")}}]})
    up = publisher(daemon)
    up.channel.publish("mine", "my.key", pattern(size), mandatory=True, headers=HEADERS)
    expect_return(up, "mine", "my.key", pattern(size), {"headers": HEADERS})
    up.channel.expect("basic.ack", delivery_tag=1)


@pytest.mark.parametrize("size", [10, 70 * KIB])
def test_a_publish_that_started_a_slip_comes_back_without_it(bellhop, broker, name, size):
    pipeline = name("p")
    broker.channel().call("exchange.declare", exchange=pipeline, type="direct")
    daemon = bellhop({"pipelines": {pipeline: {"steps": ["a", "b"]}},
                      "routes": [{"name": "named", "match": {"exchange": "mine"}, "slip": {"pipeline": pipeline}}]})
    up = publisher(daemon)
    for exchange, key in (("mine", "k"), ("bellhop.route", "named")):
        up.channel.publish(exchange, key, pattern(size), mandatory=True)
        expect_return(up, exchange, key, pattern(size), {})
        up.channel.expect("basic.ack")
    broker.channel().call("exchange.delete", exchange=pipeline)


def test_publishes_with_one_id_are_told_apart_by_their_claim(bellhop, broker, name):
    """The same exchange, key and id, small and large: only the large ones come back, each with its own body."""
    queue = name()
    direct = declare(broker, queue)
    daemon = bellhop()
    up = publisher(daemon, confirm=False)
    up.channel.publish("", queue, b"small", mandatory=True, message_id="m")
    up.channel.publish("", queue, pattern(70 * KIB, 1), mandatory=True, message_id="m")
    up.channel.call("queue.declare", queue=queue, passive=True)
    direct.call("queue.delete", queue=queue)
    for seed in (2, 3):
        up.channel.publish("", queue, pattern(70 * KIB, seed), mandatory=True, message_id="m", type=str(seed))
    for seed in (2, 3):
        expect_return(up, "", queue, pattern(70 * KIB, seed), {"message_id": "m", "type": str(seed)})
    wait_until(lambda: len(daemon.objects()) == 1, what="only the routed publish's object left")


def test_an_object_is_kept_when_a_mandatory_publish_was_routed(bellhop, broker, name):
    queue = name()
    direct = declare(broker, queue)
    daemon = bellhop()
    up = publisher(daemon)
    up.channel.publish("", queue, pattern(70 * KIB), mandatory=True)
    up.channel.expect("basic.ack", delivery_tag=1)
    up.client.close()
    assert daemon.object(key_of(direct.get_wait(queue))) == pattern(70 * KIB)


def test_the_object_of_a_return_that_the_channel_did_not_live_to_see_is_removed(bellhop, name):
    daemon = bellhop()
    up = publisher(daemon)
    up.channel.publish("", name(), pattern(3 * MIB), mandatory=True)
    up.channel.close()
    wait_until(lambda: daemon.objects() == [], what="the removal of the returned publish's object")


def test_returns_while_large_deliveries_stream_stand_between_them_never_inside(bellhop, broker, name):
    queue = name()
    declare(broker, queue)
    daemon = bellhop()
    up = publisher(daemon)
    for i in range(3):
        up.channel.publish("", queue, pattern(4 * MIB, i))
    up.channel.confirms(3)
    up.channel.send("basic.consume", queue=queue, no_ack=True)
    for i in range(20):
        up.channel.publish("", name("nobody"), pattern(70 * KIB if i % 2 else 100, i), mandatory=True)
    for i in range(20):
        assert up.channel.wait_for("basic.return").body == pattern(70 * KIB if i % 2 else 100, i)
    for i in range(3):
        assert up.channel.deliver().body == pattern(4 * MIB, i)
    assert set(up.channel.confirms(23).values()) == {"ack"}
