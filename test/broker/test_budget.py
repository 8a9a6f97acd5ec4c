"""limits.inflight_bytes is for all sessions together: bodies larger than it go through, and nobody waits for somebody else's."""

import random
import time

import pytest

from support import amqp
from support.claims import Consumer, Side, body_of
from support.publishing import publisher
from support.rabbitmq import TIME_FACTOR
from support.scripted_broker import background

KIB, MIB = 1 << 10, 1 << 20
SMALL_BUDGET = {"limits": {"inflight_bytes": "1MiB"}}


def upload(daemon, queue, bodies):
    up = publisher(daemon)
    for body in bodies:
        up.channel.publish("", queue, body)
    outcomes = set(up.channel.confirms(len(bodies), timeout=60).values())
    up.client.close()
    return outcomes


class Trickle:
    """A session that publishes small messages, each after the last one's confirm. `gap(action)`: the longest of its waits during the action, in s."""

    def __init__(self, daemon, queue):
        self.up, self.queue, self.sent = publisher(daemon), queue, 0

    def gap(self, action):
        running, longest, rounds = background(action), 0, 0
        while not running.done() or rounds < 50:
            began = time.monotonic()
            self.sent += 1
            self.up.channel.publish("", self.queue, b"small")
            self.up.channel.expect("basic.ack", delivery_tag=self.sent)
            longest, rounds = max(longest, time.monotonic() - began), rounds + 1
        running.result()
        return longest, rounds


@pytest.mark.parametrize("store", ["filesystem", "memory"])
def test_small_messages_flow_while_other_sessions_upload_far_more_than_the_budget(bellhop, broker, name, store):
    daemon = bellhop(SMALL_BUDGET if store == "filesystem" else {**SMALL_BUDGET, "stores": {"claims": {"type": "memory"}}})
    large, small = Side(broker, name("large")), Side(broker, name("small"))
    bodies = [[body_of(10 * MIB + n, 10 * session + n) for n in range(3)] for session in range(4)]
    trickle = Trickle(daemon, small.queue)
    idle, _ = trickle.gap(lambda: None)

    def load():
        uploads = [background(lambda each=each: upload(daemon, large.queue, each)) for each in bodies]
        assert [each.result() for each in uploads] == [{"ack"}] * 4

    loaded, rounds = trickle.gap(load)
    print(f"{store}: the longest wait for a small message's confirm: {1000 * idle:.0f} ms alone, {1000 * loaded:.0f} ms beside 120 MiB ({rounds} confirms)")
    assert loaded < 2 * TIME_FACTOR
    if store == "filesystem":
        daemon.assert_memory_below(32 * 1024, "VmHWM")
    by_start = {body[:16]: body for each in bodies for body in each}
    consumer = Consumer(daemon, large.queue)
    for _ in range(12):
        got = consumer.deliver(timeout=30).body
        assert got == by_start.pop(got[:16])


def test_half_sent_bodies_of_many_sessions_and_channels_leave_room_for_everybody(bellhop, broker, name):
    """All begin, none ends, and together they are many times the budget: then each is completed, in any order."""
    daemon = bellhop({"limits": {"inflight_bytes": "1MiB", "transfers_per_session": 4}})
    side = Side(broker, name())
    clients = [amqp.connect(daemon.socket) for _ in range(4)]
    rests, bodies = [], {}
    for client in clients:
        for number in range(25):
            channel = client.channel()
            channel.call("confirm.select")
            size = 50 * KIB if number % 2 else 150 * KIB  # relayed, offloaded
            body = body_of(size, len(bodies))
            bodies[str(len(bodies))] = body
            frames = channel.publish_frames("", side.queue, body, split=[size // 2], message_id=str(len(bodies) - 1))
            client.send_raw(b"".join(frames[:3]))
            rests.append((client, channel, b"".join(frames[3:])))
    assert upload(daemon, side.queue, [b"somebody else", body_of(3 * MIB)]) == {"ack"}
    random.Random(1).shuffle(rests)
    for client, _, rest in rests:
        client.send_raw(rest)
    for client, channel, _ in rests:
        assert channel.confirms(1, timeout=30) == {1: "ack"}
    consumer = Consumer(daemon, side.queue)
    for delivery in [consumer.deliver() for _ in range(len(bodies) + 2)]:
        if (number := delivery.properties["message_id"]) in bodies:
            assert delivery.body == bodies.pop(number)
    assert bodies == {}


def test_a_slow_upload_delays_its_own_channel_alone(bellhop, broker, name, gate):
    daemon = bellhop(SMALL_BUDGET, env=gate.env)
    queues = [Side(broker, name(word)) for word in ("slow", "fast")]
    up = publisher(daemon)
    fast = up.client.channel()
    fast.call("confirm.select")
    gate.close(4 * MIB)  # the disk takes its time over what is this large
    up.channel.publish("", queues[0].queue, body_of(5 * MIB))
    up.channel.publish("", queues[0].queue, body_of(1 * MIB))
    up.channel.publish("", queues[0].queue, b"behind")
    for number in range(1, 41):
        fast.publish("", queues[1].queue, b"small" if number % 4 else body_of(1 * MIB, number))
        fast.expect("basic.ack", delivery_tag=number)
    assert upload(daemon, queues[1].queue, [body_of(2 * MIB)] * 3) == {"ack"}  # another session
    up.channel.expect_nothing(0.1)
    assert queues[0].count() == 0
    gate.open()
    assert up.channel.confirms(3) == {1: "ack", 2: "ack", 3: "ack"}
    assert Consumer(daemon, queues[0].queue).bodies(3) == [body_of(5 * MIB), body_of(1 * MIB), b"behind"]


def test_a_slow_download_delays_its_own_channel_alone(bellhop, broker, name, gate):
    daemon = bellhop(SMALL_BUDGET, env=gate.env)
    slow, fast = Side(broker, name("slow")), Side(broker, name("fast"))
    assert upload(daemon, slow.queue, [body_of(5 * MIB), body_of(1 * MIB), b"behind"]) == {"ack"}
    assert upload(daemon, fast.queue, [body_of(1 * MIB, n) if n % 4 == 0 else b"%d" % n for n in range(40)]) == {"ack"}
    gate.close(4 * MIB, call="pread")
    waits = Consumer(daemon, slow.queue)
    goes_on = Consumer(daemon, fast.queue, client=waits.client, prefetch=1)
    for n in range(40):
        delivery = goes_on.deliver()
        assert delivery.body == (body_of(1 * MIB, n) if n % 4 == 0 else b"%d" % n)
        goes_on.ack(delivery.delivery_tag)
    waits.channel.expect_nothing(0.1)
    gate.open()
    assert waits.bodies(3) == [body_of(5 * MIB), body_of(1 * MIB), b"behind"]
