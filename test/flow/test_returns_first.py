"""A returned message whose payload is being fetched from its store keeps its place: whatever the broker said after it on its channel (answers,
deliveries, closes), and the end of the connection, comes after it. At the broker itself a client sees it so."""

import pytest

from support import amqp
from support.bellhop import Bellhop
from support.gate import Gate
from support.rabbitmq import wait_until
from support.scripted_broker import ScriptedBroker

LARGE = b"r" * 100_000


@pytest.fixture
def session(tmp_path):
    """(client, leg, gate, daemon) with channels 1 and 2 open."""
    gate = Gate(tmp_path)
    with ScriptedBroker() as fake, Bellhop({"broker": {"url": fake.url}, "limits": {"drain_timeout": "100ms"}}, env=gate.env) as daemon:
        client, leg = fake.connect(daemon.socket)
        for channel in (1, 2):
            client.send(channel, "channel.open")
            leg.serve_channel(channel)
            client.wait_for("channel.open-ok", channel)
        yield client, leg, gate, daemon
        gate.open()
        client.abort()
        leg.abort()  # a broker that is gone is not waited for


def return_one(client, leg, exchange="", body=LARGE):
    client.publish(1, exchange, "nobody", body, mandatory=True)
    published = leg.published(1)
    leg.send_return(1, exchange, "nobody", published.body, header=published.header)


def being_restored(client, leg, gate, **how):
    gate.close(call="pread")
    return_one(client, leg, **how)


def see_nothing_of_channel_1(client, leg):
    """What was said last is handled, and only channel 2 heard of it."""
    leg.send(2, "basic.qos-ok")
    event = client.next_event()
    assert (event.name, event.channel) == ("basic.qos-ok", 2)


ANSWERS = {
    "confirm.select": ("confirm.select-ok", {}), "tx.select": ("tx.select-ok", {}), "basic.qos": ("basic.qos-ok", {}),
    "queue.declare": ("queue.declare-ok", {"queue": "q"}), "queue.bind": ("queue.bind-ok", {}),
    "exchange.declare": ("exchange.declare-ok", {}), "basic.consume": ("basic.consume-ok", {"consumer_tag": "c"}),
    "basic.cancel": ("basic.cancel-ok", {"consumer_tag": "c"}), "basic.get": ("basic.get-empty", {}),
    "basic.recover": ("basic.recover-ok", {}), "channel.close": ("channel.close-ok", {}),
}


@pytest.mark.parametrize("method", list(ANSWERS))
def test_an_answer_comes_after_it(session, method):
    client, leg, gate, _ = session
    being_restored(client, leg, gate)
    asked = {"exchange": "x"} if method == "exchange.declare" else {"consumer_tag": "c"} if method in ("basic.consume", "basic.cancel") else {}
    client.send(1, method, **asked)
    leg.wait_for((method,), 1)
    answer, fields = ANSWERS[method]
    leg.send(1, answer, **fields)
    see_nothing_of_channel_1(client, leg)
    gate.open()
    returned = client.next_event()
    assert (returned.name, returned.body) == ("basic.return", LARGE)
    assert client.next_event().name == answer


def test_deliveries_come_after_the_answer_that_they_belong_to(session):
    client, leg, gate, _ = session
    being_restored(client, leg, gate)
    client.send(1, "basic.consume", queue="q", consumer_tag="c")
    leg.answer("basic.consume", 1, consumer_tag="c")
    leg.deliver(1, "c", 1, b"small")
    leg.deliver(1, "c", 2, b"\xac\x01\x00inline")
    client.send(1, "basic.get", queue="q")
    leg.wait_for("basic.get", 1)
    method = amqp.encode_method("basic.get-ok", delivery_tag=3, message_count=0)
    leg.send_raw(b"".join(amqp.content_frames(1, method, b"got")))
    see_nothing_of_channel_1(client, leg)
    gate.open()
    events = [client.next_event() for _ in range(5)]
    assert [event.name for event in events] == ["basic.return", "basic.consume-ok", "basic.deliver", "basic.deliver", "basic.get-ok"]
    assert [event.body for event in events[2:]] == [b"small", b"inline", b"got"]


def test_its_ack_and_the_channels_end_come_after_it(session):
    """With confirms: return, ack, close-ok. The id is free for its next life then."""
    client, leg, gate, daemon = session
    client.send(1, "confirm.select")
    leg.answer("confirm.select", 1)
    client.wait_for("confirm.select-ok")
    being_restored(client, leg, gate)
    leg.send(1, "basic.ack", delivery_tag=1)
    client.send(1, "channel.close", reply_code=200)
    leg.answer("channel.close", 1)
    see_nothing_of_channel_1(client, leg)
    gate.open()
    assert [client.next_event().name for _ in range(3)] == ["basic.return", "basic.ack", "channel.close-ok"]
    client.send(1, "channel.open")
    leg.serve_channel(1)
    client.expect("channel.open-ok", 1)


@pytest.mark.parametrize("body", [b"small", LARGE], ids=["small", "large"])
def test_a_close_of_the_brokers_comes_after_it(session, body):
    client, leg, gate, _ = session
    being_restored(client, leg, gate, body=body)
    leg.send(1, "channel.close", reply_code=404, reply_text="NOT_FOUND - later", class_id=60, method_id=40)
    if body == LARGE:
        see_nothing_of_channel_1(client, leg)
    gate.open()
    assert client.next_event().body == body
    client.expect_channel_close(1, 404)
    leg.wait_for("channel.close-ok", 1)


def test_closes_that_cross_are_both_answered_after_it(session):
    client, leg, gate, _ = session
    being_restored(client, leg, gate)
    leg.send(1, "channel.close", reply_code=404, reply_text="NOT_FOUND - later", class_id=60, method_id=40)
    client.send(1, "channel.close", reply_code=200)
    leg.answer("channel.close", 1)
    see_nothing_of_channel_1(client, leg)
    gate.open()
    assert client.next_event().name == "basic.return"
    assert client.wait_for(("channel.close",), 1).reply_code == 404
    client.expect("channel.close-ok", 1)
    client.send(1, "channel.close-ok")
    leg.wait_for("channel.close-ok", 1)
    client.send(1, "channel.open")
    leg.serve_channel(1)
    client.expect("channel.open-ok", 1)


@pytest.mark.parametrize("body", [b"small", LARGE], ids=["small", "large"])
def test_a_return_that_the_broker_sends_before_its_answer_to_the_connections_close_is_the_clients(session, body):
    client, leg, gate, daemon = session
    gate.close(call="pread")
    client.publish(1, "", "nobody", body, mandatory=True)
    client.send(0, "connection.close", reply_code=200)
    published = leg.published(1)
    leg.wait_for(("connection.close",), 0)
    leg.send_return(1, "", "nobody", published.body, header=published.header)
    leg.send(0, "connection.close-ok")
    if body == LARGE:
        leg.expect_closed()
    gate.open()
    assert client.next_event().body == body
    client.expect("connection.close-ok", 0)
    wait_until(lambda: daemon.objects() == [], what="the removal of the returned message's object")


@pytest.mark.parametrize("goes", [True, False], ids=["the-broker-goes", "the-broker-closes"])
def test_a_connections_end_that_is_the_brokers_comes_after_it(session, goes):
    client, leg, gate, _ = session
    being_restored(client, leg, gate)
    if goes:
        see_nothing_of_channel_1(client, leg)
        leg.abort()
    else:
        leg.send(0, "connection.close", reply_code=320, reply_text="CONNECTION_FORCED - shutdown")
        leg.wait_for("connection.close-ok", 0)
    gate.open()
    assert client.next_event().body == LARGE
    close = client.wait_for(("connection.close",), 0)
    assert close.reply_code == 320
    client.send(0, "connection.close-ok")
    client.expect_closed()


def test_a_store_that_cannot_be_reached_keeps_no_close_waiting(session):
    """What cannot be handed over stays in the store, and the log says under which key."""
    client, leg, gate, daemon = session
    marker = daemon.store_path / ".bellhop-store"
    client.publish(1, "", "nobody", LARGE, mandatory=True)
    published = leg.published(1)
    key = published.body[3:].decode()
    marker.unlink()
    (daemon.store_path / key).rename(daemon.folder / key)
    leg.send_return(1, "", "nobody", published.body, header=published.header)
    daemon.wait_log("held")
    client.send(1, "channel.close", reply_code=200)
    leg.answer("channel.close", 1)
    client.expect("channel.close-ok", 1)
    daemon.wait_log(f"a returned message is not handed over.* key={key} ")


@pytest.mark.parametrize("exchange", ["", "amq.direct", "mine"])
def test_its_object_goes_only_if_the_exchange_surely_keeps_nothing(session, exchange):
    """The default exchange and those that every virtual host has. Any other may have kept the message, by its type or its alternate exchange."""
    client, leg, gate, daemon = session
    return_one(client, leg, exchange)
    assert client.next_event().body == LARGE
    client.send(1, "channel.close", reply_code=200)
    leg.answer("channel.close", 1)
    client.expect("channel.close-ok", 1)
    wait_until(lambda: len(daemon.objects()) == (exchange == "mine"), what="what is left of it")
