"""The exchanges that exist only in bellhop: bellhop.route publishes by a route's name, and nothing else can be done with either."""

import pytest

from support import amqp, slips


@pytest.fixture
def line(broker, name):
    return slips.Line(broker.channel(), name("line"), "one", "two")


def config(line, queue):
    return {"pipelines": line.config(), "routes": [
        {"name": "renamed", "match": {"exchange": "never"}, "to": {"exchange": "", "routing_key": queue}, "headers": {"x-tenant": "acme"}},
        {"name": "piped", "slip": {"pipeline": line.name}, "match": {"exchange": "never"}},
        {"name": "listed", "slip": {"itinerary": [{"exchange": line.name, "routing_key": "two"}]}, "match": {"exchange": "never"}},
        {"name": "exact", "match": {"exchange": line.name, "routing_key": "two"}},
        {"name": "key-from-match", "match": {"exchange": "never", "routing_key": "one"}, "to": {"exchange": line.name}},
        {"name": "key-from-to", "match": {"exchange": line.name}, "to": {"routing_key": "one"}},
        {"name": "no-exchange", "match": {"routing_key": "one"}},
        {"name": "no-key", "match": {"exchange": line.name}},
        {"name": "pattern", "match": {"exchange": line.name, "routing_key": "one.*"}},
        {"name": "half", "match": {"routing_key": "#"}, "to": {"exchange": line.name}},
    ]}


def test_a_route_with_a_target_of_its_own_can_be_published_to_by_name(bellhop, broker, line, name):
    above = broker.channel()
    queue = slips.short_lived(above, name())
    channel = slips.confirming(amqp.connect(bellhop(config(line, queue)).socket))
    where = {"renamed": queue, "piped": line.queue("one"), "listed": line.queue("two"), "exact": line.queue("two"),
             "key-from-match": line.queue("one"), "key-from-to": line.queue("one")}
    for tag, (route, target) in enumerate(where.items(), 1):
        channel.publish("bellhop.route", route, route.encode(), mandatory=True)
        channel.expect("basic.ack", delivery_tag=tag)
        got = above.get_wait(target)
        assert got.body == route.encode()
        assert (got.headers or {}).get("x-tenant") == ("acme" if route == "renamed" else None)
        assert (slips.ROUTE in (got.headers or {})) == (route == "piped")
        assert (slips.ITINERARY in (got.headers or {})) == (route == "listed")


@pytest.mark.parametrize("route", ["no-exchange", "no-key", "pattern", "half", "nobody", ""])
def test_a_route_without_one_and_a_name_that_none_has_are_not_found(bellhop, broker, line, route):
    channel = slips.confirming(amqp.connect(bellhop(config(line, "q")).socket))
    channel.publish("bellhop.route", route, b"x")
    closed = channel.expect_close(404)
    assert closed.reply_text.startswith(f"NOT_FOUND - no route '{route}'") and (closed.class_id, closed.method_id) == (60, 40)


def test_a_large_body_by_name_is_a_claim_check_and_a_return_names_what_the_client_named(bellhop, broker, line, name):
    missing = name("nowhere")
    daemon = bellhop(config(line, missing))
    channel = slips.confirming(amqp.connect(daemon.socket))
    body = b"z" * 70000
    channel.publish("bellhop.route", "renamed", body, mandatory=True)
    back = channel.expect("basic.return", exchange="bellhop.route", routing_key="renamed", reply_code=312)
    assert back.body == body and back.headers is None
    channel.expect("basic.ack", delivery_tag=1)
    channel.publish("bellhop.route", "exact", body)
    channel.expect("basic.ack", delivery_tag=2)
    check = broker.channel().get_wait(line.queue("two"))
    assert daemon.objects() == [check.body[3:].decode()]


def test_a_finished_slip_published_by_name_has_nowhere_to_go(bellhop, line):
    channel = slips.confirming(amqp.connect(bellhop(config(line, "q")).socket))
    channel.publish("bellhop.route", "piped", b"x", headers=slips.declared(["one"], 1))
    channel.expect("basic.nack", delivery_tag=1)
    channel.publish("bellhop.route", "piped", b"x")
    channel.expect("basic.ack", delivery_tag=2)


# --- virtual exchanges

@pytest.mark.parametrize("exchange", ["bellhop.next", "bellhop.route"])
def test_a_passive_declare_of_a_virtual_exchange_succeeds(bellhop, exchange):
    channel = amqp.connect(bellhop().socket).channel()
    channel.send("exchange.declare", exchange=exchange, passive=True, nowait=True)
    channel.call("exchange.declare", exchange=exchange, passive=True)
    channel.call("exchange.declare", exchange=exchange, type="topic", durable=True, passive=True)
    channel.expect_nothing(0.1)


def test_its_reply_keeps_its_place_among_the_others(bellhop, name):
    channel = amqp.connect(bellhop().socket).channel()
    channel.send("queue.declare", queue=name(), exclusive=True)
    channel.send("exchange.declare", exchange="bellhop.next", passive=True)
    channel.send("basic.qos", prefetch_count=1)
    for reply in ("queue.declare-ok", "exchange.declare-ok", "basic.qos-ok"):
        channel.expect(reply)


@pytest.mark.parametrize("exchange", ["bellhop.next", "bellhop.route"])
@pytest.mark.parametrize("method, arguments", [
    ("exchange.declare", {"exchange": "@", "type": "direct"}),
    ("exchange.delete", {"exchange": "@"}),
    ("exchange.bind", {"destination": "@", "source": "amq.direct", "routing_key": "k"}),
    ("exchange.bind", {"destination": "amq.direct", "source": "@", "routing_key": "k"}),
    ("exchange.unbind", {"destination": "amq.direct", "source": "@", "routing_key": "k"}),
    ("queue.bind", {"queue": "q", "exchange": "@", "routing_key": "k"}),
    ("queue.unbind", {"queue": "q", "exchange": "@", "routing_key": "k"}),
])
def test_anything_else_about_it_is_refused(bellhop, exchange, method, arguments):
    client = amqp.connect(bellhop().socket)
    channel = client.channel()
    channel.send(method, **{k: exchange if v == "@" else v for k, v in arguments.items()})
    closed = channel.expect_close(403)
    assert exchange in closed.reply_text and (closed.class_id, closed.method_id) == amqp.METHODS[method][:2]
    client.channel(1)  # the id is free again


def test_exchanges_with_names_that_only_look_like_them_are_the_brokers(bellhop, name):
    channel = amqp.connect(bellhop().socket).channel()
    exchange = name("bellhop.next")
    channel.call("exchange.declare", exchange=exchange, type="direct", auto_delete=True)
    channel.call("exchange.bind", destination="amq.topic", source=exchange, routing_key="k")
    channel.call("exchange.delete", exchange=exchange)
    channel.send("exchange.declare", exchange="bellhop.nex", passive=True)
    assert channel.expect_close(404).reply_text.startswith("NOT_FOUND - no exchange 'bellhop.nex' in vhost '/'")
