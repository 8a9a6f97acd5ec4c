"""Hops travel on a channel of the session's own: others do not suffer from a bad one, and every client channel keeps its order and its tags."""

import json

import pytest

from support import amqp, slips


@pytest.fixture
def line(broker, name):
    return slips.Line(broker.channel(), name("line"), "a", "b")


@pytest.fixture
def daemon(bellhop, line, name):
    return bellhop({"pipelines": {**line.config(), "ghost": {"steps": ["x", "y"]}}, "slip": {"allowed_exchanges": [line.name, "", "gone.1", "gone.2"]}})


def frames(channel, body, headers, key=""):
    return b"".join(channel.publish_frames("bellhop.next", key, body, headers=headers))


def bodies(above, queue, count):
    return [above.get_wait(queue).body for _ in range(count)]


def test_hops_to_exchanges_that_are_missing_are_nacked_and_the_others_arrive(daemon, broker, line):
    channel = slips.confirming(amqp.connect(daemon.socket))
    good, bad = slips.declared(line.steps, 0), slips.itinerary(slips.stop("", "here"), slips.stop("gone.1", "k"))
    for first in (1, 8):  # again on the fresh channel
        channel.client.send_raw(b"".join(frames(channel, b"%d" % n, bad if n % 3 == 2 else good) for n in range(first, first + 7)))
        outcomes = channel.confirms(first + 6)
        assert {t for t, o in outcomes.items() if o == "nack"} == {t for t in outcomes if t % 3 == 2}
    arrived = [int(b) for b in bodies(broker.channel(), line.queue("b"), 10)]
    # One that was on its way when the channel was closed may arrive twice.
    assert sorted(set(arrived)) == [1, 3, 4, 6, 7, 9, 10, 12, 13]


def test_a_lone_bad_hop_says_why_in_the_log_and_the_next_one_works(daemon, broker, line):
    channel = slips.confirming(amqp.connect(daemon.socket))
    channel.publish("bellhop.next", "", b"x", headers=slips.itinerary(slips.stop("", "here"), slips.stop("gone.1", "k")))
    channel.expect("basic.nack", delivery_tag=1)
    daemon.wait_log(r"hop failed session=.* channel=\d+ exchange=gone.1 routing_key=k message_id=[0-9a-f-]{36} code=404 "
                    r"reason=\"NOT_FOUND - no exchange 'gone.1' in vhost '/'\"")
    channel.publish("bellhop.next", "", b"y", headers=slips.declared(line.steps, 0))
    channel.expect("basic.ack", delivery_tag=2)
    assert bodies(broker.channel(), line.queue("b"), 1) == [b"y"]


def test_a_clients_own_publishes_and_hops_share_its_tags(daemon, broker, line, name):
    above = broker.channel()
    plain = slips.short_lived(above, name("plain"))
    channel = slips.confirming(amqp.connect(daemon.socket))
    good, bad = slips.declared(line.steps, 0), slips.declared(["x", "y"], 0)
    out = b""
    for n in range(1, 61):
        if n % 4 == 0:
            out += frames(channel, b"%d" % n, bad)
        elif n % 2 == 0:
            out += frames(channel, b"%d" % n, good)
        else:
            out += b"".join(channel.publish_frames("", plain, b"%d" % n))
    channel.client.send_raw(out)
    outcomes = channel.confirms(60)
    assert {t for t, o in outcomes.items() if o == "nack"} == set(range(4, 61, 4))
    assert bodies(above, plain, 30) == [b"%d" % n for n in range(1, 61, 2)]
    assert {int(b) for b in bodies(above, line.queue("b"), 15)} <= set(range(2, 61, 4))


def test_many_channels_hop_at_once_each_in_its_order(daemon, broker, line):
    client = amqp.connect(daemon.socket)
    channels = [slips.confirming(client) for _ in range(8)]
    for channel in channels:
        assert channel.number < client.channel_max
    large = b"L" * 70000
    out = []
    for n in range(40):
        for channel in channels:
            mark = b"%d %d " % (channel.number, n)
            out.append(frames(channel, mark + large if (n + channel.number) % 13 == 0 else mark, slips.declared(line.steps, 0)))
    client.send_raw(b"".join(out))
    for channel in channels:
        assert channel.confirms(40) == {tag: "ack" for tag in range(1, 41)}
    consumer = amqp.connect(daemon.socket).channel()
    consumer.call("basic.consume", queue=line.queue("b"), consumer_tag="c", no_ack=True)
    seen = {channel.number: [] for channel in channels}
    for _ in range(320):
        number, n, rest = consumer.deliver().body.split(b" ", 2)
        assert rest in (b"", large)
        seen[int(number)].append(int(n))
    assert all(order == list(range(40)) for order in seen.values())


def test_the_itinerary_of_a_nacked_hop_was_not_moved_for_the_client(daemon, broker, line):
    above = broker.channel()
    channel = slips.confirming(amqp.connect(daemon.socket))
    headers = slips.itinerary(slips.stop(line.name, "a"), slips.stop("gone.2", "k"))
    above.publish(line.name, "a", b"in", headers=headers)
    delivery = channel.get_wait(line.queue("a"), no_ack=False)
    slips.hop(channel, delivery, b"x")
    channel.expect("basic.nack", delivery_tag=1)
    channel.send("basic.nack", delivery_tag=delivery.delivery_tag, requeue=True)
    again = channel.get_wait(line.queue("a"))
    assert json.loads(again.headers[slips.ITINERARY]) == json.loads(headers[slips.ITINERARY])
