"""A channel that bellhop closes by its own decision (541, 406, 404): closed above at once, below when the broker has answered what was said
before; late frames are dropped, and the id is free for its next life with the client's close-ok."""

import pytest

from support import amqp


def make_it_close(client, leg, channel=1):
    """The broker is told at once, the client when the broker has answered."""
    refuse(client, channel)
    leg.wait_for(("channel.close",), channel)
    client.expect_nothing(0.05, channel)
    leg.send(channel, "channel.close-ok")
    told(client, channel)


def refuse(client, channel=1):
    """The exchange bellhop.route with an unknown name closes a channel (404)."""
    client.publish(channel, "bellhop.route", "unknown", b"body")


def told(client, channel=1):
    close = client.expect("channel.close", channel)
    assert close.reply_code == 404 and "unknown" in close.reply_text


def test_both_legs_are_closed_and_the_other_channel_goes_on(session):
    client, leg = session
    make_it_close(client, leg)
    client.send(1, "channel.close-ok")
    client.publish(2, "", "q", b"other")
    assert leg.expect("basic.publish").body == b"other"


@pytest.mark.parametrize("size", [5, 100_000])
def test_what_the_broker_still_answers_comes_before_the_close(session, size):
    """Replies, confirms, returns and deliveries of what the channel said before the publish that is refused: at RabbitMQ itself they are first, too."""
    client, leg = session
    client.send(1, "basic.consume", queue="q", consumer_tag="c")
    leg.answer("basic.consume", 1, consumer_tag="c")
    client.wait_for("basic.consume-ok")
    client.publish(1, "x", "first", b"r" * size, mandatory=True)
    client.send(1, "queue.declare", queue="a")
    client.send(1, "basic.cancel", consumer_tag="c")
    refuse(client)
    returned = leg.published(1)
    leg.wait_for(("channel.close",), 1)
    leg.send_return(1, "x", "first", returned.body, header=returned.header)
    leg.send(1, "queue.declare-ok", queue="a", message_count=7)
    leg.deliver(1, "c", 1, b"plain")
    leg.deliver(1, "c", 2, b"\xac\x01\x00inline")
    leg.send(1, "basic.cancel-ok", consumer_tag="c")
    leg.send(1, "channel.close-ok")
    assert client.wait_for("basic.return", 1).body == b"r" * size
    assert client.wait_for("queue.declare-ok", 1).message_count == 7
    assert [client.wait_for("basic.deliver", 1).body for _ in "12"] == [b"plain", b"inline"]
    client.expect("basic.cancel-ok", 1)
    told(client)


def test_an_error_of_the_brokers_that_was_first_is_what_the_client_is_told(session):
    client, leg = session
    client.send(1, "queue.declare", queue="missing", passive=True)
    refuse(client)
    leg.expect("queue.declare", 1)
    leg.expect("channel.close", 1)
    leg.send(1, "channel.close", reply_code=403, reply_text="ACCESS_REFUSED - no", class_id=50, method_id=10)
    leg.expect("channel.close-ok", 1)
    leg.send(1, "channel.close-ok")
    close = client.expect("channel.close", 1)
    assert (close.reply_code, close.reply_text, close.class_id, close.method_id) == (403, "ACCESS_REFUSED - no", 50, 10)
    client.send(1, "channel.close-ok")
    client.send(1, "channel.open")
    leg.serve_channel(1)
    client.expect("channel.open-ok", 1)


def test_late_frames_of_the_client_are_dropped(session):
    client, leg = session
    refuse(client)
    client.publish(1, "", "q", b"too late")
    client.send(1, "basic.ack", delivery_tag=1)
    leg.wait_for(("channel.close",), 1)
    leg.send(1, "channel.close-ok")
    told(client)
    client.publish(1, "", "q", b"later still")
    client.publish(1, "", "q", b"L" * 100_000)
    client.send(1, "channel.close-ok")
    client.publish(2, "", "q", b"next")
    assert leg.expect("basic.publish", channel=None).body == b"next"
    leg.deliver(2, "d", 1, b"next")
    assert client.expect("basic.deliver").body == b"next"


def test_a_get_that_can_no_longer_be_acknowledged_is_not_handed_over(session):
    """bellhop acknowledges a get without ack after its last byte: on a channel that the broker has closed it would come twice."""
    client, leg = session
    client.send(1, "basic.get", queue="q", no_ack=True)
    refuse(client)
    leg.expect("basic.get", 1)
    leg.expect("channel.close", 1)
    method = amqp.encode_method("basic.get-ok", delivery_tag=1, message_count=0)
    leg.send_raw(b"".join(amqp.content_frames(1, method, b"once")))
    leg.send(1, "channel.close-ok")
    told(client)
    leg.expect_nothing(0.1, 1)


@pytest.mark.parametrize("size", [5, 100000])
def test_the_id_is_used_again_at_once_with_publishes_right_behind(session, size):
    client, leg = session
    make_it_close(client, leg)
    again = amqp.method_frame(1, "channel.close-ok") + amqp.method_frame(1, "channel.open") + amqp.method_frame(1, "confirm.select")
    again += b"".join(b"".join(client.publish_frames(1, "", "q", b"%d" % n + b"x" * size, split=[2, 3])) for n in range(3))
    client.send_raw(again)
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


@pytest.mark.parametrize("says_close_ok", [True, False])
@pytest.mark.parametrize("knows", [True, False])
def test_the_client_may_close_the_channel_at_the_same_time(session, knows, says_close_ok):
    """Each close is answered; a client for which the answer to its own is the end may open the channel again with that."""
    client, leg = session
    refuse(client)
    leg.wait_for(("channel.close",), 1)
    if knows:
        leg.send(1, "channel.close-ok")
        told(client)
    client.send(1, "channel.close", reply_code=200)
    if not knows:
        client.send(2, "basic.qos")
        leg.wait_for("basic.qos", 2)  # so the close before it was read
        leg.send(1, "channel.close-ok")
        told(client)
    client.expect("channel.close-ok", 1)
    if says_close_ok:
        client.send(1, "channel.close-ok")
    client.send(1, "channel.open")
    leg.serve_channel(1)
    client.expect("channel.open-ok", 1)


def test_a_client_that_dies_while_its_channel_closes_ends_the_session(session):
    client, leg = session
    refuse(client)
    leg.wait_for(("channel.close",), 1)
    client.abort()
    leg.wait_for("connection.close", 0)


def test_a_client_that_closes_the_connection_meanwhile_still_learns_of_the_channel(session):
    client, leg = session
    refuse(client)
    client.send(0, "connection.close", reply_code=200)
    leg.wait_for(("channel.close",), 1)
    leg.send(1, "channel.close-ok")
    told(client)
    leg.wait_for(("connection.close",), 0)
    leg.send(0, "connection.close-ok")
    client.expect("connection.close-ok", 0)


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


def test_the_next_lifes_publish_waits_for_a_transfers_place_and_loses_nothing(stage, gate):
    large = b"x" * 100_000
    here = stage({"limits": {"transfers_per_session": 1}}, env=gate.env)
    client, leg = here.client, here.leg
    gate.close()
    client.publish(2, "", "q", large)
    make_it_close(client, leg)
    client.send(1, "channel.close-ok")
    client.send(1, "channel.open")
    client.publish(1, "", "q", large)
    client.publish(1, "", "q", b"behind it")
    client.send(2, "basic.qos")
    client.send(0, "connection.close", reply_code=200)
    leg.wait_for("channel.open", 1)
    gate.open()
    leg.published(2)
    assert leg.published(1).body.startswith(b"\xac\x01\x01")
    assert leg.published(1).body == b"behind it"
    leg.wait_for(("connection.close",))
