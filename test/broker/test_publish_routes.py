"""Where a publish goes: the first matching route, its destination, the start of a slip, and the exchanges that exist only in bellhop."""

import json

import pytest

from support.publishing import KIB, UUID, declare, key_of, pattern, publisher, sent_through


def topic_exchange(direct, exchange, queue, key="#"):
    direct.call("exchange.declare", exchange=exchange, type="topic", auto_delete=True)
    direct.call("queue.bind", queue=queue, exchange=exchange, routing_key=key)


def marked(*matches):
    """Routes that mark what they match: header `by` has the position."""
    return {"routes": [{"name": f"r{i}", "match": match, "headers": {"by": str(i)}} for i, match in enumerate(matches)]}


@pytest.mark.parametrize("pattern_, key, matched", [
    ("order.*", "order.new", True), ("order.*", "order", False), ("order.*", "order.new.eu", False), ("order.*", "order.", True),
    ("order.#", "order", True), ("order.#", "order.a.b.c", True), ("order.#", "orders", False), ("#.eu", "eu", True),
    ("#.eu", "order.new.eu", True), ("*.*.eu", "order.new.eu", True), ("*.eu", "order.new.eu", False), ("#", "", True),
    ("order.new", "order.new", True), ("order.new", "Order.New", False), ("a.#.b.*.c", "a.x.y.b.z.c", True),
], ids=str)
def test_a_routing_key_matches_as_it_would_at_a_topic_exchange(bellhop, broker, name, pattern_, key, matched):
    queue, exchange = name(), name("ex")
    direct = declare(broker, queue)
    topic_exchange(direct, exchange, queue)
    daemon = bellhop(marked({"exchange": exchange, "routing_key": pattern_}))
    up = publisher(daemon)
    up.channel.publish(exchange, key, b"x")
    up.channel.expect("basic.ack")
    assert (direct.get_wait(queue).properties.get("headers") or {}) == ({"by": "0"} if matched else {})


def test_the_first_matching_route_wins(bellhop, broker, name):
    queue = name()
    direct = declare(broker, queue)
    daemon = bellhop(marked({"exchange": "elsewhere"}, {"routing_key": queue, "headers": {"region": "eu"}},
                            {"exchange": "", "routing_key": queue}, {"routing_key": queue}))
    assert sent_through(daemon, direct, queue, b"x", headers={"region": "eu"}).headers["by"] == "1"
    assert sent_through(daemon, direct, queue, b"x", headers={"region": "us"}).headers["by"] == "2"
    assert sent_through(daemon, direct, queue, b"x").headers["by"] == "2"


def test_all_headers_of_a_match_are_needed(bellhop, broker, name):
    queue = name()
    direct = declare(broker, queue)
    daemon = bellhop(marked({"headers": {"region": "eu", "tier": "1"}}))
    assert "by" not in sent_through(daemon, direct, queue, b"x", headers={"region": "eu"}).headers
    assert "by" not in sent_through(daemon, direct, queue, b"x", headers={"region": "eu", "tier": "2"}).headers
    assert sent_through(daemon, direct, queue, b"x", headers={"tier": "1", "other": 1, "region": "eu"}).headers["by"] == "0"


@pytest.mark.parametrize("size", [10, 70 * KIB])
def test_a_route_rewrites_exchange_and_key(bellhop, broker, name, size):
    queue, exchange = name(), name("ex")
    direct = declare(broker, queue)
    topic_exchange(direct, exchange, queue, "all")
    daemon = bellhop({"routes": [{"name": "both", "match": {"routing_key": "both"}, "to": {"exchange": exchange, "routing_key": "all"}},
                                 {"name": "ex", "match": {"routing_key": "all"}, "to": {"exchange": exchange}},
                                 {"name": "key", "match": {"exchange": exchange}, "to": {"routing_key": "all"}}]})
    up = publisher(daemon)
    for ex, key in [("nowhere", "both"), ("nowhere", "all"), (exchange, "unbound")]:
        up.channel.publish(ex, key, pattern(size))
        up.channel.expect("basic.ack")
        held = direct.get_wait(queue)
        assert (held.exchange, held.routing_key) == (exchange, "all")
        if size > 64 * KIB:
            assert daemon.object(key_of(held)) == pattern(size)
        else:
            assert held.body == pattern(size)


@pytest.mark.parametrize("size", [10, 70 * KIB])
def test_a_declared_route_starts_a_slip_at_its_first_step(bellhop, broker, name, size):
    pipeline, queue = name("fulfil"), name()
    direct = declare(broker, queue)
    direct.call("exchange.declare", exchange=pipeline, type="direct", durable=True)
    direct.call("queue.bind", queue=queue, exchange=pipeline, routing_key="validate")
    daemon = bellhop({"pipelines": {pipeline: {"steps": ["validate", "reserve", "dispatch"]}},
                      "routes": [{"name": "r", "match": {"exchange": "orders"}, "slip": {"pipeline": pipeline}}]})
    up = publisher(daemon)
    runs = set()
    for _ in range(2):
        up.channel.publish("orders", "order.new", pattern(size), headers={"app": 1}, message_id="m")
        up.channel.expect("basic.ack")
        held = direct.get_wait(queue)
        assert (held.exchange, held.routing_key) == (pipeline, "validate")
        assert held.headers["x-acemq-route"] == "validate,reserve,dispatch"
        assert held.headers["x-acemq-route-position"] == 0
        assert UUID.fullmatch(held.headers["x-acemq-route-id"])
        runs.add(held.headers["x-acemq-route-id"])
        assert held.headers["app"] == 1 and held.properties["message_id"] == "m"
        assert ("bellhop-claim-key" in held.headers) == (size > 64 * KIB)
    assert len(runs) == 2
    direct.call("exchange.delete", exchange=pipeline)


def test_an_itinerary_is_stamped_as_json_and_sent_to_its_first_stop(bellhop, broker, name):
    queue, exchange = name(), name("ex")
    direct = declare(broker, queue)
    topic_exchange(direct, exchange, queue, "order.charge")
    daemon = bellhop({"routes": [{"name": "r", "match": {"routing_key": "start"}, "slip": {"itinerary": [
        {"exchange": exchange, "routing_key": "order.charge", "name": "charge"}, {"exchange": exchange, "routing_key": "done"}]}}]})
    up = publisher(daemon)
    up.channel.publish("", "start", b"x")
    up.channel.expect("basic.ack")
    held = direct.get_wait(queue)
    assert held.headers == {"acemq-routing-slip": json.dumps({"steps": [
        {"exchange": exchange, "routingKey": "order.charge", "name": "charge"},
        {"exchange": exchange, "routingKey": "done"}]}, separators=(",", ":"))}


def test_a_message_that_carries_a_slip_keeps_it_and_goes_to_its_current_step(bellhop, broker, name):
    pipeline, queue = name("fulfil"), name()
    direct = declare(broker, queue)
    direct.call("exchange.declare", exchange=pipeline, type="direct", auto_delete=True)
    direct.call("queue.bind", queue=queue, exchange=pipeline, routing_key="reserve")
    daemon = bellhop({"pipelines": {pipeline: {"steps": ["validate", "reserve"]}},
                      "routes": [{"name": "r", "match": {"exchange": "orders"}, "slip": {"pipeline": pipeline}}]})
    slip = {"x-acemq-route": "validate,reserve", "x-acemq-route-position": 1, "x-acemq-route-id": "run"}
    up = publisher(daemon)
    up.channel.publish("orders", "k", b"x", headers=slip)
    up.channel.expect("basic.ack")
    held = direct.get_wait(queue)
    assert held.routing_key == "reserve" and held.headers == slip


# ---- virtual exchanges

@pytest.mark.parametrize("exchange", ["bellhop.next", "bellhop.route"])
def test_a_passive_declare_of_a_virtual_exchange_succeeds(bellhop, exchange):
    up = publisher(bellhop(), confirm=False)
    up.channel.call("exchange.declare", exchange=exchange, type="direct", passive=True)
    up.channel.send("exchange.declare", exchange=exchange, type="direct", passive=True, nowait=True)
    up.channel.call("queue.declare", exclusive=True)


@pytest.mark.parametrize("exchange", ["bellhop.next", "bellhop.route"])
@pytest.mark.parametrize("method, arguments", [
    ("exchange.declare", {"exchange": "{}", "type": "direct"}),
    ("exchange.declare", {"exchange": "{}", "type": "direct", "nowait": True}),
    ("exchange.delete", {"exchange": "{}"}),
    ("exchange.bind", {"destination": "{}", "source": "amq.topic"}), ("exchange.bind", {"destination": "amq.topic", "source": "{}"}),
    ("exchange.unbind", {"destination": "{}", "source": "amq.topic"}), ("exchange.unbind", {"destination": "amq.fanout", "source": "{}"}),
    ("queue.bind", {"queue": "q", "exchange": "{}"}), ("queue.unbind", {"queue": "q", "exchange": "{}"}),
], ids=lambda value: str(value).replace(" ", ""))
def test_anything_else_about_a_virtual_exchange_is_refused_with_403(bellhop, exchange, method, arguments):
    up = publisher(bellhop(), confirm=False)
    arguments = {key: exchange if value == "{}" else value for key, value in arguments.items()}
    up.channel.send(method, **arguments)
    closed = up.channel.expect_close(403)
    assert closed.reply_text.startswith("ACCESS_REFUSED") and exchange in closed.reply_text
    up.client.channel(1).call("queue.declare", exclusive=True)


def test_names_that_only_look_like_a_virtual_exchange_are_the_brokers(bellhop, name):
    up = publisher(bellhop(), confirm=False)
    exchange = "bellhop.next." + name()
    up.channel.call("exchange.declare", exchange=exchange, type="direct", auto_delete=True)
    up.channel.call("exchange.delete", exchange=exchange)
