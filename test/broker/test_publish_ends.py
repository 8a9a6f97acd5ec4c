"""Publishes and the ends of things: a broker's 404, ids used again at once, clients and bellhops that die."""

import signal
import os

import pytest

from support.publishing import KIB, MIB, count, declare, key_of, pattern, publisher
from support.rabbitmq import wait_until

NO_CHECK = {"claim_check": {"enabled": False}}


@pytest.mark.parametrize("size", [10, 70 * KIB])
def test_a_missing_exchange_is_the_brokers_404_and_the_id_is_free_at_once(publishing, name, size):
    queue, direct, _, up = publishing()
    for round_ in range(5):
        up.channel.publish(name("missing"), "k", pattern(size))
        for i in range(10):
            up.channel.publish("", queue, pattern(70 * KIB if i % 2 else 10))
        closed = up.channel.expect_close(404)
        assert closed.reply_text == f"NOT_FOUND - no exchange '{name('missing')}' in vhost '/'"
        channel = up.client.channel(1)
        channel.call("confirm.select")
        channel.publish("", queue, b"round %d" % round_)
        channel.wait_for("basic.ack", delivery_tag=1)
    assert count(direct, queue) >= 5


@pytest.mark.parametrize("config", [{}, NO_CHECK], ids=["offloaded", "relayed"])
def test_a_404_in_the_middle_of_the_next_publishs_body(publishing, name, config):
    queue, direct, _, up = publishing(config)
    frames = up.channel.publish_frames("", queue, pattern(1 * MIB))
    up.channel.publish(name("missing"), "k", b"x")
    up.client.send_raw(b"".join(frames[:4]))
    up.channel.wait_for("channel.close")
    up.client.send_raw(b"".join(frames[4:]))
    up.channel.send("channel.close-ok")
    channel = up.client.channel(1)
    channel.call("confirm.select")
    channel.publish("", queue, b"after")
    channel.expect("basic.ack", delivery_tag=1)
    assert direct.get_wait(queue).body == b"after"


def test_a_close_that_crosses_the_brokers_close_leaves_the_id_usable(bellhop, name):
    up = publisher(bellhop(), confirm=False)
    for _ in range(5):
        up.channel.publish(name("missing"), "k", b"x")
        up.channel.send("channel.close", reply_code=200)
        names = set()
        while "channel.close-ok" not in names:
            event = up.client.next_event()
            names.add(event.name)
            if event.name == "channel.close":
                up.channel.send("channel.close-ok")
        up.client.channel(1).call("queue.declare", exclusive=True)


def test_a_close_that_waits_for_an_upload_when_the_brokers_close_comes_is_answered(held_up, name, gate):
    queue, _, _, up = held_up(confirm=False)
    gate.close()
    up.channel.publish(name("missing"), "k", b"x")
    up.channel.publish("", queue, pattern(70 * KIB))
    up.channel.send("channel.close", reply_code=200)
    up.channel.wait_for(("channel.close",))
    up.channel.send("channel.close-ok")
    up.channel.wait_for(("channel.close-ok",))
    gate.open()
    up.client.channel(1).call("queue.declare", exclusive=True)


@pytest.mark.parametrize("who", ["client", "bellhop"])
@pytest.mark.parametrize("config", [{}, NO_CHECK], ids=["offloaded", "relayed"])
def test_a_death_in_the_middle_of_a_body_publishes_nothing_and_leaves_no_object(publishing, who, config):
    queue, direct, daemon, up = publishing(config)
    frames = up.channel.publish_frames("", queue, pattern(4 * MIB))
    up.client.send_raw(b"".join(frames[:-1]))
    beside = up.client.channel()
    beside.call("queue.declare", exclusive=True)
    if who == "client":
        up.client.reset()
        daemon.wait_log("session closed session=1")
    else:
        daemon.kill()
        daemon.start()
    assert daemon.objects() == []
    assert count(direct, queue) == 0
    assert direct.get(queue) is None
    assert publisher(daemon).channel.get(queue) is None


def test_a_large_result_cut_off_by_death_leaves_its_input_to_be_redelivered(bellhop, broker, name):
    work, results = name("work"), name("results")
    direct = declare(broker, work)
    direct.declare(results)
    direct.publish("", work, b"input")
    daemon = bellhop()
    for round_ in range(2):
        up = publisher(daemon)
        up.channel.call("basic.consume", queue=work)
        delivered = up.channel.deliver()
        assert delivered.body == b"input" and delivered.redelivered == (round_ == 1)
        frames = up.channel.publish_frames("", results, pattern(4 * MIB))
        up.client.send_raw(b"".join(frames[:-1]))
        if round_ == 0:
            daemon.kill()
            daemon.start()
        else:
            up.client.reset()
    again = direct.get_wait(work)
    assert again.body == b"input" and again.redelivered
    assert count(direct, results) == 0
    wait_until(lambda: daemon.objects() == [], what="an empty store")


def test_complete_publishes_of_a_client_that_dies_at_once_are_published(held_up, gate):
    queue, direct, daemon, up = held_up()
    gate.close()
    incomplete = up.channel.publish_frames("", queue, pattern(80 * KIB))[:-1]
    up.client.send_raw(b"".join([*up.channel.publish_frames("", queue, pattern(70 * KIB)),
                                 *up.channel.publish_frames("", queue, b"small"),
                                 *up.channel.publish_frames("", queue, pattern(70 * KIB, 1)), *incomplete]))
    up.client.abort()
    wait_until(lambda: not daemon.objects(), what="uploads still held")
    gate.open()
    assert daemon.object(key_of(direct.get_wait(queue))) == pattern(70 * KIB)
    assert direct.get_wait(queue).body == b"small"
    assert daemon.object(key_of(direct.get_wait(queue))) == pattern(70 * KIB, 1)
    daemon.wait_log("session closed session=1")
    assert count(direct, queue) == 0
    assert len(daemon.objects()) == 2 and daemon.debris() == []


@pytest.mark.parametrize("confirm", [True, False])
def test_a_flood_of_small_publishes_of_a_client_that_dies_at_once_is_published(bellhop, broker, name, confirm):
    """With confirms that nobody reads the socket is reset, while much of the flood is still in the kernel."""
    queue = name()
    direct = declare(broker, queue)
    daemon = bellhop()
    for round_ in range(1, 6):
        up = publisher(daemon, confirm=confirm)
        up.client.send_raw(b"".join(up.channel.publish_frames("", queue, b"small")) * 4000)
        up.client.abort()
        wait_until(lambda: count(direct, queue) == 4000 * round_, what="all publishes in the queue")


def test_a_dead_clients_uploads_are_given_up_after_the_linger(held_up, gate):
    queue, direct, daemon, up = held_up()
    gate.close()
    up.channel.publish("", queue, pattern(70 * KIB))
    up.client.abort()
    daemon.wait_log("session closed session=1", timeout=20)
    gate.open()
    daemon.stop(check=True)
    assert count(direct, queue) == 0


def test_sigterm_lets_an_upload_finish_and_be_confirmed(held_up, gate):
    queue, direct, daemon, up = held_up()
    gate.close()
    up.channel.publish("", queue, pattern(70 * KIB))
    up.client.channel().call("queue.declare", exclusive=True)
    os.kill(daemon.pid, signal.SIGTERM)
    up.channel.expect_nothing(0.2)
    gate.open()
    up.channel.expect("basic.ack", delivery_tag=1)
    up.client.expect_close(320)
    assert daemon.wait() == 0
    assert count(direct, queue) == 1
