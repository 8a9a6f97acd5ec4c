"""Deliveries whose store never answers (a dead mount, a frozen service): given up like those of one that is away, 10 s being the least."""

import pytest

from support.claims import Consumer, Side, body_of, claim, put_object

SILENT = "its store did not answer"


@pytest.fixture
def silent(bellhop, broker, name, gate):
    """A daemon with a store that can be made to stand still, and a queue: silent({...}, arguments=...)."""
    def run(config=None, **options):
        return bellhop(config, env=gate.env), Side(broker, name(), **options)

    yield run
    gate.open()


def test_after_hold_max_that_claim_alone_is_parked_and_the_late_answer_is_ignored(silent, gate):
    daemon, side = silent({"consume": {"hold_max": "1s"}, "limits": {"transfers_per_session": 1}})
    keys = [put_object(daemon, body_of(size)) for size in (100, 3 << 20)]
    gate.close(call="pread")
    side.send(*map(claim, keys), b"behind")
    consumer = Consumer(daemon, side.queue)
    assert consumer.deliver(timeout=60).body == b"behind"
    parked = {side.take().body: None for _ in keys}
    assert set(parked) == set(map(claim, keys))
    daemon.wait_log(SILENT)
    # Its transfer is free again, and what it reads at last is nobody's.
    gate.open()
    side.send(*[claim(put_object(daemon, b"later %d" % n)) for n in range(3)])
    assert consumer.bodies(3) == [b"later %d" % n for n in range(3)]
    consumer.ack(0, multiple=True)
    consumer.client.close()
    side.wait_count(0)


def test_what_waits_for_its_turn_behind_the_silent_ones_is_given_up_with_them(silent, gate):
    """Each would have its own ten seconds otherwise, and the broker's consumer timeout would end before the last."""
    daemon, side = silent({"consume": {"hold_max": "1s"}, "limits": {"transfers_per_session": 2}})
    gate.close(call="pread")
    side.send(*[claim(put_object(daemon, b"payload")) for _ in range(12)], b"behind")
    assert Consumer(daemon, side.queue).deliver(timeout=30).body == b"behind"
    side.wait_parked(12)


def test_one_that_came_back_twice_does_not_wait_for_hold_max(silent, gate):
    daemon, side = silent(arguments={"x-queue-type": "quorum", "x-delivery-limit": 3})  # hold_max: 10m
    try:
        gate.close(call="pread")
        side.send(claim(put_object(daemon, b"payload")), b"neighbour")
        for _ in range(2):
            consumer = Consumer(daemon, side.queue)
            side.wait_count(0)
            consumer.client.close()
            side.wait_count(2)
        assert Consumer(daemon, side.queue).deliver(timeout=60).body == b"neighbour"
        side.wait_parked(1)
    finally:
        for queue in (side.queue, side.parked):
            side.channel.call("queue.delete", queue=queue)


def test_it_is_told_and_no_consumers_end_waits_for_it(silent, gate):
    daemon, side = silent()
    gate.close(call="pread")
    side.send(claim(put_object(daemon, b"payload")))
    consumer = Consumer(daemon, side.queue)
    consumer.channel.send("basic.cancel", consumer_tag=consumer.tag)
    consumer.channel.expect("basic.cancel-ok", timeout=60)
    assert "delivery held" in daemon.wait_log(".*has not answered for.*").group(0)
    side.wait_count(1)


def test_a_store_that_is_slow_is_not_silent(silent, gate):
    """Each piece of a large object takes its time, all of it longer than hold_max."""
    daemon, side = silent({"consume": {"hold_max": "1s"}})
    body = body_of(4 << 20)
    gate.delay(call="pread", milliseconds=1000)
    side.send(claim(put_object(daemon, body)))
    assert Consumer(daemon, side.queue).deliver(timeout=120).body == body
    assert not side.exists(side.parked)
