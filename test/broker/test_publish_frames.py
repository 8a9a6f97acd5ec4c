"""Bodies cut into frames in any way, of any size, on many channels at once."""

import random

import pytest

from support import amqp
from support.publishing import CLAIM, INLINE, KIB, MIB, declare, key_of, pattern, publisher
from support.rabbitmq import SMALLEST_FRAME_MAX

ODD_SPLITS = [[1], [2], [1, 1], [1, 2], [2, 1], [3], [4], [0, 1, 0, 1, 0], [1, 0, 1, 0, 1], [0]]


@pytest.mark.parametrize("split", ODD_SPLITS, ids=str)
@pytest.mark.parametrize("body", [b"abc", b"abcdefg", INLINE + b"xyz", CLAIM, pattern(70 * KIB), INLINE + pattern(70 * KIB)],
                         ids=lambda b: f"{b[:6]!r}+{len(b)}")
def test_the_first_bytes_may_come_in_frames_of_their_own(bellhop, broker, name, body, split):
    queue = name()
    direct = declare(broker, queue)
    daemon = bellhop()
    up = publisher(daemon)
    up.channel.publish("", queue, body, split=split)
    up.channel.expect("basic.ack")
    held = direct.get_wait(queue)
    if len(body) > 64 * KIB:
        assert daemon.object(key_of(held)) == body
    else:
        assert held.body == (INLINE + body if body.startswith(b"\xac") else body)


def test_empty_frames_before_the_first_byte_cost_neither_memory_nor_time(bellhop, broker, name):
    """A body is looked at when three bytes of it are there: until then nothing may pile up, nor be gone through again and again."""
    queue = name()
    direct = declare(broker, queue)
    up = publisher(bellhop())
    frames = up.channel.publish_frames("", queue, b"abcdef", split=[1, 5])
    up.client.send_raw(b"".join(frames[:3]))
    for _ in range(20):
        up.client.send_raw(amqp.frame(3, up.channel.number, b"") * 20_000)
    up.client.send_raw(frames[3])
    up.channel.expect("basic.ack")
    assert direct.get_wait(queue).body == b"abcdef"


@pytest.mark.parametrize("size, config", [(1000, {}), (70 * KIB, {}), (70 * KIB, {"claim_check": {"enabled": False}})], ids=str)
def test_every_byte_may_come_in_a_frame_of_its_own_and_in_a_write_of_its_own(bellhop, broker, name, size, config):
    queue = name()
    direct = declare(broker, queue)
    daemon = bellhop(config)
    up = publisher(daemon)
    body = pattern(size)
    frames = up.channel.publish_frames("", queue, body, split=[1] * size)
    for frame in frames[:100]:
        for byte in frame:
            up.client.send_raw(bytes([byte]))
    up.client.send_raw(b"".join(frames[100:]))
    up.channel.expect("basic.ack")
    held = direct.get_wait(queue)
    assert held.body == body or daemon.object(key_of(held)) == body


@pytest.mark.parametrize("frame_max", [SMALLEST_FRAME_MAX, 8192, 131072])
@pytest.mark.parametrize("enabled", [True, False])
def test_bodies_around_frame_max_arrive_whole(bellhop, broker, name, frame_max, enabled):
    queue = name()
    direct = declare(broker, queue)
    daemon = bellhop({"claim_check": {"enabled": enabled}})
    up = publisher(daemon, frame_max=frame_max)
    sizes = [n * frame_max + d for n in (1, 2) for d in (-17, -16, -12, -11, -10, -9, -8, -7, -5, -1, 0, 1, 8)]
    for size in sizes:
        up.channel.publish("", queue, pattern(size, size))
        up.channel.publish("", queue, INLINE + pattern(size - 3, size))
    assert set(up.channel.confirms(2 * len(sizes)).values()) == {"ack"}
    for size in sizes:
        for body, sent in [(pattern(size, size),) * 2, (INLINE + pattern(size - 3, size), INLINE * 2 + pattern(size - 3, size))]:
            held = direct.get_wait(queue)
            if enabled and size >= 64 * KIB:
                assert daemon.object(key_of(held)) == body
            else:
                assert held.body == sent


@pytest.mark.parametrize("enabled", [True, False])
def test_body_frames_whose_payload_has_frame_max_bytes_are_taken_as_by_the_broker(bellhop, broker, name, rabbit, enabled):
    # RabbitMQ allows them these eight bytes more, and rabbitmq-client for Node uses them.
    frame_max = 8192
    queue = name()
    direct = declare(broker, queue)
    daemon = bellhop({"claim_check": {"enabled": enabled}})
    bodies = [pattern(frame_max), pattern(3 * frame_max + 5), INLINE + pattern(frame_max - 3), INLINE + pattern(2 * frame_max), pattern(20 * frame_max)]
    up = publisher(daemon, frame_max=frame_max)
    for body in bodies:
        up.channel.publish("", queue, body, split=[frame_max] * (len(body) // frame_max))
    assert set(up.channel.confirms(len(bodies)).values()) == {"ack"}
    for body in bodies:
        held = direct.get_wait(queue)
        if enabled and len(body) >= 64 * KIB:
            assert daemon.object(key_of(held)) == body
        else:
            assert held.body == (INLINE + body if body.startswith(INLINE) else body)

    for address in (rabbit.address, daemon.socket):
        client = amqp.connect(address, frame_max=frame_max)
        channel = client.channel()
        channel.publish("", queue, pattern(frame_max + 1), split=[frame_max + 1])
        client.expect_close(501)


def test_a_body_of_100_mib_is_stored_with_little_memory(bellhop, broker, name):
    queue = name()
    direct = declare(broker, queue)
    daemon = bellhop()
    up = publisher(daemon)
    body = pattern(100 * MIB)
    up.channel.publish("", queue, body)
    up.channel.wait_for("basic.ack", timeout=120)
    assert daemon.object(key_of(direct.get_wait(queue))) == body
    daemon.assert_memory_below(100 * KIB, "VmHWM")


@pytest.mark.parametrize("transfers", [1, 3, 16])
def test_uploads_of_forty_channels_interleaved_in_tiny_frames_all_finish(bellhop, broker, name, transfers):
    queue = name()
    direct = declare(broker, queue)
    daemon = bellhop({"limits": {"transfers_per_session": transfers}, "claim_check": {"threshold": "2KiB"}})
    client = amqp.connect(daemon.socket)
    bodies, streams = {}, []
    for i in range(40):
        channel = client.channel()
        channel.call("confirm.select")
        body = pattern(3000 + i, i)
        bodies[f"m{i}"] = body
        streams.append(channel.publish_frames("", queue, body, split=[50] * 70, message_id=f"m{i}"))
    while any(streams):
        client.send_raw(b"".join(stream.pop(0) for stream in streams if stream))
    for number in range(1, 41):
        client.wait_for("basic.ack", number)
    for _ in range(40):
        held = direct.get_wait(queue)
        assert daemon.object(key_of(held)) == bodies.pop(held.properties["message_id"])


@pytest.mark.parametrize("seed", [1, 2])
def test_small_and_large_publishes_of_many_channels_interleaved_at_random_keep_their_channels_order(bellhop, broker, name, seed):
    queue = name()
    direct = declare(broker, queue)
    daemon = bellhop({"limits": {"transfers_per_session": 2, "inflight_bytes": "1MiB"}})
    client = amqp.connect(daemon.socket)
    chance = random.Random(seed)
    channels = [client.channel() for _ in range(8)]
    streams, expected = [], {}
    for channel in channels:
        channel.call("confirm.select")
        stream = []
        for i in range(12):
            body = pattern(chance.choice([0, 1, 2, 3, 100, 5000, 65535, 65536, 200000]), i)
            if chance.random() < 0.3:
                body = INLINE + body
            expected.setdefault(channel.number, []).append(body)
            stream += channel.publish_frames("", queue, body, split=[chance.choice([1, 2, 3, 1000])], type=str(channel.number))
        streams.append(stream)
    while any(streams):
        stream = chance.choice([s for s in streams if s])
        client.send_raw(b"".join(stream.pop(0) for _ in range(min(len(stream), chance.randint(1, 4)))))
    for channel in channels:
        assert set(channel.confirms(12, timeout=60).values()) == {"ack"}
    for _ in range(96):
        held = direct.get_wait(queue)
        body = expected[int(held.properties["type"])].pop(0)
        if len(body) >= 64 * KIB:
            assert daemon.object(key_of(held)) == body
        else:
            assert held.body == (INLINE + body if body.startswith(INLINE) else body)


@pytest.mark.parametrize("config", [{}, {"stores": {"claims": {"type": "memory"}}}], ids=["filesystem", "memory"])
def test_a_body_much_larger_than_inflight_bytes_goes_through(bellhop, broker, name, config):
    queue = name()
    direct = declare(broker, queue)
    daemon = bellhop({"limits": {"inflight_bytes": "1MiB"}, **config})
    up = publisher(daemon)
    for i in range(3):
        up.channel.publish("", queue, pattern(20 * MIB, i))
    assert set(up.channel.confirms(3, timeout=60).values()) == {"ack"}
    for i in range(3):
        held = direct.get_wait(queue)
        if not config:
            assert daemon.object(key_of(held)) == pattern(20 * MIB, i)


def test_half_sent_hops_of_many_channels_do_not_use_up_the_memory_they_need_to_finish(bellhop, broker, name):
    """A hop below the threshold is collected; only the client can complete it, so it must go on being read."""
    queue, pipeline = name(), name("p")
    direct = declare(broker, queue)
    direct.call("exchange.declare", exchange=pipeline, type="direct", auto_delete=True)
    direct.call("queue.bind", queue=queue, exchange=pipeline, routing_key="b")
    daemon = bellhop({"limits": {"inflight_bytes": "3MiB"}, "pipelines": {pipeline: {"steps": ["a", "b"]}}})
    client = amqp.connect(daemon.socket)
    slip = {"x-acemq-route": "a,b", "x-acemq-route-position": 0, "x-acemq-route-id": "run"}
    streams = []
    for i in range(50):
        channel = client.channel()
        channel.call("confirm.select")
        streams.append(channel.publish_frames("bellhop.next", "", pattern(60 * KIB, i), split=[30 * KIB], headers=slip))
    for stream in streams:
        client.send_raw(b"".join(stream[:3]))
    for stream in streams:
        client.send_raw(b"".join(stream[3:]))
    for number in range(1, 51):
        client.wait_for("basic.ack", number)
    assert sorted(direct.get_wait(queue).body for _ in range(50)) == sorted(pattern(60 * KIB, i) for i in range(50))


def test_a_large_hop_goes_through_where_there_is_no_store(bellhop, broker, name):
    queue, pipeline = name(), name("p")
    direct = declare(broker, queue)
    direct.call("exchange.declare", exchange=pipeline, type="direct", auto_delete=True)
    direct.call("queue.bind", queue=queue, exchange=pipeline, routing_key="b")
    daemon = bellhop({"limits": {"inflight_bytes": "6MiB"}, "pipelines": {pipeline: {"steps": ["a", "b"]}}}, store=None)
    up = publisher(daemon)
    up.channel.publish("bellhop.next", "", pattern(5 * MIB),
                       headers={"x-acemq-route": "a,b", "x-acemq-route-position": 0, "x-acemq-route-id": "run"})
    up.channel.expect("basic.ack")
    assert direct.get_wait(queue).body == pattern(5 * MIB)
