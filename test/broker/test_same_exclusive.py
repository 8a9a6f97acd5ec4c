"""Exclusive queues: whose they are, who is locked out, and when they end."""

import pytest

from support import amqp
from support.rabbitmq import wait_until


def is_gone(probe, queue):
    ch = probe.channel()
    try:
        ch.call("queue.declare", queue=queue, passive=True)
    except amqp.ChannelClosed as closed:
        return closed.code == 404  # locked (405) as long as it is there
    return False


@pytest.mark.parametrize("method, arguments", [
    ("queue.declare", {"passive": True}), ("queue.declare", {"exclusive": True}), ("queue.declare", {}), ("queue.purge", {}),
    ("queue.delete", {}), ("queue.bind", {"exchange": "amq.direct"}), ("queue.unbind", {"exchange": "amq.direct"}), ("basic.consume", {}), ("basic.get", {})])
def test_another_connection_is_locked_out_and_another_channel_is_not(same, method, arguments):
    @same
    def program(run):
        owner = run.channel()
        queue = owner.declare(run.name("q"), exclusive=True)
        stranger = run.channel()
        stranger.send(method, queue=queue, **arguments)
        try:
            stranger.call("exchange.declare", exchange="amq.direct", passive=True)
        except amqp.ChannelClosed as closed:
            run.note("closed", closed.code)
        owner.client.channel().call("queue.declare", queue=queue, passive=True)
        sibling = run.channel()
        sibling.call("confirm.select")
        sibling.publish("", queue, b"publishing is anybody's")
        sibling.confirms(1)
        owner.get(queue)


@pytest.mark.parametrize("end", ["close", "abort", "reset", "half close", "kill the channel"])
def test_they_end_with_their_connection_and_not_before(same, end):
    @same
    def program(run):
        probe = run.direct()
        owner = run.channel()
        queue = owner.declare(run.name("q"), exclusive=True, durable=True)
        owner.close()
        assert not is_gone(probe, queue)
        if end == "kill the channel":
            again = owner.client.channel(1)
            again.send("queue.declare", queue=run.name("missing"), passive=True)
            again.expect_close(404)
            assert not is_gone(probe, queue)
            return
        if end == "close":
            owner.client.close()
            run.note("gone with close-ok", is_gone(probe, queue))
            return
        if end == "half close":
            owner.client.sock.shutdown(1)
        elif end == "reset" and run.through:
            owner.client.abort()  # a Unix socket has no reset
        else:
            getattr(owner.client, end)()
        wait_until(lambda: is_gone(probe, queue), what="the end of the exclusive queue")
        owner.client.is_over = True
        owner.client.abort()


@pytest.mark.parametrize("end", ["close", "abort"])
def test_a_client_that_comes_back_at_once_gets_its_exclusive_queue(same, end):
    """As client libraries recover: reconnect, declare, consume, a few tries. (The broker itself needs a moment for a lost connection, too.)"""
    @same
    def program(run):
        queue = run.name("q")
        for life in range(5):
            client = run.connect()
            ch = client.channel()
            tries = 0
            while True:
                try:
                    ch.call("queue.declare", queue=queue, exclusive=True)
                    break
                except amqp.ChannelClosed as closed:
                    assert closed.code == 405, closed
                    tries += 1
                    assert tries < 200
                    ch = client.channel(ch.number)
            lines = run.transcript.lines[f"{client.label} channel 1"]
            del lines[:-1]  # how many tries it took
            ch.call("basic.consume", queue=queue, consumer_tag="c")
            ch.call("confirm.select")
            ch.publish("", queue, b"%d" % life)
            ch.deliver()
            ch.confirms(1)
            getattr(client, end)()
