"""Large bodies on their way to the client: contiguous frames, bounded memory, and what happens when either side goes away."""

import time

import pytest

from support import amqp
from support.claims import Consumer, Side, body_of, claim, put_object
from support.rabbitmq import wait_until

MIB = 1 << 20


def at_rest(look):
    """Whether what `look` sees is the same a little later."""
    before = look()
    time.sleep(0.2)
    return look() == before


def test_no_foreign_frame_stands_between_the_frames_of_a_body_not_even_a_heartbeat(bellhop, broker, name):
    daemon = bellhop()
    large, small = Side(broker, name("large")), Side(broker, name("small"))
    payload = body_of(20 * MIB)
    large.send(*[claim(put_object(daemon, payload))] * 2)
    client = amqp.connect(daemon.socket, heartbeat=1)
    first, second = client.channel(), client.channel()
    second.call("basic.consume", queue=small.queue, no_ack=True)
    client.send(first.number, "basic.consume", queue=large.queue)
    publisher = amqp.connect(daemon.socket)
    busy = publisher.channel()
    frames, have, count = [], 0, 0
    last_beat = time.monotonic()
    while have < 2 * len(payload):
        f = client.read_frame()
        frames.append((f.type, f.channel))
        have += len(f.payload) if f.channel == first.number and f.type == amqp.FRAME_BODY else 0
        if len(frames) % 8 == 0:
            busy.publish("", small.queue, b"small")
            count += 1
            time.sleep(0.01)  # a slow reader: the body lasts several heartbeat intervals
        if time.monotonic() - last_beat > 0.5:
            client.send_heartbeat()
            last_beat = time.monotonic()
    inside = None
    for kind, channel in frames:
        if kind == amqp.FRAME_HEADER and channel == first.number:
            inside, left = channel, -(-len(payload) // (131072 - 8))
        elif inside is not None:
            assert (kind, channel) == (amqp.FRAME_BODY, first.number)
            left -= 1
            if left == 0:
                inside = None
    assert any(channel == second.number for _, channel in frames), "the busy channel had its turn between the bodies"
    client.send_heartbeat()
    publisher.close()


def test_a_body_of_100_mib_is_consumed_without_being_held_in_memory(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    payload = body_of(100 * MIB)
    side.send(claim(put_object(daemon, payload)))
    consumer = Consumer(daemon, side.queue)
    assert consumer.deliver(timeout=60).body == payload
    daemon.assert_memory_below(64 * 1024, "VmHWM")
    consumer.ack(1)
    consumer.client.close()
    assert side.count() == 0


def test_a_slow_client_stops_the_stream_and_another_session_goes_on(bellhop, broker, name):
    daemon = bellhop()
    slow, fast = Side(broker, name("slow")), Side(broker, name("fast"))
    payload = body_of(20 * MIB)
    key = put_object(daemon, payload)
    slow.send(*[claim(key)] * 10)
    stalled = Consumer(daemon, slow.queue)
    stalled.client.read_exactly(100_000)
    before = daemon.memory_kib()
    fast.send(*[claim(key)] * 2, *[b"small"] * 500)
    quick = Consumer(daemon, fast.queue)
    assert quick.deliver().body == payload and quick.deliver().body == payload
    assert quick.bodies(500) == [b"small"] * 500
    daemon.assert_memory_below(16 * 1024, beyond=before)


def test_a_client_that_reads_nothing_stops_the_deliveries_and_memory_stays_flat(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    body = body_of(60_000)
    for _ in range(10):
        side.send(*[body] * 200)  # 120 MB
    consumer = Consumer(daemon, side.queue)
    wait_until(lambda: side.count() < 2000, 15, "deliveries")
    wait_until(lambda: at_rest(side.count), 15, "the deliveries to stop")
    assert side.count() > 1000
    daemon.assert_memory_below(64 * 1024, "VmHWM")
    assert sum(1 for _ in range(2000) if consumer.deliver().body == body) == 2000


def test_restored_bodies_wait_for_a_client_that_reads_nothing(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    payload = body_of(1 * MIB)  # the largest that is in memory as a whole
    side.send(*[claim(put_object(daemon, payload))] * 200)
    consumer = Consumer(daemon, side.queue)
    side.wait_count(0)
    wait_until(lambda: at_rest(daemon.memory_kib), 15, "the restoring to stop")
    assert sum(1 for _ in range(200) if consumer.deliver().body == payload) == 200
    daemon.assert_memory_below(64 * 1024, "VmHWM")


def test_a_consumer_that_dies_in_the_middle_of_a_body_gives_the_message_back(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    payload = body_of(20 * MIB)
    side.send(claim(put_object(daemon, payload)), b"behind")
    client = amqp.connect(daemon.socket)
    channel = client.channel()
    channel.send("basic.consume", queue=side.queue)
    client.read_exactly(200_000)
    client.abort()
    side.wait_count(2)
    consumer = Consumer(daemon, side.queue)
    got = consumer.deliver()
    assert got.redelivered and got.body == payload
    assert consumer.deliver().body == b"behind"
    # The dead client's session is gone with all it had open.
    wait_until(lambda: daemon.log.count("session closed session=") == 1, 15, "the end of the dead session")


def test_a_channel_closed_in_the_middle_of_a_body_leaves_the_connection_readable(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    payload = body_of(20 * MIB)
    side.send(claim(put_object(daemon, payload)))
    consumer = Consumer(daemon, side.queue)
    consumer.client.read_frame()
    consumer.channel.send("channel.close", reply_code=200)
    # The rest of the body is there, whole: the assembler would object to anything else.
    consumer.client.assembler._open = None
    while True:
        f = consumer.client.read_frame()
        if f.type == amqp.FRAME_METHOD:
            assert amqp.decode_method(f.channel, f.payload).name == "channel.close-ok"
            break
        assert f.channel == consumer.channel.number
    side.wait_count(1)
    assert consumer.client.channel().get(side.queue).body == payload


def test_replies_wait_for_the_end_of_a_body_that_is_under_way(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    payload = body_of(20 * MIB)
    side.send(claim(put_object(daemon, payload)))
    consumer = Consumer(daemon, side.queue)
    consumer.client.send(2, "channel.open")
    consumer.client.send(2, "queue.declare", exclusive=True)
    assert consumer.deliver().body == payload
    consumer.client.wait_for("queue.declare-ok", 2)


def write_into(path, offset, size_bytes=1000):
    """Writes into an object in place, as no store does."""
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(b"!" * size_bytes)


OVERWRITTEN = {"what was sent": 0, "the middle": 4 * MIB, "the last byte": 8 * MIB - 1}


@pytest.mark.parametrize("where", OVERWRITTEN)
@pytest.mark.parametrize("frame_max", [8192, 131072])
def test_an_object_that_is_overwritten_while_it_is_handed_over_never_reaches_the_client_whole(bellhop, broker, name, where, frame_max):
    daemon = bellhop()
    side = Side(broker, name())
    payload = body_of(8 * MIB)
    key = put_object(daemon, payload)
    side.send(claim(key))
    client = amqp.connect(daemon.socket, frame_max=frame_max)
    client.channel().send("basic.consume", queue=side.queue)
    while client.read_frame().type != amqp.FRAME_HEADER:
        pass  # its first bytes are on their way
    write_into(daemon.store_path / key, OVERWRITTEN[where], 1)
    have = 0
    with pytest.raises((amqp.SocketClosed, amqp.ProtocolError, StopIteration)):
        while True:
            frame = client.read_frame()
            if frame.type != amqp.FRAME_BODY:
                raise StopIteration
            have += len(frame.payload)
    assert have < len(payload), "the client has a whole message that nobody ever sent"
    daemon.wait_log(f"claim {key}: store 'claims': somebody wrote to the object after it was verified")
    client.abort()
    # It is delivered again, as what the object is now: without headers there is nothing to hold it against.
    changed = bytearray(payload)
    changed[OVERWRITTEN[where]:OVERWRITTEN[where] + 1] = b"!"
    again = Consumer(daemon, side.queue).deliver()
    assert again.redelivered and again.body == bytes(changed)


def test_an_object_whose_name_is_taken_away_while_it_is_handed_over_reaches_the_client_whole(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    payload = body_of(8 * MIB)
    key = put_object(daemon, payload)
    side.send(claim(key))
    client = amqp.connect(daemon.socket)
    client.channel().send("basic.consume", queue=side.queue)
    while client.read_frame().type != amqp.FRAME_HEADER:
        pass
    (daemon.store_path / key).unlink()  # by retention
    have = b""
    while len(have) < len(payload):
        have += client.read_frame().payload
    assert have == payload
    client.close()


@pytest.mark.parametrize("beyond", [1, 131064, 131065, 2 * 131064])
def test_a_body_of_whole_frames_or_a_little_more_comes_in_as_few_frames_as_from_the_broker(bellhop, broker, name, beyond):
    daemon = bellhop()
    side = Side(broker, name())
    payload = body_of(9 * 131064 + beyond)
    side.send(claim(put_object(daemon, payload)))
    client = amqp.connect(daemon.socket)
    client.channel().send("basic.consume", queue=side.queue)
    while client.read_frame().type != amqp.FRAME_HEADER:
        pass
    sizes = []
    while sum(sizes) < len(payload):
        sizes.append(len(client.read_frame().payload))
    assert sizes[:-1] == [131064] * (len(sizes) - 1) and sizes[-1] == len(payload) - sum(sizes[:-1])
    client.close()
