"""The broker's connection goes away or stands still: the client is told by a connection.close 320, and what was confirmed or unacknowledged is still there."""


import pytest

from support import amqp
from support.proxy import Proxy
from support.rabbitmq import TLS, wait_until


@pytest.fixture
def through_proxy(bellhop, rabbit):
    with Proxy(rabbit.upstream) as proxy:
        yield proxy, bellhop({"broker": {"url": proxy.url}})


@pytest.mark.parametrize("fault", ["cut", "reset"])
def test_a_client_is_told_and_can_come_back(through_proxy, broker, name, fault):
    proxy, daemon = through_proxy
    queue = name()
    client = amqp.connect(daemon.socket)
    channel = client.channel()
    channel.declare(queue)
    channel.call("confirm.select")
    channel.publish("", queue, b"confirmed")
    channel.confirms(1)
    channel.call("basic.consume", queue=queue)
    assert not channel.deliver().redelivered
    getattr(proxy, fault)()
    assert client.expect_close(320).reply_text.startswith("CONNECTION_FORCED")
    client.expect_closed()

    again = amqp.connect(daemon.socket).channel()
    again.call("basic.consume", queue=queue)
    back = again.deliver()
    assert back.redelivered and back.body == b"confirmed"
    again.ack(back.delivery_tag)
    again.close()
    broker.channel().call("queue.delete", queue=queue)


@pytest.mark.parametrize("size", [100, 200000])
def test_a_publish_without_its_confirm_stays_unconfirmed(through_proxy, broker, name, size):
    proxy, daemon = through_proxy
    queue = name()
    client = amqp.connect(daemon.socket)
    channel = client.channel()
    channel.declare(queue)
    channel.call("confirm.select")
    proxy.stall("down")
    channel.publish("", queue, b"x" * size)
    direct = broker.channel()
    assert direct.get_wait(queue)
    proxy.cut()
    assert [e.name for e in (client.next_event(),)] == ["connection.close"]
    # The outcome is unknown, so the object stays: the message is there and names it.
    assert len(daemon.objects()) == (size > 100000)
    direct.call("queue.delete", queue=queue)


@pytest.mark.parametrize("direction, count", [("up", 500), ("up", 700), ("up", 100000), ("down", 600), ("down", 900), ("down", 100000)])
def test_a_connection_that_breaks_anywhere_is_told(through_proxy, broker, name, direction, count):
    """A raw body of 200 KB is on its way in both directions when the connection breaks after so many bytes."""
    proxy, daemon = through_proxy
    queue = name()
    direct = broker.channel()
    direct.declare(queue)
    proxy.cut_after(direction, count)
    client = None
    try:
        client = amqp.connect(daemon.socket)
        channel = client.channel()
        channel.call("basic.consume", queue=queue, no_ack=True)
        for _ in range(20):
            channel.publish("", queue, b"y" * 50000)
            channel.deliver()
        raise AssertionError("the connection did not break")
    except amqp.ConnectionClosed as closed:
        assert closed.code == 320
    except amqp.SocketClosed:
        # In the handshake, where a broker that goes says nothing either. TLS has one of its own before.
        assert count < (4000 if TLS else 700)
    direct.call("queue.delete", queue=queue)


def test_the_last_whole_frames_of_the_broker_come_before_the_close(through_proxy, name):
    """A content that is half out when the connection breaks is never followed by a frame that the client takes for its rest."""
    proxy, daemon = through_proxy
    client = amqp.connect(daemon.socket)
    channel = client.channel()
    queue = channel.declare(name(), exclusive=True)
    carried = proxy.carried("down")
    proxy.cut_after("down", carried + 30000)
    channel.publish("", queue, b"z" * 60000)
    channel.send("basic.get", queue=queue, no_ack=False)
    frames = client.expect_closed()
    assert [amqp.METHOD_NAMES[int.from_bytes(f.payload[:2], "big"), int.from_bytes(f.payload[2:4], "big")]
            for f in frames if f.type == 1][-1] == "connection.close"


def test_a_broker_that_stands_still_is_noticed_by_its_heartbeats(bellhop, rabbit, name):
    with Proxy(rabbit.upstream) as proxy:
        daemon = bellhop({"broker": {"url": proxy.url, "heartbeat": "1s"}})
        client = amqp.connect(daemon.socket)
        client.channel()
        proxy.stall()
        assert client.expect_close(320, timeout=6)
        client.expect_closed()


def test_nothing_confirmed_is_lost_when_the_broker_connection_is_cut_again_and_again(through_proxy, broker, name):
    proxy, daemon = through_proxy
    queue = name()
    direct = broker.channel()
    direct.declare(queue)
    confirmed, number = set(), 0
    for round_number in range(5):
        client = amqp.connect(daemon.socket)
        channel = client.channel()
        channel.call("confirm.select")
        first = number + 1
        so_far, is_cut = len(confirmed), False
        try:
            while True:
                number += 1
                channel.publish("", queue, b"%d" % number)
                if (number - first) % 10 == 9:
                    while client.inbox or client._pump(0):
                        if not client.inbox:
                            continue
                        event = client.inbox.popleft()
                        if event.name == "connection.close":
                            raise amqp.ConnectionClosed(event)
                        start = 1 if event.multiple else event.delivery_tag
                        confirmed.update(range(first - 1 + start, first + event.delivery_tag))
                if not is_cut and len(confirmed) - so_far > 30 * round_number:
                    proxy.reset()
                    is_cut = True
        except amqp.AmqpError:
            pass
        assert is_cut
        client.abort()
    there = set()
    expected = wait_until(lambda: direct.call("queue.declare", queue=queue, passive=True).message_count, what="messages")
    while (event := direct.get(queue, no_ack=True)) is not None:
        there.add(int(event.body))
    assert expected and confirmed and confirmed <= there
    direct.call("queue.delete", queue=queue)
