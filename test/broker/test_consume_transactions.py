"""Consumers on a tx channel, and consumers of streams: where an acknowledgement is not what it is elsewhere."""

from support import amqp
from support.claims import MISSING, Consumer, Marker, Side, body_of, claim, put_object

LATER = "22222222-2222-4333-8444-555555555555"


def tx_consumer(daemon, queue, **options):
    client = amqp.connect(daemon.socket)
    channel = client.channel()
    channel.call("tx.select")
    if "prefetch" in options:
        channel.call("basic.qos", prefetch_count=options["prefetch"])
    channel.call("basic.consume", queue=queue)
    return channel


def test_acks_of_restored_deliveries_count_at_the_commit(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    side.send(*[claim(put_object(daemon, body_of(70_000, n))) for n in range(3)])
    channel = tx_consumer(daemon, side.queue)
    got = [channel.deliver() for _ in range(3)]
    channel.ack(got[0].delivery_tag)
    channel.call("tx.commit")
    channel.ack(got[2].delivery_tag, multiple=True)
    channel.client.abort()
    side.wait_count(2)


def test_acks_that_were_rolled_back_can_be_sent_again(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    side.send(*[claim(put_object(daemon, body_of(70_000, n))) for n in range(3)])
    channel = tx_consumer(daemon, side.queue)
    got = [channel.deliver() for _ in range(3)]
    channel.ack(got[1].delivery_tag, multiple=True)
    channel.call("tx.rollback")
    channel.ack(got[0].delivery_tag)
    channel.ack(got[2].delivery_tag, multiple=True)
    channel.call("tx.commit")
    channel.declare("", exclusive=True)
    channel.client.close()
    assert side.count() == 0


def test_acks_rolled_back_while_a_delivery_is_held_can_be_sent_again(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    channel = tx_consumer(daemon, side.queue)
    side.send(b"one", b"two")
    one, two = channel.deliver(), channel.deliver()
    marker = Marker(daemon)
    marker.remove()
    side.send(claim(LATER))
    daemon.wait_log("delivery held")
    channel.ack(0, multiple=True)
    channel.call("tx.rollback")
    channel.ack(one.delivery_tag)
    channel.ack(0, multiple=True)
    channel.call("tx.commit")
    put_object(daemon, b"late", LATER)
    marker.restore()
    assert channel.deliver().body == b"late"
    channel.client.close()
    side.wait_count(1)
    assert two.delivery_tag == 2


def test_a_park_on_a_tx_channel_acknowledges_the_original_though_nobody_commits(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    side.send(claim(MISSING), b"behind")
    channel = tx_consumer(daemon, side.queue, prefetch=1)
    assert channel.deliver().body == b"behind"
    side.take()
    channel.client.close()
    side.wait_count(1)


def test_a_park_inside_an_open_transaction_outlives_its_rollback(bellhop, broker, name):
    daemon = bellhop()
    side, target = Side(broker, name()), Side(broker, name("target"))
    channel = tx_consumer(daemon, side.queue)
    channel.publish("", target.queue, b"to be rolled back")
    channel.declare("", exclusive=True)
    side.send(claim(MISSING), b"behind")
    assert channel.deliver().body == b"behind"
    channel.call("tx.rollback")
    channel.publish("", target.queue, b"committed")
    channel.call("tx.commit")
    assert target.take(target.queue).body == b"committed"
    assert side.take().body == claim(MISSING)
    channel.client.close()
    side.wait_count(1)
    assert not target.count() and not side.count(side.parked)


def stream(broker, name, *bodies):
    side = Side(broker, name("stream"), arguments={"x-queue-type": "stream"})
    side.send(*bodies)
    return side


def test_a_streams_claims_are_restored_and_a_missing_one_is_skipped_loudly(bellhop, broker, name):
    daemon = bellhop()
    key = put_object(daemon, b"payload")
    side = stream(broker, name, claim(key), claim(MISSING), b"plain", claim(key))
    consumer = Consumer(daemon, side.queue, prefetch=1, arguments={"x-stream-offset": "first"})
    for body in (b"payload", b"plain", b"payload"):
        got = consumer.deliver()
        assert got.body == body and "x-stream-offset" in got.headers
        consumer.ack(got.delivery_tag)
    daemon.wait_log(rf"{MISSING}.*retention")
    daemon.wait_log(r"skipped")
    assert not side.exists(side.parked)
    side.channel.call("queue.delete", queue=side.queue)


def test_a_stream_is_never_rejected_either(bellhop, broker, name):
    daemon = bellhop({"consume": {"undeliverable": "reject"}})
    side = stream(broker, name, claim(MISSING), b"plain")
    consumer = Consumer(daemon, side.queue, prefetch=1, arguments={"x-stream-offset": "first"})
    assert consumer.deliver().body == b"plain"
    side.channel.call("queue.delete", queue=side.queue)
