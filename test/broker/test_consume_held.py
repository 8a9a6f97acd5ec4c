"""Deliveries whose store is unavailable: held, in order, while everything else of the session goes on (daemon/claims/README.md, "Errors")."""

import pytest

from support import amqp
from support.claims import MISSING, Consumer, Marker, Side, body_of, claim, put_object
from support.rabbitmq import wait_until

HELD = "delivery held"
LATER = "22222222-2222-4333-8444-555555555555"


def hold(daemon, side, *behind, key=LATER):
    """A store without its marker, a claim it cannot decide about, and what stands behind it."""
    marker = Marker(daemon)
    marker.remove()
    side.send(claim(key), *behind)
    return marker


def test_a_delivery_waits_for_its_store_and_what_stands_behind_it_keeps_its_order(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    there = put_object(daemon, b"an object")
    marker = hold(daemon, side, b"plain", claim(there), b"\xac\x01\x00inline", body_of(300_000))
    consumer = Consumer(daemon, side.queue)
    daemon.wait_log(HELD)
    consumer.channel.expect_nothing(0.3)
    put_object(daemon, b"came back", LATER)
    marker.restore()
    assert consumer.bodies(5) == [b"came back", b"plain", b"an object", b"inline", body_of(300_000)]
    assert not side.exists(side.parked)


def test_what_is_missing_when_the_store_is_back_is_parked(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    marker = hold(daemon, side, b"plain")
    consumer = Consumer(daemon, side.queue)
    daemon.wait_log(HELD)
    assert not side.exists(side.parked)
    marker.restore()
    assert consumer.deliver().body == b"plain"
    assert "retention" in side.take().headers["x-acemq-error"]


def test_other_channels_replies_confirms_and_returns_overtake_a_held_delivery(bellhop, broker, name):
    daemon = bellhop()
    side, other = Side(broker, name("held")), Side(broker, name("other"))
    hold(daemon, side, b"behind")
    consumer = Consumer(daemon, side.queue)
    daemon.wait_log(HELD)
    channel = consumer.channel
    channel.call("confirm.select")
    channel.publish("", other.queue, b"confirmed")
    channel.expect("basic.ack", delivery_tag=1)
    channel.publish("", name("nobody"), b"returned", mandatory=True)
    channel.expect("basic.return")
    channel.expect("basic.ack", delivery_tag=2)
    assert channel.declare("", exclusive=True)
    second = Consumer(daemon, other.queue, client=consumer.client)
    assert second.deliver().body == b"confirmed"
    channel.expect_nothing(0.1)


def test_after_hold_max_that_delivery_alone_is_parked_and_its_channel_goes_on(bellhop, broker, name):
    daemon = bellhop({"consume": {"hold_max": "1s"}})
    side = Side(broker, name())
    there = put_object(daemon, b"an object")
    hold(daemon, side, b"behind")
    consumer = Consumer(daemon, side.queue)
    assert consumer.deliver().body == b"behind"
    parked = side.take()
    assert parked.body == claim(LATER)
    assert parked.headers["x-acemq-error"].startswith("store unavailable: ") and ".bellhop-store" in parked.headers["x-acemq-error"]
    side.send(claim(there), b"goes on")
    assert consumer.bodies(2) == [b"an object", b"goes on"]
    consumer.ack(0, multiple=True)
    consumer.client.close()
    side.wait_count(0)


def test_a_get_is_answered_empty_when_its_message_was_held_for_too_long(bellhop, broker, name):
    daemon = bellhop({"consume": {"hold_max": "1s"}})
    side = Side(broker, name())
    hold(daemon, side, claim(LATER), b"behind")
    channel = amqp.connect(daemon.socket).channel()
    for no_ack in (False, True):
        assert channel.get(side.queue, no_ack=no_ack) is None
        assert side.channel.get(side.parked, no_ack=True).headers["x-acemq-error"].startswith("store unavailable: ")
    assert channel.get(side.queue, no_ack=True).body == b"behind"
    channel.client.close()
    assert side.count() == 0


def test_without_a_store_a_claim_is_parked_after_hold_max(bellhop, broker, name):
    daemon = bellhop({"consume": {"hold_max": "1s"}}, store=None)
    side = Side(broker, name())
    side.send(claim(LATER), b"behind")
    consumer = Consumer(daemon, side.queue)
    assert consumer.deliver().body == b"behind"
    reason = side.take().headers["x-acemq-error"]
    assert reason.startswith("store unavailable: ") and LATER in reason and "no store is configured" in reason


def test_without_a_store_a_claim_is_held_loudly(bellhop, broker, name):
    daemon = bellhop(store=None)
    side = Side(broker, name())
    side.send(claim(LATER), b"behind")
    consumer = Consumer(daemon, side.queue)
    line = daemon.wait_log(r".*delivery held.*").group(0)
    assert LATER in line and "no store is configured" in line
    consumer.channel.expect_nothing(0.2)
    assert not side.exists(side.parked)
    consumer.client.close()
    side.wait_count(2)


def test_acknowledging_everything_covers_what_the_client_was_handed_and_not_what_is_held(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    side.send(b"one", b"two")
    consumer = Consumer(daemon, side.queue)
    assert consumer.bodies(2) == [b"one", b"two"]
    marker = hold(daemon, side, b"three")
    daemon.wait_log(HELD)
    consumer.ack(0, multiple=True)
    consumer.channel.declare("", exclusive=True)  # the ack is at the broker
    put_object(daemon, b"late", LATER)
    marker.restore()
    assert consumer.bodies(2) == [b"late", b"three"]
    consumer.client.abort()
    side.wait_count(2)


@pytest.mark.parametrize("method", ["basic.ack", "basic.nack", "basic.reject"])
def test_settling_a_tag_that_was_not_handed_over_is_406(bellhop, broker, name, method):
    daemon = bellhop()
    side = Side(broker, name())
    hold(daemon, side)
    consumer = Consumer(daemon, side.queue)
    daemon.wait_log(HELD)
    consumer.channel.send(method, delivery_tag=1)
    closed = consumer.channel.expect_close(406)
    assert "unknown delivery tag 1" in closed.reply_text
    side.wait_count(1)


def test_multiple_across_a_held_and_a_parked_tag_settles_only_the_clients(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    second = Side(broker, name("second"))
    consumer = Consumer(daemon, side.queue)
    consumer.channel.call("basic.consume", queue=second.queue)
    side.send(b"1")
    one = consumer.deliver()
    side.send(claim(MISSING))
    side.take()
    second.send(b"3")
    three = consumer.deliver()
    assert three.delivery_tag == 3
    consumer.ack(three.delivery_tag, multiple=True)
    consumer.channel.declare("", exclusive=True)
    side.send(b"4")
    assert consumer.deliver().delivery_tag == 4 and one.delivery_tag == 1
    consumer.client.abort()
    side.wait_count(1)
    assert second.count() == 0


def test_prefetch_counts_held_deliveries_and_is_given_back_by_a_park(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    marker = hold(daemon, side, b"behind")
    consumer = Consumer(daemon, side.queue, prefetch=1)
    daemon.wait_log(HELD)
    assert side.count() == 1
    marker.restore()
    assert consumer.deliver().body == b"behind"


def test_recover_gives_held_deliveries_back_once(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    marker = hold(daemon, side, b"behind")
    consumer = Consumer(daemon, side.queue)
    daemon.wait_log(HELD)
    consumer.channel.call("basic.recover", requeue=True)
    put_object(daemon, b"late", LATER)
    marker.restore()
    got = [consumer.deliver(), consumer.deliver()]
    assert [g.body for g in got] == [b"late", b"behind"] and all(g.redelivered for g in got)
    for g in got:
        consumer.ack(g.delivery_tag)
    consumer.channel.expect_nothing(0.2)
    consumer.client.close()
    assert side.count() == 0


def test_recover_while_deliveries_are_on_their_way_hands_over_no_stale_tag(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    side.send(*[claim(put_object(daemon, body_of(70_000, n))) for n in range(40)])
    consumer = Consumer(daemon, side.queue)
    consumer.channel.call("basic.recover", requeue=True)
    seen = set()
    while len(seen) < 40:
        got = consumer.deliver()
        if got.redelivered:
            seen.add(got.body)
            consumer.ack(got.delivery_tag)
    consumer.channel.declare("", exclusive=True)  # no 406 came
    consumer.client.close()
    side.wait_count(0)


def test_a_cancelled_consumer_is_handed_nothing_after_cancel_ok(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    marker = hold(daemon, side, b"behind")
    consumer = Consumer(daemon, side.queue)
    daemon.wait_log(HELD)
    consumer.channel.call("basic.cancel", consumer_tag=consumer.tag)
    side.wait_count(2)  # nobody will ask for them: they are the queue's again
    put_object(daemon, b"late", LATER)
    marker.restore()
    consumer.channel.expect_nothing(0.3)
    assert consumer.channel.get(side.queue).body == b"late"


def test_cancel_ok_comes_after_the_deliveries_that_were_sent_before_it(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    bodies = [body_of(500_000, n) for n in range(20)]
    side.send(*[claim(put_object(daemon, body)) for body in bodies])
    consumer = Consumer(daemon, side.queue)
    side.wait_count(0)
    consumer.channel.send("basic.cancel", consumer_tag=consumer.tag)
    for body in bodies:
        assert consumer.channel.expect("basic.deliver").body == body
    consumer.channel.expect("basic.cancel-ok")


def test_a_queue_that_is_deleted_while_its_delivery_is_held_cancels_the_consumer(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    marker = hold(daemon, side)
    consumer = Consumer(daemon, side.queue)
    daemon.wait_log(HELD)
    side.channel.call("queue.delete", queue=side.queue)
    assert consumer.channel.wait_for("basic.cancel").consumer_tag == consumer.tag
    put_object(daemon, b"late", LATER)
    marker.restore()
    consumer.channel.expect_nothing(0.3)
    assert consumer.channel.declare("", exclusive=True)


def test_closing_a_channel_while_its_delivery_is_held_gives_it_back(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    hold(daemon, side, b"behind")
    consumer = Consumer(daemon, side.queue)
    daemon.wait_log(HELD)
    consumer.channel.close()
    side.wait_count(2)
    again = consumer.client.channel(consumer.channel.number)
    again.expect_nothing(0.1)
    assert again.declare("", exclusive=True)


def test_a_deep_backlog_behind_a_held_delivery_does_not_stop_the_other_channels(bellhop, broker, name):
    daemon = bellhop()
    side, other = Side(broker, name("held")), Side(broker, name("other"))
    marker = hold(daemon, side, *[body_of(60_000, n) for n in range(700)])  # 42 MB, no prefetch
    consumer = Consumer(daemon, side.queue)
    daemon.wait_log(HELD)
    put_object(daemon, b"late", LATER)
    marker.restore()
    assert consumer.bodies(701) == [b"late"] + [body_of(60_000, n) for n in range(700)]


def test_draining_does_not_wait_for_a_held_delivery(bellhop, broker, name):
    daemon = bellhop({"limits": {"drain_timeout": "15s"}})
    side = Side(broker, name())
    hold(daemon, side, b"behind")
    consumer = Consumer(daemon, side.queue)
    daemon.wait_log(HELD)
    daemon.sigterm()
    consumer.client.expect_close(320, timeout=8)
    assert daemon.wait() == 0
    side.wait_count(2)
