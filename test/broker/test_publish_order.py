"""Order: what a client sends on a channel after a large publish waits until that publish is written; other channels go on."""

import pytest

from support import amqp
from support.publishing import KIB, MIB, count, declare, key_of, pattern, publisher
from support.rabbitmq import wait_until


def test_small_publishes_wait_behind_a_slow_upload_of_their_channel_and_of_no_other(held_up, name, gate):
    queue, direct, _, up = held_up()
    other = name("other")
    direct.declare(other)
    beside = up.client.channel()
    beside.call("confirm.select")
    gate.close()
    up.channel.publish("", queue, pattern(1 * MIB))
    for i in range(5):
        up.channel.publish("", queue, b"small %d" % i)
    beside.publish("", other, b"beside")
    beside.expect("basic.ack")
    beside.call("queue.declare", exclusive=True)
    assert count(direct, queue) == 0
    up.channel.expect_nothing(0.1)
    gate.open()
    assert up.channel.confirms(6) == {tag: "ack" for tag in range(1, 7)}
    key_of(direct.get_wait(queue))
    assert [direct.get_wait(queue).body for _ in range(5)] == [b"small %d" % i for i in range(5)]


@pytest.mark.parametrize("method, arguments", [
    ("queue.declare", {"queue": "{q}", "passive": True}), ("basic.get", {"queue": "{q}"}), ("basic.qos", {"prefetch_count": 1}),
    ("exchange.declare", {"exchange": "amq.direct", "type": "direct", "passive": True}), ("queue.purge", {"queue": "{q}"}),
    ("basic.consume", {"queue": "{q}"}), ("channel.close", {"reply_code": 200}), ("channel.flow", {"active": True}),
], ids=lambda value: value if isinstance(value, str) else "")
def test_every_method_behind_a_slow_upload_waits_for_it(held_up, gate, method, arguments):
    queue, direct, _, up = held_up(confirm=False)
    gate.close()
    up.channel.publish("", queue, pattern(100 * KIB))
    up.channel.send(method, **{key: value.format(q=queue) if isinstance(value, str) else value for key, value in arguments.items()})
    up.channel.expect_nothing(0.15)
    gate.open()
    answer = up.channel.wait_for((method + "-ok",))
    if method == "queue.purge":
        assert answer.message_count == 1
    elif method == "basic.get":
        assert answer.body == pattern(100 * KIB)
    elif method == "basic.consume":
        assert up.channel.deliver().body == pattern(100 * KIB)
    else:
        key_of(direct.get_wait(queue))


def test_an_ack_never_overtakes_the_result_it_stands_for(bellhop, broker, name, gate):
    work, results = name("work"), name("results")
    direct = declare(broker, work)
    direct.declare(results)
    direct.publish("", work, b"input")
    daemon = bellhop(env=gate.env)
    up = publisher(daemon, confirm=False)
    up.channel.call("basic.consume", queue=work)
    tag = up.channel.deliver().delivery_tag
    gate.close()
    up.channel.publish("", results, pattern(100 * KIB))
    up.channel.ack(tag)
    up.client.channel().call("queue.declare", exclusive=True)
    assert direct.call("queue.declare", queue=results, passive=True).message_count == 0

    daemon.kill()
    again = direct.get_wait(work, no_ack=False)
    assert again.body == b"input" and again.redelivered
    assert count(direct, results) == 0
    gate.open()
    assert daemon.objects() == []


def test_uploads_of_one_channel_run_in_parallel_and_are_released_in_order(held_up, gate):
    queue, direct, daemon, up = held_up()
    gate.close(from_bytes=1 * MIB)
    up.channel.publish("", queue, pattern(1 * MIB))
    for i in range(8):
        up.channel.publish("", queue, pattern(70 * KIB, i))
    wait_until(lambda: len(daemon.objects()) == 8, what="the smaller uploads, finished before the large one")
    assert count(direct, queue) == 0
    gate.open()
    up.channel.confirms(9)
    assert daemon.object(key_of(direct.get_wait(queue))) == pattern(1 * MIB)
    for i in range(8):
        assert daemon.object(key_of(direct.get_wait(queue))) == pattern(70 * KIB, i)


@pytest.mark.parametrize("transfers", [1, 16])
def test_many_large_and_small_publishes_of_one_channel_arrive_in_order(publishing, transfers):
    queue, direct, daemon, up = publishing({"limits": {"transfers_per_session": transfers}})
    bodies = [pattern(90 * KIB if i % 3 else 10, i) for i in range(60)]
    for body in bodies:
        up.channel.publish("", queue, body)
    assert set(up.channel.confirms(60).values()) == {"ack"}
    for body in bodies:
        held = direct.get_wait(queue)
        assert held.body == body or daemon.object(key_of(held)) == body


def test_connection_close_waits_for_the_uploads_of_all_channels(bellhop, broker, name, gate):
    queue = name()
    direct = declare(broker, queue)
    daemon = bellhop(env=gate.env)
    client = amqp.connect(daemon.socket)
    channels = [client.channel() for _ in range(3)]
    gate.close()
    for channel in channels:
        channel.publish("", queue, pattern(300 * KIB))
        channel.publish("", queue, b"small")
    client.send(0, "connection.close", reply_code=200)
    client.expect_nothing(0.15)
    gate.open()
    client.expect("connection.close-ok")
    wait_until(lambda: count(direct, queue) == 6, what="all six messages in the queue")


def test_channel_close_waits_for_the_channels_uploads(held_up, gate):
    queue, direct, _, up = held_up()
    gate.close()
    up.channel.publish("", queue, pattern(300 * KIB))
    up.channel.send("channel.close", reply_code=200)
    up.channel.expect_nothing(0.15)
    gate.open()
    up.channel.wait_for("channel.close-ok")
    key_of(direct.get_wait(queue))
    up.client.channel(1).call("queue.declare", exclusive=True)


def test_connection_close_in_the_middle_of_a_body_is_answered_and_publishes_nothing_of_it(bellhop, broker, name):
    queue = name()
    direct = declare(broker, queue)
    daemon = bellhop()
    client = amqp.connect(daemon.socket)
    relayed, stored = client.channel(), client.channel()
    client.send_raw(b"".join(relayed.publish_frames("", queue, pattern(1000), split=[500])[:3]))
    client.send_raw(b"".join(stored.publish_frames("", queue, pattern(100 * KIB), split=[500])[:3]))
    client.close()
    assert count(direct, queue) == 0
    wait_until(lambda: daemon.objects() == daemon.debris() == [], what="an empty store")
