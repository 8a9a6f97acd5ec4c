"""A route pins a slip on a message and sends it to its first step; a message that carries one already goes to where it says."""

import re

import pytest

from support import amqp, slips
from support.amqp import Typed, encode_table
from support.rabbitmq import as_kept

UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"


@pytest.fixture
def line(broker, name):
    return slips.Line(broker.channel(), name("fulfilment"), "validate", "reserve", "dispatch")


def by_pipeline(line, **route):
    return {"pipelines": line.config(), "routes": [{"name": "orders", "match": {"exchange": "orders"}, "slip": {"pipeline": line.name}, **route}]}


def by_itinerary(*stops):
    return {"routes": [{"name": "orders", "match": {"exchange": "orders"}, "slip": {"itinerary": list(stops)}}]}


def publish(daemon, exchange, key, body=b"body", **properties):
    channel = slips.confirming(amqp.connect(daemon.socket))
    channel.publish(exchange, key, body, **properties)
    return channel


def test_a_declared_route_starts_with_three_headers_behind_the_clients_own(bellhop, broker, line):
    channel = publish(bellhop(by_pipeline(line)), "orders", "order.new", headers={"app": Typed("s", 7)})
    channel.expect("basic.ack", delivery_tag=1)
    first = broker.channel().get_wait(line.queue("validate"))
    run = first.headers[slips.RUN]
    assert re.fullmatch(UUID, run)
    assert first.headers_raw == as_kept(encode_table([("app", Typed("s", 7)), (slips.ROUTE, "validate,reserve,dispatch"),
                                                      (slips.POSITION, Typed("l", 0)), (slips.RUN, run)]))
    assert (first.exchange, first.routing_key, first.body) == (line.name, "validate", b"body")


def test_each_run_has_an_id_of_its_own(bellhop, broker, line):
    daemon = bellhop(by_pipeline(line))
    channel = slips.confirming(amqp.connect(daemon.socket))
    for body in (b"1", b"2", b"3"):
        channel.publish("orders", "order.new", body)
    assert channel.confirms(3) == {1: "ack", 2: "ack", 3: "ack"}
    above = broker.channel()
    runs = [above.get_wait(line.queue("validate")).headers[slips.RUN] for _ in range(3)]
    assert len(set(runs)) == 3 and all(re.fullmatch(UUID, run) for run in runs)


def test_the_first_start_of_a_session_goes_on_as_soon_as_the_broker_has_said_where_to(bellhop, broker, line):
    channel = publish(bellhop(by_pipeline(line)), "orders", "order.new")
    channel.expect("basic.ack", delivery_tag=1, timeout=4)  # the session's own tick would come after 5 s


def test_a_carried_itinerary_starts_as_the_manuals_json(bellhop, broker, name):
    above = broker.channel()
    queue = slips.short_lived(above, name())
    config = by_itinerary({"exchange": "", "routing_key": queue}, {"exchange": "orders-events", "routing_key": "order.charge", "name": "charge"})
    channel = publish(bellhop(config), "orders", "order.new")
    channel.expect("basic.ack", delivery_tag=1)
    first = above.get_wait(queue)
    assert first.headers_raw == encode_table({slips.ITINERARY: '{"steps":[{"exchange":"","routingKey":"%s"},{"exchange":"orders-events",'
                                                               '"routingKey":"order.charge","name":"charge"}]}' % queue})


def test_a_large_message_starts_its_route_as_a_claim_check(bellhop, broker, line):
    body = bytes(range(256)) * 1024
    daemon = bellhop(by_pipeline(line))
    channel = publish(daemon, "orders", "order.new", body)
    channel.expect("basic.ack", delivery_tag=1)
    first = broker.channel().get_wait(line.queue("validate"))
    assert first.body[:3] == b"\xac\x01\x01" and daemon.object(first.body[3:].decode()) == body
    assert first.headers[slips.ROUTE] == "validate,reserve,dispatch" and first.headers[slips.POSITION] == 0


def test_an_unroutable_start_comes_back_as_the_client_published_it(bellhop, broker, name):
    line = slips.Line(broker.channel(), name("empty"), "one", queues=False)
    channel = publish(bellhop(by_pipeline(line)), "orders", "order.new", b"body", mandatory=True, headers={"a": 1}, message_id="m")
    back = channel.expect("basic.return", reply_code=312, exchange="orders", routing_key="order.new")
    assert (back.body, back.properties) == (b"body", {"headers": {"a": 1}, "message_id": "m"})
    channel.expect("basic.ack", delivery_tag=1)


# --- a message that carries a slip already keeps it

@pytest.mark.parametrize("position", [Typed("l", 1), Typed("I", 1), Typed("s", 1), Typed("b", 1), "1", " 1 "], ids=str)
def test_a_declared_route_that_is_there_goes_on_from_its_position_unchanged(bellhop, broker, line, position):
    headers = {slips.ROUTE: "validate, reserve,,dispatch", slips.POSITION: position, slips.RUN: "run-1", "app": 1}
    channel = publish(bellhop(by_pipeline(line)), "orders", "order.new", headers=headers)
    channel.expect("basic.ack", delivery_tag=1)
    here = broker.channel().get_wait(line.queue("reserve"))
    assert here.headers_raw == as_kept(encode_table(headers))


def test_an_itinerary_that_is_there_goes_to_its_first_stop_unchanged(bellhop, broker, line):
    headers = slips.itinerary(*line.stops("dispatch"), done=[slips.stop("elsewhere", "k", "n", "2026-09-09T16:18:09.123+00:00")], more=[1, 2])
    channel = publish(bellhop(by_pipeline(line)), "orders", "order.new", headers=headers)
    channel.expect("basic.ack", delivery_tag=1)
    assert broker.channel().get_wait(line.queue("dispatch")).headers_raw == as_kept(encode_table(headers))


def test_of_two_slips_the_itinerary_counts(bellhop, broker, line):
    headers = {**slips.declared(line.steps, 0), **slips.itinerary(*line.stops("dispatch"))}
    channel = publish(bellhop(by_pipeline(line)), "orders", "order.new", headers=headers)
    channel.expect("basic.ack", delivery_tag=1)
    assert broker.channel().get_wait(line.queue("dispatch")).headers_raw == as_kept(encode_table(headers))


@pytest.mark.parametrize("headers", [slips.declared(["a", "b"], 2, "run"), slips.declared(["a"], 99, "run"),
                                     slips.itinerary(done=[slips.stop("e", "k", "n", "2026-09-09T16:18:09Z")])], ids=["end", "past", "json"])
def test_a_finished_slip_leaves_the_message_where_the_client_sent_it(bellhop, broker, line, name, headers):
    above = broker.channel()
    exchange = name("orders")
    above.call("exchange.declare", exchange=exchange, type="fanout", auto_delete=True)
    queue = slips.short_lived(above, name())
    above.call("queue.bind", queue=queue, exchange=exchange)
    config = by_pipeline(line, match={"exchange": exchange})
    channel = publish(bellhop(config), exchange, "order.new", headers=headers)
    channel.expect("basic.ack", delivery_tag=1)
    done = above.get_wait(queue)
    assert done.headers_raw == as_kept(encode_table(headers)) and done.routing_key == "order.new"


BAD_SLIPS = {
    "not json": {slips.ITINERARY: "{"},
    "no object": {slips.ITINERARY: "[]"},
    "steps no array": {slips.ITINERARY: '{"steps":{}}'},
    "stop no object": {slips.ITINERARY: '{"steps":["a"]}'},
    "no text": {slips.ITINERARY: 7},
    "too long": {slips.ITINERARY: '{"steps":[],"x":"' + "y" * 65536 + '"}'},
    "too deep": {slips.ITINERARY: '{"steps":[],"x":' + "[" * 16 + "]" * 16 + "}"},
    "not allowed": slips.itinerary(slips.stop("amq.fanout", "k")),
    "default exchange": slips.itinerary(slips.stop("", "k")),
    "no such step": slips.declared(["nowhere"], 0),
}


@pytest.mark.parametrize("kind", BAD_SLIPS)
def test_a_slip_that_leads_nowhere_is_a_nack_and_without_confirms_a_406(bellhop, line, kind):
    daemon = bellhop(by_pipeline(line))
    client = amqp.connect(daemon.socket)
    confirming, plain = slips.confirming(client), client.channel()
    confirming.publish("orders", "order.new", b"x", headers=BAD_SLIPS[kind])
    confirming.expect("basic.nack", delivery_tag=1, multiple=False)
    plain.publish("orders", "order.new", b"x", headers=BAD_SLIPS[kind])
    assert "slip" in plain.expect_close(406).reply_text
    confirming.publish("orders", "order.new", b"fine")
    confirming.expect("basic.ack", delivery_tag=2)


def test_the_default_exchange_is_a_stop_where_the_configuration_writes_it(bellhop, broker, line, name):
    above = broker.channel()
    queue = slips.short_lived(above, name())
    daemon = bellhop({**by_pipeline(line), "slip": {"allowed_exchanges": [""]}})
    channel = publish(daemon, "orders", "order.new", headers=slips.itinerary(slips.stop("", queue)))
    channel.expect("basic.ack", delivery_tag=1)
    assert above.get_wait(queue).body == b"body"
    channel.publish("orders", "order.new", headers=slips.itinerary(slips.stop(line.name, "validate")))
    channel.expect("basic.nack", delivery_tag=2)
