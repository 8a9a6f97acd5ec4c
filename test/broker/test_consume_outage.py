"""A store that is away is not the messages' fault: however often their consumer comes and goes meanwhile, a quorum queue's delivery
limit drops none of them."""

import uuid

import pytest

from support import amqp
from support.claims import Consumer, Marker, Side, claim, put_object

TURNS = 40


def quorum(limit):
    return {"x-queue-type": "quorum", "x-delivery-limit": limit}


def take_all(consumer, into):
    """Acknowledges what the consumer is handed, until nothing comes."""
    while True:
        try:
            got = consumer.deliver(timeout=0.5)
        except amqp.Timeout:
            break
        into.append(got.body)
        consumer.ack(got.delivery_tag)
    consumer.channel.declare("", exclusive=True)  # the acks are at the broker
    consumer.client.close()


@pytest.mark.parametrize("limit", [3, 20])
def test_a_store_outage_wears_no_message_out(bellhop, broker, name, limit):
    """A claim and a neighbour more in each turn. The consumer goes away while claims are held; it acknowledges what it is handed."""
    daemon = bellhop()
    side = Side(broker, name(), arguments=quorum(limit))
    marker = Marker(daemon)
    marker.remove()
    try:
        handed, keys = [], []
        for turn in range(TURNS):
            keys.append(str(uuid.uuid4()))
            side.send(claim(keys[-1]), b"neighbour %d" % turn)
            consumer = Consumer(daemon, side.queue, prefetch=50)
            side.wait_count(0)  # bellhop has them
            take_all(consumer, handed)
        assert not [body for body in handed if body.startswith(b"payload")]
        for turn, key in enumerate(keys):
            put_object(daemon, b"payload %d" % turn, key)
        marker.restore()
        take_all(Consumer(daemon, side.queue, prefetch=50), handed)
        parked = [side.take() for _ in range(side.count(side.parked))]
        assert parked and all(p.headers["x-acemq-error"].startswith("store unavailable: ") for p in parked)
        # None is lost, and none came twice.
        expected = [claim(key) for key in keys] + [b"neighbour %d" % turn for turn in range(TURNS)]
        payloads = {b"payload %d" % turn: claim(key) for turn, key in enumerate(keys)}
        assert sorted([payloads.get(body, body) for body in handed] + [p.body for p in parked]) == sorted(expected)
        assert side.count() == 0
    finally:
        for queue in (side.queue, side.parked):
            side.channel.call("queue.delete", queue=queue)


def test_a_claim_that_came_back_twice_is_parked_at_once_and_its_neighbours_go_on(bellhop, broker, name):
    daemon = bellhop()  # hold_max: 10m
    side = Side(broker, name(), arguments=quorum(3))
    try:
        key = str(uuid.uuid4())
        side.send(claim(key), b"neighbour")
        marker = Marker(daemon)
        marker.remove()
        for _ in range(2):
            consumer = Consumer(daemon, side.queue)
            side.wait_count(0)
            daemon.wait_log("delivery held")
            consumer.client.close()
            side.wait_count(2)
        consumer = Consumer(daemon, side.queue)
        assert consumer.deliver().body == b"neighbour"
        assert side.take().body == claim(key)
        consumer.client.close()
    finally:
        for queue in (side.queue, side.parked):
            side.channel.call("queue.delete", queue=queue)
