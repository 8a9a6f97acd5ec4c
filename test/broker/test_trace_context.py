"""The W3C's trace context: `traceparent` and `tracestate` are the application's. They pass in every way that bellhop handles a message."""

import json

import pytest

from support import amqp, slips
from support.claims import MISSING, body_of, claim
from support.rabbitmq import wait_until

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
GOOD = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01", "tracestate": "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"}
# Malformed: passed on, and not shown.
BAD = {"traceparent": f"00-{TRACE.upper()}-00f067aa0ba902b7-01\n", "tracestate": ""}

both = pytest.mark.parametrize("context", [GOOD, BAD], ids=["well-formed", "malformed"])


@pytest.fixture
def start(bellhop):
    def start(**config):
        daemon = bellhop({"log": {"format": "json", "level": "debug"}, **config})
        return daemon, slips.confirming(amqp.connect(daemon.socket))
    return start


def trace_of(daemon, message):
    """The trace_id of the line with that message, None without one."""
    def found():
        return next(([line.get("trace_id")] for line in map(json.loads, daemon.log.splitlines()) if line["message"] == message), None)
    return wait_until(found, what=f"a line {message!r}")[0]


def shown(context):
    return TRACE if context is GOOD else None


def carries(delivery, context):
    assert {name: delivery.headers.get(name) for name in context} == context
    return delivery


@both
def test_a_message_that_is_relayed_keeps_it(start, broker, name, context):
    daemon, channel = start()
    queue = channel.declare(name(), exclusive=True)
    channel.publish("", queue, b"small", headers={"app": 1, **context})
    channel.expect("basic.ack")
    channel.call("basic.consume", queue=queue)
    assert carries(channel.deliver(), context).headers["app"] == 1


@both
def test_an_offloaded_and_restored_one_keeps_it(start, broker, name, context):
    daemon, channel = start()
    queue = name()
    direct = broker.channel()
    direct.declare(queue)
    for _ in range(2):
        channel.publish("", queue, body_of(100_000), headers=context)
    channel.confirms(2)
    assert trace_of(daemon, "payload offloaded") == shown(context)
    carries(direct.get_wait(queue), context)
    channel.call("basic.consume", queue=queue)
    assert carries(channel.deliver(), context).body == body_of(100_000)
    assert trace_of(daemon, "payload restored") == shown(context)
    channel.call("queue.delete", queue=queue)


@both
def test_a_parked_one_keeps_it(start, broker, name, context):
    daemon, channel = start()
    queue = name()
    direct = broker.channel()
    direct.declare(queue)
    direct.publish("", queue, claim(MISSING), headers=context)
    channel.call("basic.consume", queue=queue)
    for message in ("message parked", "park confirmed", "delivery cannot be restored"):
        assert trace_of(daemon, message) == shown(context)
    carries(direct.get_wait(queue + ".parked"), context)
    for each in (queue, queue + ".parked"):
        direct.call("queue.delete", queue=each)


@both
@pytest.mark.parametrize("size", [10, 100_000])
def test_a_hop_along_a_pipeline_keeps_it(start, broker, name, context, size):
    line = slips.Line(broker.channel(), name("line"), "pick", "pack")
    daemon, channel = start(pipelines=line.config())
    channel.publish(line.name, "pick", b"in", headers=context)
    channel.expect("basic.ack")
    channel.call("basic.consume", queue=line.queue("pick"))
    slips.hop(channel, channel.deliver(), body_of(size))
    channel.expect("basic.ack")
    carries(broker.channel().get_wait(line.queue("pack")), context)
    assert trace_of(daemon, "hop confirmed") == shown(context)


@both
def test_a_hop_along_an_itinerary_keeps_it_and_one_that_fails_tells_it(start, broker, name, context):
    line = slips.Line(broker.channel(), name("line"), "a", "b")
    daemon, channel = start(slip={"allowed_exchanges": [line.name, "gone"]})
    channel.publish("bellhop.next", "", b"x", headers={**slips.itinerary(*line.stops()), **context})
    channel.expect("basic.ack")
    carries(broker.channel().get_wait(line.queue("b")), context)
    channel.publish("bellhop.next", "", b"x", headers={**slips.itinerary(*line.stops("a"), slips.stop("gone", "k")), **context})
    channel.expect("basic.nack")
    assert trace_of(daemon, "hop confirmed") == trace_of(daemon, "hop failed") == shown(context)


@both
def test_a_publish_that_is_refused_tells_it(start, name, context):
    daemon, channel = start()
    queue = channel.declare(name(), exclusive=True)
    daemon.store_path.rename(daemon.store_path.with_name("away"))
    channel.publish("", queue, b"x" * 100_000, headers=context)
    channel.expect("basic.nack")
    assert trace_of(daemon, "publish refused") == shown(context)
