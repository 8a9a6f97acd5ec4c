"""A channel that bellhop closes by its own decision (541, 406, 404): also closed above, late frames dropped both ways, and the id is
free for its next life when both sides have agreed."""

import pytest

from support import amqp
from support.bellhop import Bellhop
from support.gate import Gate
from support.scripted_broker import ScriptedBroker


@pytest.fixture
def session():
    """(client, leg) with channels 1 and 2 open; publishing to the exchange bellhop.route with an unknown name closes a channel (404)."""
    with ScriptedBroker() as fake, Bellhop({"broker": {"url": fake.url}, "limits": {"drain_timeout": "100ms"}}) as daemon:
        client, leg = fake.connect(daemon.socket)
        for channel in (1, 2):
            client.send(channel, "channel.open")
            leg.serve_channel(channel)
            client.wait_for("channel.open-ok", channel)
        yield client, leg
        client.abort()
        leg.abort()  # a broker that is gone is not waited for


def make_it_close(client, channel=1):
    client.publish(channel, "bellhop.route", "unknown", b"body")
    close = client.wait_for(("channel.close",), channel)
    assert close.reply_code == 404 and "unknown" in close.reply_text


def test_both_legs_are_closed_and_the_other_channel_goes_on(session):
    client, leg = session
    make_it_close(client)
    assert leg.expect("channel.close").channel == 1
    client.send(1, "channel.close-ok")
    leg.send(1, "channel.close-ok")
    client.publish(2, "", "q", b"other")
    assert leg.expect("basic.publish").body == b"other"


def test_late_frames_of_both_sides_are_dropped(session):
    client, leg = session
    client.send(1, "basic.consume", queue="q", consumer_tag="c")
    leg.answer("basic.consume", 1, consumer_tag="c")
    client.wait_for("basic.consume-ok")
    make_it_close(client)
    leg.expect("channel.close")
    client.publish(1, "", "q", b"too late")
    client.send(1, "basic.ack", delivery_tag=1)
    leg.deliver(1, "c", 1, b"also too late")
    leg.deliver(1, "c", 2, b"\xac\x01\x00inline")
    leg.send(1, "basic.ack", delivery_tag=9)
    leg.send(1, "channel.close-ok")
    client.send(1, "channel.close-ok")
    client.publish(2, "", "q", b"next")
    assert leg.expect("basic.publish", channel=None).body == b"next"
    leg.deliver(2, "d", 1, b"next")
    assert client.expect("basic.deliver").body == b"next"


@pytest.mark.parametrize("broker_first", [True, False])
@pytest.mark.parametrize("size", [5, 100000])
def test_the_id_is_used_again_at_once_with_publishes_right_behind(session, broker_first, size):
    client, leg = session
    make_it_close(client)
    leg.expect("channel.close")
    if broker_first:
        leg.send(1, "channel.close-ok")
    again = amqp.method_frame(1, "channel.close-ok") + amqp.method_frame(1, "channel.open") + amqp.method_frame(1, "confirm.select")
    again += b"".join(b"".join(client.publish_frames(1, "", "q", b"%d" % n + b"x" * size, split=[2, 3])) for n in range(3))
    client.send_raw(again)
    if not broker_first:
        leg.expect_nothing(0.2)  # above, the id is still in its last life
        leg.send(1, "channel.close-ok")
    leg.expect("channel.open", 1)
    leg.send(1, "channel.open-ok")
    leg.expect("confirm.select", 1)
    leg.send(1, "confirm.select-ok")
    for n in range(3):
        assert leg.expect("basic.publish", 1).body[:1] in (b"%d" % n, b"\xac")
    leg.send(1, "basic.ack", delivery_tag=3, multiple=True)
    client.expect("channel.open-ok", 1)
    client.expect("confirm.select-ok", 1)
    assert client.expect("basic.ack", 1).delivery_tag in (1, 3)


def test_the_client_and_the_broker_may_close_the_channel_at_the_same_time(session):
    client, leg = session
    make_it_close(client)
    leg.expect("channel.close")
    client.send(1, "channel.close", reply_code=200)
    leg.send(1, "channel.close", reply_code=404, reply_text="NOT_FOUND")
    client.wait_for("channel.close-ok", 1)
    leg.expect("channel.close-ok", 1)
    client.send(1, "channel.close-ok")
    leg.send(1, "channel.close-ok")
    client.send(1, "channel.open")
    leg.serve_channel(1)
    client.wait_for("channel.open-ok", 1)


def test_a_client_that_dies_while_its_channel_closes_ends_the_session(session):
    client, leg = session
    make_it_close(client)
    leg.expect("channel.close")
    client.abort()
    leg.wait_for("connection.close", 0)


def test_the_brokers_error_reaches_the_right_channel_only(session):
    client, leg = session
    client.send(2, "queue.declare", queue="q", passive=True)
    leg.wait_for("queue.declare", 2)
    leg.send(2, "channel.close", reply_code=404, reply_text="NOT_FOUND - no queue 'q'", class_id=50, method_id=10)
    assert client.expect_channel_close(2, 404).method_id == 10
    leg.expect("channel.close-ok", 2)
    client.publish(1, "", "q", b"one")
    assert leg.expect("basic.publish", 1).body == b"one"
    client.send(2, "channel.open")
    leg.serve_channel(2)
    client.expect("channel.open-ok", 2)


def test_frames_that_cross_the_brokers_close_are_dropped(session):
    client, leg = session
    leg.send(1, "channel.close", reply_code=404, reply_text="NOT_FOUND")
    client.wait_for(("channel.close",), 1)
    client.publish(1, "", "q", b"crossing")
    client.publish(1, "", "q", b"L" * 100000)
    client.send(1, "channel.close-ok")
    assert leg.expect("channel.close-ok", 1)
    client.send(1, "channel.open")
    leg.serve_channel(1)
    client.expect("channel.open-ok", 1)


def test_the_next_lifes_publish_waits_for_a_transfers_place_and_loses_nothing(tmp_path):
    gate = Gate(tmp_path)
    large = b"x" * 100_000
    with ScriptedBroker() as fake, \
            Bellhop({"broker": {"url": fake.url}, "limits": {"transfers_per_session": 1, "drain_timeout": "100ms"}}, env=gate.env) as daemon:
        client, leg = fake.connect(daemon.socket)
        for channel in (1, 2):
            client.send(channel, "channel.open")
            leg.serve_channel(channel)
            client.wait_for("channel.open-ok", channel)
        gate.close()
        client.publish(2, "", "q", large)
        make_it_close(client)
        client.send(1, "channel.close-ok")
        client.send(1, "channel.open")
        client.publish(1, "", "q", large)
        client.publish(1, "", "q", b"behind it")
        client.send(2, "basic.qos")
        client.send(0, "connection.close", reply_code=200)
        leg.wait_for(("channel.close",), 1)
        leg.send(1, "channel.close-ok")
        leg.wait_for("channel.open", 1)
        gate.open()
        leg.published(2)
        assert leg.published(1).body.startswith(b"\xac\x01\x01")
        assert leg.published(1).body == b"behind it"
        leg.wait_for(("connection.close",))
        client.abort()
        leg.abort()
