"""No message ends the daemon: where bodies are collected, there is a bound (the daemon's peak is looked at, in KiB)."""

import struct

import pytest

from support import amqp
from support.claims import CLAIM, Consumer, Marker, Side, body_of, claim
from support.publishing import begin_hops, publisher
from support.rabbitmq import TIME_FACTOR, version, wait_until

LATER = "22222222-2222-4333-8444-555555555555"
MISSING = "11111111-2222-4333-8444-555555555555"
PEAK_KIB = 100 * 1024  # of all of it, whatever is sent: with a debug build's and the sockets' share


def test_what_looks_like_a_claim_and_is_longer_than_any_key_is_relayed_as_it_came(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    body = CLAIM + b"a" * (60 << 20)
    side.send(body, body, b"behind")
    consumer = Consumer(daemon, side.queue)
    for _ in range(2):
        assert consumer.deliver(timeout=60).body == body
    assert consumer.deliver().body == b"behind"
    daemon.assert_memory_below(PEAK_KIB, "VmHWM")
    assert not side.exists(side.parked)


def test_large_messages_behind_one_that_is_parked_are_not_kept_in_memory(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    side.send(claim(MISSING), *[body_of(16 << 20, n) for n in range(8)])
    consumer = Consumer(daemon, side.queue)
    for n in range(8):
        assert consumer.deliver(timeout=60).body == body_of(16 << 20, n)
    assert side.take().body == claim(MISSING)
    daemon.assert_memory_below(PEAK_KIB, "VmHWM")


def test_large_inline_messages_behind_one_that_is_held_are_not_kept_in_memory(bellhop, broker, name):
    daemon = bellhop({"consume": {"hold_max": "2s"}})
    side = Side(broker, name())
    Marker(daemon).remove()
    side.send(claim(LATER), *[b"\xac\x01\x00" + body_of(16 << 20, n) for n in range(6)])
    consumer = Consumer(daemon, side.queue)
    for n in range(6):
        assert consumer.deliver(timeout=60).body == body_of(16 << 20, n)
    daemon.assert_memory_below(PEAK_KIB, "VmHWM")


def test_a_hop_that_is_too_large_to_be_collected_is_refused_before_its_body(bellhop, broker, name):
    daemon = bellhop({"limits": {"inflight_bytes": "8MiB"}}, store=None)
    client = amqp.connect(daemon.socket)
    channel = client.channel()
    channel.call("confirm.select")
    channel.publish("bellhop.next", "", body_of(20 << 20))
    channel.expect("basic.nack", delivery_tag=1)
    daemon.wait_log("more than limits.inflight_bytes")
    daemon.assert_memory_below(PEAK_KIB, "VmHWM")


def test_many_hops_that_are_never_completed_leave_room_for_others(bellhop, broker, name):
    daemon = bellhop({"limits": {"inflight_bytes": "8MiB"}})
    client = amqp.connect(daemon.socket)
    begin_hops(client, 300)
    daemon.wait_log("more than limits.inflight_bytes")
    other = amqp.connect(daemon.socket).channel()
    other.call("confirm.select")
    for _ in range(20):
        other.publish("", name("nowhere"), body_of(300_000))
    other.confirms(20)
    # What its client gave up is free again.
    client.abort()
    daemon.assert_memory_below(PEAK_KIB, "VmHWM")


def with_flags(flags, body):
    return struct.pack("!HHQH", 60, 0, len(body), flags)


@pytest.mark.skipif(version() >= (4, 0), reason="this broker writes each header anew, so none that cannot be decoded comes from it")
@pytest.mark.parametrize("body", [b"\xac\x01\x00inline", b"plain", claim(MISSING)])
def test_a_header_that_cannot_be_decoded_passes_whole_as_it_came(rabbit, bellhop, broker, name, body):
    daemon = bellhop()
    side = Side(broker, name())
    try:
        side.channel.publish("", side.queue, body, header=with_flags(2, body))
        side.channel.confirms(1)
    except amqp.AmqpError:
        pytest.skip("this RabbitMQ refuses such a header itself")
    side.sent = 1
    side.send(b"next")
    client = amqp.connect(daemon.socket)
    channel = client.channel()
    channel.send("basic.consume", queue=side.queue, consumer_tag="c")
    frames = []
    while len(frames) < 6:
        frame = client.read_frame()
        if frame.channel == channel.number and (frame.type != 1 or frame.payload[:4] == struct.pack("!HH", 60, 60)):
            frames.append(frame)
    assert frames[1].payload == with_flags(2, body) and frames[2].payload == body
    assert frames[5].payload == b"next"


@pytest.mark.parametrize("kind", ["plain", "inline", "claim"])
def test_a_content_header_larger_than_the_consumers_frames_is_handed_on(bellhop, broker, name, kind):
    daemon = bellhop()
    side = Side(broker, name())
    publisher = amqp.connect(daemon.socket).channel()
    publisher.call("confirm.select")
    body = {"plain": b"plain", "inline": b"\xac\x01\x00escaped", "claim": body_of(90_000)}[kind]
    publisher.publish("", side.queue, body, headers={"trace": "t" * 20_000})
    publisher.confirms(1)
    got = Consumer(daemon, side.queue, frame_max=4096).deliver()
    assert got.body == body and got.headers["trace"] == "t" * 20_000


def test_what_many_sessions_had_is_given_back_when_they_have_ended(bellhop, broker, name):
    daemon = bellhop()
    stays = publisher(daemon)
    before = daemon.memory_kib("RssAnon")
    ups = [publisher(daemon) for _ in range(200)]
    for number in range(3):
        for up in ups:
            up.channel.publish("", name(), body_of(100_000, number))
    for up in ups:
        up.channel.confirms(3, timeout=60)
        up.client.abort()
    # 44 MiB while they are there, 23 to 31 once they have ended, 2 to 15 when it is given back: what stays, and does not grow, is between
    # pieces in the allocator's arenas.
    if TIME_FACTOR == 1:
        wait_until(lambda: daemon.memory_kib("RssAnon") < before + (18 << 10), timeout=60, what="memory of sessions that have ended is given back")
    stays.channel.publish("", name(), body_of(100_000))
    stays.channel.expect("basic.ack", delivery_tag=1)
