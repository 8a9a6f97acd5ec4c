"""Frame sizes, channel numbers and body sizes at and beyond their limits."""

import pytest

from support import amqp
from support.publishing import key_of, pattern
from support.rabbitmq import SMALLEST_FRAME_MAX


@pytest.mark.parametrize("frame_max", [SMALLEST_FRAME_MAX, SMALLEST_FRAME_MAX + 904, 131072])
@pytest.mark.parametrize("size", [0, 1, 4087, 4088, 4089, 200_000])
def test_a_client_with_small_frames(same, frame_max, size):
    @same
    def program(run):
        ch = run.channel(frame_max=frame_max)
        queue = ch.declare(run.name("q"), exclusive=True)
        ch.call("confirm.select")
        ch.publish("", queue, pattern(size), headers={"h": "x" * 3000}, mandatory=True)
        ch.publish("", run.name("nobody"), pattern(size), headers={"h": "x" * 3000}, mandatory=True)
        ch.wait_for("basic.return")
        ch.confirms(2)
        got = ch.get_wait(queue)
        assert not got.body_frames or max(got.body_frames) <= frame_max - 8


@pytest.mark.parametrize("properties", [{}, {"delivery_mode": 2}, {"message_id": "m"}], ids=str)
@pytest.mark.parametrize("size", [0, 10, 200_000])
@pytest.mark.parametrize("short", [0, 1, 2, 36, 37, 38, 39, 200])
def test_a_header_frame_of_up_to_frame_max_is_taken(same, properties, size, short):
    @same
    def program(run):
        ch = run.channel(frame_max=SMALLEST_FRAME_MAX)
        ch.call("confirm.select")
        queue = ch.declare(run.name("q"), exclusive=True)
        room = SMALLEST_FRAME_MAX - 8 - len(amqp.encode_header(size, {"headers": {"h": ""}, **properties})) - short
        ch.publish("", queue, pattern(size), headers={"h": "x" * room}, **properties)
        ch.confirms(1)
        ch.get_wait(queue)


@pytest.mark.parametrize("confirm", [True, False])
@pytest.mark.parametrize("size", [10, 200_000])
def test_a_header_that_fits_only_without_what_a_route_adds_is_refused_alone(bellhop, broker, name, confirm, size):
    """The frame is full to the last byte: the broker would take it as it is. The connection and its other channels go on, and with confirms
    the channel, too."""
    daemon = bellhop({"routes": [{"name": "tagged", "headers": {"x-tenant": "acme"}}]})
    client = amqp.connect(daemon.socket, frame_max=SMALLEST_FRAME_MAX)
    ch, other = client.channel(), client.channel()
    queue = ch.declare(name(), exclusive=True)
    properties = {"headers": {"h": ""}, "delivery_mode": 2}
    room = SMALLEST_FRAME_MAX - 8 - len(amqp.encode_header(size, properties))
    properties["headers"]["h"] = "x" * room
    assert len(amqp.encode_header(size, properties)) == SMALLEST_FRAME_MAX - 8
    if confirm:
        ch.call("confirm.select")
    ch.publish("", queue, b"before")
    ch.publish("", queue, pattern(size), **properties)
    if confirm:
        ch.publish("", queue, b"after")
        assert ch.confirms(3) == {1: "ack", 2: "nack", 3: "ack"}
        assert [ch.get_wait(queue).body for _ in "12"] == [b"before", b"after"]
    else:
        ch.expect_close(311)
        ch = client.channel(ch.number)
        assert ch.get_wait(queue).body == b"before"
    assert ch.get(queue) is None
    other.declare("", exclusive=True)
    # What fits with it passes.
    other.call("confirm.select")
    other.publish("", queue, pattern(size), headers={"h": "x" * (room - 400)})
    assert other.confirms(1) == {1: "ack"}
    client.close()


def test_channel_numbers_up_to_the_limit_that_was_agreed(same):
    @same
    def program(run):
        client = run.connect(channel_max=5)
        for number in (5, 1, 3):
            client.channel(number)
        client.channel(4).close()
        client.channel(4).declare("", exclusive=True)


@pytest.mark.parametrize("number", [6, 2046, 65535])
def test_a_channel_above_the_limit_is_not_allowed(bellhop, number):
    """RabbitMQ checks no channel number before it has too many of them open; the specification (4.9.1) wants 530 at once."""
    client = amqp.connect(bellhop().socket, channel_max=5)
    client.channel(1)
    client.send(number, "channel.open")
    client.expect_close(530)
    client.expect_closed()


@pytest.mark.parametrize("size", [100, 200_000])
def test_a_body_that_is_announced_and_does_not_come_is_waited_for(same, size):
    """The rest of the connection works meanwhile; when the client goes, nothing of it is published."""
    @same
    def program(run):
        client = run.connect()
        ch, other = client.channel(), client.channel()
        queue = other.declare(run.name("q"), exclusive=True)
        frames = ch.publish_frames("", queue, pattern(size), split=[size // 3])
        client.send_raw(b"".join(frames[:3]))
        other.call("confirm.select")
        for n in range(3):
            other.publish("", queue, pattern(size, n))
        other.confirms(3)
        for _ in range(3):
            other.get(queue)
        client.send_raw(b"".join(frames[3:]))
        other.get_wait(queue)
        run.transcript.apart(other, "basic.get-empty", keep=False)


@pytest.mark.parametrize("seed", [0, 1])
def test_publishes_of_many_channels_whose_frames_alternate(same, seed):
    @same
    def program(run):
        client = run.connect(frame_max=SMALLEST_FRAME_MAX)
        channels = [client.channel() for _ in range(20)]
        streams = []
        for ch in channels:
            queue = ch.declare(run.name(f"q{ch.number}"), exclusive=True)
            ch.call("confirm.select")
            streams.append([frame for n in range(4) for frame in
                            ch.publish_frames("", queue, pattern((ch.number * 7919 + n * 40_009 + seed) % 90_000, n), type=f"{n}")])
        while any(streams):
            client.send_raw(b"".join(stream.pop(0) for stream in streams if stream))
        for ch in channels:
            ch.confirms(4)
            for _ in range(4):
                ch.get_wait(run.name(f"q{ch.number}"))


@pytest.mark.parametrize("size", [10, 100_000])
def test_channel_ids_closed_and_opened_again_at_speed_with_publishes_in_flight(same, size):
    """A whole life in one write, the next with the close-ok. Every publish arrives, in order, and every life gets its answers."""
    @same
    def program(run):
        watch = run.connect()
        queue = watch.channel().declare(run.name("q"), arguments={"x-expires": 60000})
        client = run.connect()
        for life in range(20):
            said = b""
            for number in (1, 2, 3):
                said += amqp.method_frame(number, "channel.open") + amqp.method_frame(number, "confirm.select")
                said += b"".join(client.publish_frames(number, "", queue, pattern(size, life), type=f"{number}", message_id=f"m{life}"))
                said += amqp.method_frame(number, "channel.close", reply_code=200)
            client.send_raw(said)
            for number in (1, 2, 3):
                client.wait_for("channel.close-ok", number)
        for number in (1, 2, 3):
            # A life may end before its confirm comes.
            run.transcript.lines.pop(f"client 2 channel {number}, confirms", None)
        ch = watch.channel()
        ch.call("basic.consume", queue=queue, no_ack=True, consumer_tag="c")
        seen = {}
        for _ in range(60):
            delivery = ch.deliver()
            seen.setdefault(delivery.properties["type"], []).append(delivery.properties["message_id"])
            assert delivery.body == pattern(size, int(delivery.properties["message_id"][1:]))
        assert seen == {str(number): [f"m{life}" for life in range(20)] for number in (1, 2, 3)}
        ch.call("basic.cancel", consumer_tag="c")
        run.transcript.apart(ch, "basic.deliver", keep=False)  # which channel is quicker is chance
        ch.call("queue.delete", queue=queue)


@pytest.mark.parametrize("size", [10, 200_000])
def test_a_channel_opened_again_before_its_close_was_answered_is_an_error_and_no_hang(bellhop, name, size):
    """RabbitMQ says 504, too, unless it was quicker."""
    client = amqp.connect(bellhop().socket)
    ch = client.channel()
    queue = ch.declare(name(), exclusive=True)
    said = b"".join(ch.publish_frames("", queue, pattern(size))) + amqp.method_frame(1, "channel.close") + amqp.method_frame(1, "channel.open")
    client.send_raw(said)
    client.expect_close(504)


@pytest.mark.parametrize("size", [10, 200_000])
@pytest.mark.parametrize("end", ["close", "half close", "kill"])
def test_what_was_sent_whole_is_published_however_the_client_ends(same, end, size):
    def program(run):
        watch = run.direct().channel()
        queue = watch.declare(run.name("q"), arguments={"x-expires": 60000})
        client = run.connect()
        ch = client.channel()
        whole = b"".join(b"".join(ch.publish_frames("", queue, pattern(size, n), type=f"{n}")) for n in range(10))
        if end == "close":
            client.send_raw(whole + amqp.method_frame(0, "connection.close", reply_code=200))
            client.wait_for("connection.close-ok", 0)
            client.abort()
        else:
            client.send_raw(whole + b"".join(ch.publish_frames("", queue, pattern(size, 99)))[:-1])
            if end == "half close":
                client.sock.shutdown(1)
            else:
                client.abort()
        # Read at the broker: with a body above the threshold that is a claim, whose object has it.
        for n in range(10):
            got = watch.get_wait(queue)
            body = run.daemon.object(key_of(got)) if run.offloads(size) else got.body
            assert got.properties["type"] == f"{n}" and body == pattern(size, n)
        run.note("all ten are there")
        watch.call("queue.delete", queue=queue)
        client.is_over = True
        client.abort()

    if end == "close":
        same(program)
        return
    # RabbitMQ itself may drop what it has not looked at when the socket ends (seen with 3.10): there is nothing to compare.
    for variant in same.variants:
        same.run(program, variant)
