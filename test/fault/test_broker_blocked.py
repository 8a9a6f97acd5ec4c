"""A broker that blocks publishers, closes connections by its own decision, stands still, or dies: on a node of the test's own."""

import time

import pytest

from support import amqp
from support.scripted_broker import background


@pytest.fixture
def blocked(own_rabbit):
    own_rabbit.block()
    yield own_rabbit
    own_rabbit.unblock()


def test_a_publisher_is_told_of_the_block_and_of_its_end(own_rabbit, bellhop, name):
    daemon = bellhop()
    client = amqp.connect(daemon.socket)
    channel = client.channel()
    queue = channel.declare(name(), exclusive=True)
    channel.call("confirm.select")
    own_rabbit.block()
    try:
        channel.publish("", queue, b"small")
        assert "memory" in client.wait_for("connection.blocked", 0).reason
        channel.publish("", queue, b"L" * 200000)
        client.expect_nothing(0.3)
    finally:
        own_rabbit.unblock()
    client.wait_for("connection.unblocked", 0)
    assert channel.confirms(2) == {1: "ack", 2: "ack"}
    assert [len(channel.get_wait(queue).body) for _ in range(2)] == [5, 200000]


def test_a_client_that_connects_while_the_broker_blocks_is_served_like_by_the_broker(blocked, own_rabbit, bellhop, name):
    daemon = bellhop()
    client = amqp.connect(daemon.socket)
    channel = client.channel()
    queue = channel.declare(name(), exclusive=True)
    channel.call("confirm.select")
    channel.publish("", queue, b"waits")
    client.wait_for("connection.blocked", 0)
    own_rabbit.unblock()
    client.wait_for("connection.unblocked", 0)
    assert channel.confirms(1) == {1: "ack"}


def beat_while(client, action):
    """Runs a slow command; the client stays alive meanwhile."""
    running = background(action)
    while not running.done():
        client.send_heartbeat()
        client._pump(time.monotonic() + 0.1)
    running.result()


def test_while_blocked_nobody_is_cut_though_nothing_moves(own_rabbit, bellhop, name):
    """The broker does not read, so bellhop stops reading the client: neither counts the other's silence."""
    daemon = bellhop({"broker": {"heartbeat": "1s"}})
    client = amqp.connect(daemon.socket, heartbeat=1)
    channel = client.channel()
    queue = channel.declare(name(), exclusive=True)
    channel.call("confirm.select")
    beat_while(client, own_rabbit.block)
    sent, rest, stuck = 0, b"", 0
    try:
        deadline = client._deadline(5)
        while time.monotonic() < deadline:
            if not rest:
                rest, sent = b"".join(channel.publish_frames("", queue, b"x" * 60000)), sent + 1
            try:
                client.sock.setblocking(False)
                rest = rest[client.sock.send(rest):]
            except BlockingIOError:
                stuck += 1
                client._pump(time.monotonic() + 0.1)
    finally:
        unblocking = background(own_rabbit.unblock)
    client.send_raw(rest)
    beat_while(client, unblocking.result)
    assert stuck > 20
    assert channel.confirms(sent, timeout=60) == {tag: "ack" for tag in range(1, sent + 1)}
    assert client.heartbeats_seen >= 3
    client.close()


def test_a_connection_that_the_broker_closes_gets_the_brokers_words(own_rabbit, bellhop):
    daemon = bellhop()
    client = amqp.connect(daemon.socket)
    client.channel()
    own_rabbit.close_all_connections("maintenance at noon")
    assert "maintenance at noon" in client.expect_close(320).reply_text
    client.expect_closed()


def test_a_frozen_broker_is_noticed_by_heartbeats_and_a_thawed_one_serves_again(own_rabbit, bellhop):
    daemon = bellhop({"broker": {"heartbeat": "1s", "connect_timeout": "1s"}})
    client = amqp.connect(daemon.socket)
    client.channel()
    own_rabbit.freeze()
    try:
        client.expect_close(320, timeout=8)
        waiting = amqp.Client(daemon.socket)  # the kernel still accepts for it
        waiting.send_header()
        waiting.expect_nothing(0.5)
    finally:
        own_rabbit.thaw()
    waiting.start()
    waiting.abort()
    amqp.connect(daemon.socket).close()


def test_a_broker_that_is_killed_costs_nothing_that_was_confirmed(own_rabbit, bellhop, name):
    daemon = bellhop()
    queue = name()
    client = amqp.connect(daemon.socket)
    channel = client.channel()
    channel.declare(queue, durable=True)
    channel.call("confirm.select")
    bodies = [b"small", b"L" * 100000, b"last"]
    for body in bodies:
        channel.publish("", queue, body)
    channel.confirms(3)
    taken = client.channel()
    taken.get_wait(queue, no_ack=False)
    own_rabbit.wait_on_disk(queue)
    own_rabbit.kill()
    client.expect_close(320)
    client.expect_closed()
    late = amqp.Client(daemon.socket)
    late.send_header()
    own_rabbit.launch()
    try:  # within connect_timeout the waiting client is served by the node that came back
        late.start()
        late.abort()
    except amqp.SocketClosed:
        # Too late, or the node took the connection while it was still starting, and closed it.
        daemon.wait_log("no broker could be reached|ended the connection during the handshake")

    again = amqp.connect(daemon.socket).channel()
    assert [again.get_wait(queue).body for _ in bodies] == bodies
