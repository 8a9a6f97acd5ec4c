"""What can be neither restored nor parked: it alone stays unacknowledged, is told of, and those behind it go on."""

import pytest

from support.claims import Consumer, Side, claim

MISSING = "11111111-2222-4333-8444-555555555555"
STAYS = "message stays unacknowledged"


@pytest.fixture
def reader(rabbit, name):
    """A broker's user who may read, and nothing else."""
    user = name("reader").replace(".", "")
    rabbit.add_user(user, "secret", configure="^$", write="^$")
    yield user
    rabbit.delete_user(user)


@pytest.fixture
def daemon(rabbit, bellhop, reader):
    """A bellhop that is this user at the broker, so it cannot park."""
    return bellhop({"broker": {"url": f"amqp://{reader}:secret@{rabbit.address}/"}})


def test_without_the_permission_to_park_a_message_stays_and_those_behind_it_go_on(daemon, broker, name):
    side = Side(broker, name())
    side.send(claim(MISSING), b"one", claim(MISSING), b"two")
    consumer = Consumer(daemon, side.queue)
    assert consumer.bodies(2) == [b"one", b"two"]
    consumer.ack(0, multiple=True)
    assert "ACCESS_REFUSED" in daemon.wait_log(f".*{STAYS}.*").group(0)
    side.send(b"three")
    assert consumer.deliver().body == b"three"
    consumer.client.close()
    side.wait_count(3)  # the two, and the one that was not acknowledged


def test_a_refusal_does_not_cost_the_broker_a_channel_for_each_message(rabbit, daemon, reader, broker, name):
    side = Side(broker, name())
    side.send(claim(MISSING))
    consumer = Consumer(daemon, side.queue)
    daemon.wait_log(STAYS)
    side.send(*[claim(MISSING)] * 100, b"last")
    assert consumer.deliver().body == b"last"
    consumer.client.close()
    side.wait_count(102)
    assert rabbit.log_path.read_text(errors="replace").count(f"access to exchange 'amq.default' in vhost '/' refused for user '{reader}'") < 10


def test_a_no_ack_consumers_message_that_cannot_be_parked_is_handed_over_as_it_stands(daemon, broker, name):
    side = Side(broker, name())
    side.send(claim(MISSING), headers={"n": 1})
    got = Consumer(daemon, side.queue, no_ack=True).deliver()
    assert got.body == claim(MISSING) and got.headers == {"n": 1}


def test_what_is_left_is_not_covered_by_the_clients_multiple(daemon, broker, name):
    side = Side(broker, name())
    side.send(b"before", claim(MISSING), b"behind")
    consumer = Consumer(daemon, side.queue)
    assert consumer.bodies(2) == [b"before", b"behind"]
    daemon.wait_log(STAYS)
    consumer.ack(3, multiple=True)
    consumer.client.close()
    side.wait_count(1)
    assert side.take(side.queue).body == claim(MISSING)
