"""A client that dies: what it had said completely is done, what it had not leaves nothing behind."""

import pytest

from support import amqp
from support.rabbitmq import wait_until

KILLS = ["abort", "reset"]


@pytest.fixture
def gone(bellhop):
    """gone(daemon): waits until no session of the daemon is left."""
    def wait(daemon, sessions=1):
        wait_until(lambda: daemon.log.count("session closed session=") >= sessions, what=f"the end of {sessions} sessions")
    return wait


@pytest.mark.parametrize("kill", KILLS)
@pytest.mark.parametrize("stage", ["nothing", "header", "start", "start-ok", "tune", "tune-ok", "open"])
def test_in_the_handshake(bellhop, gone, stage, kill):
    daemon = bellhop()
    before = daemon.descriptors(), daemon.threads()
    client = amqp.Client(daemon.socket)
    steps = {"header": client.send_header, "start": client.start, "start-ok": client.start_ok, "tune": client.tune,
             "tune-ok": client.tune_ok, "open": lambda: client.send(0, "connection.open", virtual_host="/")}
    for step, act in steps.items():
        if stage == "nothing":
            break
        act()
        if step == stage:
            break
    getattr(client, kill)()
    gone(daemon)
    # What the start still had open, or a store's thread that was idle then, may have ended meanwhile.
    wait_until(lambda: daemon.descriptors() <= before[0] and daemon.threads() <= before[1], what="descriptors and threads given back")
    amqp.connect(daemon.socket).close()


@pytest.mark.parametrize("kill", KILLS)
@pytest.mark.parametrize("size", [50000, 300000])
@pytest.mark.parametrize("frames", [1, 2, 3])
def test_in_the_middle_of_a_publish(session, broker, gone, frames, size, kill):
    daemon, client, channel, queue = session()
    parts = channel.publish_frames("", queue, b"x" * size, split=[10000])
    client.send_raw(b"".join(parts[:frames]))
    client.channel()  # its answer shows that bellhop has read so far
    getattr(client, kill)()
    gone(daemon)
    assert broker.channel().call("queue.delete", queue=queue).message_count == 0
    assert daemon.objects() == []
    wait_until(lambda: daemon.debris() == [], what="no debris")


@pytest.mark.parametrize("size", [10, 300000])
def test_right_after_whole_publishes(session, broker, gone, size):
    """Fire and forget: 20 messages and the end of the socket in one go. Against the broker itself they arrive too."""
    daemon, client, channel, queue = session()
    client.send_raw(b"".join(b"".join(channel.publish_frames("", queue, b"%02d" % n + b"x" * size)) for n in range(20)))
    client.abort()
    gone(daemon)
    direct = broker.channel()
    wait_until(lambda: direct.call("queue.declare", queue=queue, passive=True).message_count == 20, what="20 messages")
    reader = amqp.connect(daemon.socket).channel()
    assert [reader.get_wait(queue).body[:2] for _ in range(20)] == [b"%02d" % n for n in range(20)]
    direct.call("queue.delete", queue=queue)


@pytest.mark.parametrize("kill", KILLS)
@pytest.mark.parametrize("size", [100, 100000, 5000000])
def test_with_unacknowledged_deliveries(session, broker, gone, size, kill):
    daemon, client, channel, queue = session()
    channel.call("confirm.select")
    for _ in range(3):
        channel.publish("", queue, b"y" * size)
    channel.confirms(3)
    channel.call("basic.consume", queue=queue)
    channel.client.read_frame()  # the first of the deliveries' frames, and no more
    getattr(client, kill)()
    gone(daemon)
    direct = broker.channel()
    wait_until(lambda: direct.call("queue.declare", queue=queue, passive=True).message_count == 3, what="all back in the queue")
    direct.call("queue.delete", queue=queue)


def test_in_a_transaction(session, broker, gone):
    daemon, client, channel, queue = session()
    channel.call("tx.select")
    channel.publish("", queue, b"z" * 100000)
    client.channel()
    client.abort()
    gone(daemon)
    assert broker.channel().call("queue.delete", queue=queue).message_count == 0
    wait_until(lambda: daemon.objects() == [], what="the object of the unfinished transaction removed")


def test_that_takes_nothing_more_does_not_fill_the_memory(bellhop, broker, name):
    """A consumer stops reading: the deliveries wait in the broker, and other sessions do not notice."""
    daemon = bellhop()
    queue = name()
    direct = broker.channel()
    direct.declare(queue)
    direct.call("confirm.select")
    for _ in range(400):
        direct.publish("", queue, b"w" * 60000)
    direct.confirms(400)
    stuck = amqp.connect(daemon.socket)
    stuck.send(1, "channel.open")
    stuck.send(1, "basic.consume", queue=queue)
    before = daemon.memory_kib()
    other = amqp.connect(daemon.socket).channel()
    own = other.declare(name("own"), exclusive=True)
    for _ in range(50):
        other.publish("", own, b"quick")
        assert other.get_wait(own).body == b"quick"
    daemon.assert_memory_below(12000, beyond=before)
    for _ in range(400):
        stuck.wait_for("basic.deliver")
    stuck.abort()
    wait_until(lambda: direct.call("queue.declare", queue=queue, passive=True).message_count == 400, what="all back")
    direct.call("queue.delete", queue=queue)


def test_a_clean_close_waits_for_what_was_sent_before(session, broker):
    _, client, channel, queue = session()
    for number in range(10):
        channel.publish("", queue, b"%d" % number + b"v" * (100000 if number % 2 else 10))
    client.close()
    assert broker.channel().call("queue.delete", queue=queue).message_count == 10
