"""A client that chose a smaller frame_max than the broker's: what goes to it and comes from it stays within its choice, and what bellhop
itself says to the broker may be as large as the broker takes."""

import pika
import pytest

from support import amqp, slips
from support.claims import INLINE, MISSING, Consumer, Side, body_of, claim, put_object
from support.rabbitmq import SMALLEST_FRAME_MAX, wait_until

SMALL = sorted({SMALLEST_FRAME_MAX, 8192})
TRACE = {"trace": "t" * 9000}  # in one content header: RabbitMQ never splits that
KIB = 1024


def whole(body_bytes, frame_max):
    """The sizes of a body's frames as RabbitMQ makes them: all are full but the last."""
    full = frame_max - 8
    return [full] * (body_bytes // full) + ([body_bytes % full] if body_bytes % full else [])


@pytest.mark.parametrize("frame_max", SMALL)
def test_a_claim_whose_object_is_gone_is_parked_with_headers_larger_than_the_clients_frames(bellhop, broker, name, frame_max):
    daemon = bellhop()
    side = Side(broker, name())
    payload = body_of(200 * KIB)
    side.send(b"before", claim(MISSING), claim(put_object(daemon, payload)), b"behind", headers=TRACE)
    consumer = Consumer(daemon, side.queue, frame_max=frame_max)
    got = [consumer.deliver() for _ in range(3)]
    assert [g.body for g in got] == [b"before", payload, b"behind"]
    assert got[1].body_frames == whole(len(payload), frame_max)
    assert all(g.headers == TRACE for g in got)
    parked = side.take()
    assert parked.body == claim(MISSING)
    assert MISSING in parked.headers.pop("x-acemq-error") and parked.headers == TRACE
    consumer.ack(0, multiple=True)
    consumer.client.close()
    assert side.count() == 0


@pytest.mark.parametrize("frame_max", SMALL)
@pytest.mark.parametrize("no_ack", [False, True])
def test_a_get_of_such_a_message_finds_the_one_behind_it(bellhop, broker, name, frame_max, no_ack):
    side = Side(broker, name())
    side.send(claim(MISSING), b"behind", headers=TRACE)
    channel = amqp.connect(bellhop().socket, frame_max=frame_max).channel()
    assert channel.get(side.queue, no_ack=no_ack) is None
    assert channel.get(side.queue, no_ack=no_ack).body == b"behind"
    assert side.take().headers["trace"] == TRACE["trace"]


@pytest.mark.parametrize("frame_max", SMALL)
def test_what_a_no_ack_consumer_was_not_handed_is_parked_whole(bellhop, broker, name, frame_max):
    """The consumer ends while a claim before it waits for its store: it is the only one who has the message behind the claim."""
    daemon = bellhop({"claim_check": {"threshold": "1MiB"}, "consume": {"hold_max": "60s"}})
    side = Side(broker, name())
    large = body_of(300 * KIB)
    (daemon.store_path / ".bellhop-store").unlink()
    side.send(claim(MISSING), large, headers=TRACE)
    consumer = Consumer(daemon, side.queue, no_ack=True, frame_max=frame_max)
    wait_until(lambda: side.count() == 0, 15, "both messages with bellhop")
    daemon.wait_log("held")
    consumer.channel.close()
    side.wait_parked(2)
    parked = [side.take() for _ in "12"]
    assert sorted(p.body for p in parked) == sorted([claim(MISSING), large])
    assert all(p.headers["trace"] == TRACE["trace"] for p in parked)
    consumer.client.close()


@pytest.mark.parametrize("frame_max", SMALL)
def test_pika_with_small_frames_gets_what_is_behind_a_parked_message(bellhop, broker, name, frame_max):
    daemon = bellhop({"listen": [{"unix": "{socket}"}, {"tcp": "127.0.0.1:0"}]})
    port = int(daemon.wait_log(r"listening address=tcp:127\.0\.0\.1:(\d+)")[1])
    side = Side(broker, name())
    payload = body_of(200 * KIB)
    side.send(claim(MISSING), payload, claim(put_object(daemon, payload)), b"behind", headers=TRACE)
    connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port, frame_max=frame_max))
    got = []
    for method, properties, body in connection.channel().consume(side.queue, auto_ack=True, inactivity_timeout=20):
        got.append((properties and properties.headers, body))
        if len(got) == 3 or method is None:
            break
    connection.close()
    assert got == [(TRACE, payload), (TRACE, payload), (TRACE, b"behind")]
    assert side.take().body == claim(MISSING)


def frames_of_a_message(address, queue, frame_max):
    """Its content header and body frames, byte for byte as they come."""
    client = amqp.connect(address, frame_max=frame_max)
    client.channel()
    client.send(1, "basic.get", queue=queue, no_ack=False)
    client.read_frame()
    frames = [client.read_frame()]
    left = int.from_bytes(frames[0].payload[4:12], "big")
    while left:
        frames.append(client.read_frame())
        left -= len(frames[-1].payload)
    client.send(1, "basic.nack", delivery_tag=1, requeue=True)
    client.close()
    return frames


@pytest.mark.parametrize("frame_max", [*SMALL, 131071, 131072])
def test_a_client_is_sent_the_frames_that_rabbitmq_would_send_it(rabbit, bellhop, broker, name, frame_max):
    daemon = bellhop({"claim_check": {"threshold": "1MiB"}})
    side = Side(broker, name())
    full, brokers = frame_max - 8, 131072 - 8
    for size in (0, 1, 2, full - 1, full, full + 1, 2 * full, 3 * full + 2, brokers - 1, brokers, brokers + 1, brokers + full, 3 * brokers + 5):
        side.send(body_of(size), headers=TRACE)
        direct = frames_of_a_message(rabbit.address, side.queue, frame_max)
        assert frames_of_a_message(daemon.socket, side.queue, frame_max) == direct
        assert all(frame.type == 3 and len(frame.payload) <= full for frame in direct[1:])
        side.channel.call("queue.purge", queue=side.queue)


@pytest.mark.parametrize("frame_max", [*SMALL, 131072])
def test_bodies_behind_a_claim_and_returned_ones_come_in_the_clients_frames(bellhop, broker, name, frame_max):
    daemon = bellhop({"claim_check": {"threshold": "1MiB"}})
    side = Side(broker, name())
    bodies = [body_of(n, n) for n in (frame_max - 8, frame_max - 7, 131072, 400 * KIB)]
    slow = body_of(8 << 20)
    side.send(claim(put_object(daemon, slow)), *bodies, *[INLINE + body for body in bodies])
    consumer = Consumer(daemon, side.queue, frame_max=frame_max)
    for body in (slow, *bodies, *bodies):
        got = consumer.deliver(timeout=30)
        assert got.body == body and got.body_frames == whole(len(body), frame_max)
    for body in bodies:
        consumer.channel.publish("", name("nobody"), body, mandatory=True)
        back = consumer.channel.wait_for("basic.return")
        assert back.body == body and back.body_frames == whole(len(body), frame_max)
    consumer.client.close()


def test_a_hop_is_made_with_headers_larger_than_the_clients_frames(bellhop, broker, name):
    line = slips.Line(broker.channel(), name("line"), "a", "b")
    daemon = bellhop({"pipelines": line.config()})
    channel = slips.confirming(amqp.connect(daemon.socket, frame_max=SMALLEST_FRAME_MAX))
    headers = {**slips.declared(line.steps, 0), "trace": ""}
    room = SMALLEST_FRAME_MAX - 8 - len(amqp.encode_header(6, {"headers": headers}))
    headers["trace"] = "t" * room  # no room is left for the message id that bellhop adds
    channel.publish("bellhop.next", "", b"result", headers=headers)
    channel.expect("basic.ack", delivery_tag=1)
    got = broker.channel().get_wait(line.queue("b"))
    assert got.body == b"result" and got.headers["trace"] == headers["trace"] and got.properties["message_id"]
    assert len(got.header) > SMALLEST_FRAME_MAX - 8
