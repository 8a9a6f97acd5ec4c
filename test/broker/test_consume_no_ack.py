"""Consumers and gets without acknowledgements: the broker has forgotten what it sent, so nothing may be lost on this side."""

from support import amqp
from support.claims import MISSING, Consumer, Marker, Side, body_of, claim, put_object

HELD = "delivery held"
LATER = "22222222-2222-4333-8444-555555555555"


def test_a_no_ack_consumer_gets_claims_and_plain_messages_in_order(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    bodies = [body_of(200_000 if n % 3 == 0 else 50, n) for n in range(60)]
    side.send(*[claim(put_object(daemon, body)) if len(body) > 65536 else body for body in bodies])
    consumer = Consumer(daemon, side.queue, no_ack=True)
    assert consumer.bodies(60) == bodies
    consumer.client.close()
    assert side.count() == 0


def test_a_no_ack_consumers_missing_object_is_parked(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    side.send(claim(MISSING), b"next")
    consumer = Consumer(daemon, side.queue, no_ack=True)
    assert consumer.deliver().body == b"next"
    assert "retention" in side.take().headers["x-acemq-error"]
    consumer.channel.declare("", exclusive=True)


def test_a_consumer_without_a_name_that_wants_no_answer_is_known_all_the_same(bellhop, broker, name):
    """Nobody says what tag the broker would make for it, and yet its messages must not be acknowledged."""
    daemon = bellhop()
    side = Side(broker, name())
    side.send(claim(MISSING), b"next")
    channel = amqp.connect(daemon.socket).channel()
    channel.send("basic.consume", queue=side.queue, no_ack=True, nowait=True, arguments={"x-priority": 1})
    got = channel.deliver()
    assert got.body == b"next" and got.consumer_tag.startswith("amq.ctag-")
    parked = side.take()
    assert parked.body == claim(MISSING) and "retention" in parked.headers["x-acemq-error"]
    channel.call("basic.cancel", consumer_tag=got.consumer_tag)


def held(daemon, side, broker):
    marker = Marker(daemon)
    marker.remove()
    side.send(claim(LATER), b"\xac\x01\x00inline", b"\xac\x01\x00\xac\x01\x00escaped", b"plain", headers={"n": 1})
    consumer = Consumer(daemon, side.queue, no_ack=True)
    daemon.wait_log(HELD)
    side.wait_count(0)
    consumer.channel.declare("", exclusive=True)
    return consumer


def expect_parked(side):
    parked = [side.take() for _ in range(4)]
    assert sorted(p.body for p in parked) == sorted([claim(LATER), b"\xac\x01\x00inline", b"\xac\x01\x00\xac\x01\x00escaped", b"plain"])
    assert all(p.headers["n"] == 1 and p.headers["x-acemq-error"] for p in parked)


def test_what_a_no_ack_consumer_was_not_handed_is_parked_when_its_channel_closes(bellhop, broker, name):
    daemon, side = bellhop(), Side(broker, name())
    held(daemon, side, broker).channel.close()
    expect_parked(side)


def test_what_a_no_ack_consumer_was_not_handed_is_parked_when_its_connection_closes(bellhop, broker, name):
    daemon, side = bellhop(), Side(broker, name())
    held(daemon, side, broker).client.close()
    expect_parked(side)


def test_what_a_no_ack_consumer_was_not_handed_is_parked_when_its_client_dies(bellhop, broker, name):
    daemon, side = bellhop(), Side(broker, name())
    held(daemon, side, broker).client.abort()
    expect_parked(side)


def test_what_a_no_ack_consumer_was_not_handed_is_parked_when_the_channel_fails(bellhop, broker, name):
    daemon, side = bellhop(), Side(broker, name())
    consumer = held(daemon, side, broker)
    consumer.channel.send("queue.declare", queue=name("nothing"), passive=True)
    consumer.channel.expect_close(404)
    expect_parked(side)


def test_what_a_no_ack_consumer_was_not_handed_is_parked_when_it_is_cancelled(bellhop, broker, name):
    daemon, side = bellhop(), Side(broker, name())
    consumer = held(daemon, side, broker)
    consumer.channel.call("basic.cancel", consumer_tag=consumer.tag)
    expect_parked(side)


def test_after_hold_max_a_no_ack_consumers_delivery_alone_is_parked(bellhop, broker, name):
    daemon, side = bellhop({"consume": {"hold_max": "1s"}}), Side(broker, name())
    consumer = held(daemon, side, broker)
    assert consumer.bodies(3) == [b"inline", b"\xac\x01\x00escaped", b"plain"]
    parked = side.take()
    assert parked.body == claim(LATER) and parked.headers["x-acemq-error"].startswith("store unavailable: ")
    consumer.client.close()


def test_what_a_no_ack_consumer_was_not_handed_is_parked_when_bellhop_ends(bellhop, broker, name):
    daemon, side = bellhop({"limits": {"drain_timeout": "3s"}}), Side(broker, name())
    consumer = held(daemon, side, broker)
    daemon.sigterm()
    consumer.client.expect_close(320)
    expect_parked(side)
    assert daemon.wait() == 0


def test_a_no_ack_get_of_a_claim_is_acknowledged_after_its_last_byte(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    payload = body_of(30 << 20)
    side.send(claim(put_object(daemon, payload)))
    client = amqp.connect(daemon.socket)
    channel = client.channel()
    channel.send("basic.get", queue=side.queue, no_ack=True)
    client.read_exactly(1 << 20)  # the body is under way, and larger than what fits into the sockets
    client.abort()
    side.wait_count(1)
    again = amqp.connect(daemon.socket)
    got = again.channel().get(side.queue, no_ack=True)
    assert got.body == payload and got.redelivered
    again.abort()
    side.channel.declare(side.queue, passive=True)
    assert side.count() == 0


def test_no_ack_gets_leave_nothing_to_acknowledge(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    key = put_object(daemon, b"payload")
    side.send(b"plain", claim(key), b"last")
    client = amqp.connect(daemon.socket)
    channel = client.channel()
    assert [channel.get(side.queue, no_ack=True).body for _ in range(2)] == [b"plain", b"payload"]
    got = channel.get(side.queue)
    channel.ack(0, multiple=True)
    channel.declare("", exclusive=True)
    channel.ack(got.delivery_tag)
    assert channel.expect_close(406)
    client.close()
    assert side.count() == 0


def test_a_get_without_ack_is_held_while_the_store_is_away(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    marker = Marker(daemon)
    marker.remove()
    side.send(claim(LATER))
    client = amqp.connect(daemon.socket)
    channel = client.channel()
    channel.send("basic.get", queue=side.queue, no_ack=True)
    daemon.wait_log(HELD)
    put_object(daemon, b"late", LATER)
    marker.restore()
    assert channel.wait_for("basic.get-ok").body == b"late"
    client.close()
    assert side.count() == 0
