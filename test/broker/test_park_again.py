"""What is read from a parked queue was parked before: it is restored when that can be done now, else handed over as it stands."""

import pytest

from support import amqp
from support.claims import Consumer, Marker, Side, claim, put_object

MISSING = "11111111-2222-4333-8444-555555555555"


def park(daemon, side):
    side.send(claim(MISSING), message_id="m", headers={"n": 1})
    consumer = Consumer(daemon, side.queue)
    side.wait_parked(1)
    consumer.client.close()


def expect_as_it_stands(got):
    assert got.body == claim(MISSING)
    assert got.properties["message_id"] == "m" and got.headers["n"] == 1
    assert MISSING in got.headers["x-acemq-error"]


def test_a_consumer_of_a_parked_queue_gets_what_cannot_be_restored_as_it_stands_in_order(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    park(daemon, side)
    side.send(b"behind", queue=side.parked)
    consumer = Consumer(daemon, side.parked)
    first = consumer.deliver()
    expect_as_it_stands(first)
    assert consumer.deliver().body == b"behind"
    consumer.ack(first.delivery_tag, multiple=True)
    consumer.client.close()
    side.wait_count(1, side.parked)  # the one behind
    assert not side.exists(side.parked + ".parked")


@pytest.mark.parametrize("no_ack", [False, True])
def test_a_get_from_a_parked_queue_is_answered_with_it(bellhop, broker, name, no_ack):
    daemon = bellhop()
    side = Side(broker, name())
    park(daemon, side)
    channel = amqp.connect(daemon.socket).channel()
    got = channel.get(side.parked, no_ack=no_ack)
    expect_as_it_stands(got)
    if not no_ack:
        channel.ack(got.delivery_tag)
    channel.client.close()
    side.wait_count(0, side.parked)
    assert not side.exists(side.parked + ".parked")


def test_what_can_be_restored_again_is(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    park(daemon, side)
    put_object(daemon, b"found again", MISSING)
    assert amqp.connect(daemon.socket).channel().get(side.parked, no_ack=True).body == b"found again"


def test_a_parked_claim_whose_store_is_away_is_handed_over_as_it_stands_after_hold_max(bellhop, broker, name):
    daemon = bellhop({"consume": {"hold_max": "1s"}})
    side = Side(broker, name())
    park(daemon, side)
    Marker(daemon).remove()
    expect_as_it_stands(amqp.connect(daemon.socket).channel().get(side.parked))


def test_undeliverable_reject_does_not_drop_what_is_parked(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    park(daemon, side)
    rejects = bellhop({"consume": {"undeliverable": "reject"}})
    expect_as_it_stands(amqp.connect(rejects.socket).channel().get(side.parked))


def test_a_no_ack_consumer_of_a_parked_queue_gets_at_once_what_its_store_cannot_give_now(bellhop, broker, name):
    """Nobody else has it: held and then put back, its consumer would get it once more."""
    daemon = bellhop()
    side = Side(broker, name())
    park(daemon, side)
    Marker(daemon).remove()
    expect_as_it_stands(Consumer(daemon, side.parked, no_ack=True).deliver())
    side.wait_count(0, side.parked)


def test_a_message_that_was_moved_back_to_its_queue_is_parked_again(bellhop, broker, name):
    """Only the queue says that a message is parked: the error header is still there when it has left it."""
    daemon = bellhop()
    side = Side(broker, name())
    side.send(claim(MISSING), headers={"x-acemq-error": "an older one"})
    consumer = Consumer(daemon, side.queue)
    assert "retention" in side.take().headers["x-acemq-error"]
    consumer.client.close()
