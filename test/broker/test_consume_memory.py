"""What a session holds for its client does not stop the reading of that client: its acknowledgements are what may free it."""

import uuid

import pytest

from support.claims import Consumer, Marker, Side, body_of, claim, put_object


@pytest.mark.parametrize("backlog_bytes", [3 << 20, 12 << 20])
def test_acks_and_publishes_go_on_while_a_long_outage_holds_more_than_the_limit(bellhop, broker, name, backlog_bytes):
    """limits.inflight_bytes is 1 MiB. One channel's backlog behind a payload that cannot be had is far above it; another channel of the
    session consumes one by one, each delivery only after the last one's ack, and publishes with confirms, small and large."""
    daemon = bellhop({"limits": {"inflight_bytes": "1MiB"}})
    marker = Marker(daemon)
    deep, busy = Side(broker, name("deep")), Side(broker, name("busy"))
    key, size = str(uuid.uuid4()), 60_000
    count = backlog_bytes // size
    marker.remove()
    deep.send(claim(key), *[body_of(size, n) for n in range(count)])
    busy.send(*[b"%d" % n for n in range(200)])
    held = Consumer(daemon, deep.queue)
    daemon.wait_log("unavailable|cannot be reached|held")
    deep.wait_count(0)  # all of it was sent to the session

    ch = held.client.channel()
    ch.call("confirm.select")
    ch.call("basic.qos", prefetch_count=1)
    ch.call("basic.consume", queue=busy.queue, consumer_tag="c")
    for n in range(200):
        delivery = ch.deliver()
        assert delivery.body == b"%d" % n
        ch.ack(delivery.delivery_tag)
        if n % 10 == 0:
            ch.publish("", busy.queue + ".results", b"%d" % n)
    assert set(ch.confirms(20).values()) == {"ack"}
    ch.publish("", name("nobody"), b"x" * 50_000, mandatory=True)
    assert ch.wait_for("basic.return").body == b"x" * 50_000

    put_object(daemon, b"late", key)
    marker.restore()
    assert held.bodies(count + 1) == [b"late"] + [body_of(size, n) for n in range(count)]
    held.ack(0, multiple=True)
    held.client.close()
    deep.wait_count(0)
