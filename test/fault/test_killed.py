"""bellhop itself is killed, or lives through everything at once: what was confirmed is there, what was not leaves no debris."""

import pytest

from support import amqp
from support.rabbitmq import wait_until


@pytest.mark.parametrize("size", [20, 100000])
def test_nothing_confirmed_is_lost_by_kill_9(bellhop, broker, name, size):
    daemon = bellhop()
    queue = name()
    direct = broker.channel()
    direct.declare(queue)
    client = amqp.connect(daemon.socket)
    channel = client.channel()
    channel.call("confirm.select")
    confirmed = set()

    def collect(event):
        assert event.name == "basic.ack", event
        confirmed.update(range(1, event.delivery_tag + 1) if event.multiple else [event.delivery_tag])

    for number in range(1, 41):
        channel.publish("", queue, b"%04d" % number + b"k" * size)
        if number > 20:
            collect(channel.wait_for("basic.ack"))
    daemon.kill()
    try:
        while True:
            collect(client.next_event())
    except amqp.SocketClosed:
        pass

    daemon.start()
    reader = amqp.connect(daemon.socket).channel()
    wait_until(lambda: direct.call("queue.declare", queue=queue, passive=True).message_count >= len(confirmed), what="the messages")
    bodies = set()
    while (event := reader.get(queue, no_ack=True)) is not None:
        assert len(event.body) == 4 + size
        bodies.add(int(event.body[:4]))
    assert len(confirmed) >= 20 and confirmed <= bodies
    direct.call("queue.delete", queue=queue)


def test_a_kill_in_the_middle_of_an_upload_leaves_no_object(bellhop, broker, name):
    daemon = bellhop()
    queue = name()
    client = amqp.connect(daemon.socket)
    channel = client.channel()
    channel.declare(queue)
    parts = channel.publish_frames("", queue, b"u" * 2000000)
    client.send_raw(b"".join(parts[:-1]))
    client.channel()  # bellhop has read so far
    daemon.kill()
    assert daemon.objects() == []
    daemon.start()
    amqp.connect(daemon.socket).close()
    assert broker.channel().call("queue.delete", queue=queue).message_count == 0


def test_an_unacknowledged_delivery_is_back_after_a_kill(bellhop, broker, name):
    daemon = bellhop()
    queue = name()
    channel = amqp.connect(daemon.socket).channel()
    channel.declare(queue)
    channel.call("confirm.select")
    channel.publish("", queue, b"u" * 100000)
    channel.confirms(1)
    channel.get_wait(queue, no_ack=False)
    daemon.kill()
    daemon.start()
    again = amqp.connect(daemon.socket).channel().get_wait(queue)
    assert again.redelivered and again.body == b"u" * 100000
    broker.channel().call("queue.delete", queue=queue)
