"""What a consumer on bellhop's socket gets for what stands in a queue: payloads for claims and inline frames, all else as it is."""

import uuid

import pytest

from support import amqp
from support.claims import CLAIM, INLINE, Consumer, Side, body_of, claim, put_object
from support.rabbitmq import SMALLEST_FRAME_MAX

KIB = 1024


@pytest.mark.parametrize("form", ["dashed", "hex", "upper"])
def test_a_claim_written_by_an_acemq_library_is_restored(bellhop, broker, name, form):
    daemon = bellhop()
    side = Side(broker, name())
    issued = uuid.uuid4()
    key = put_object(daemon, b"written elsewhere", {"dashed": str(issued), "hex": issued.hex, "upper": str(issued).upper()}[form])
    side.send(claim(key), content_type="application/json", headers={"x-acemq-claim": "the application's", "n": 1})
    consumer = Consumer(daemon, side.queue)
    got = consumer.deliver()
    assert got.body == b"written elsewhere"
    assert got.properties["content_type"] == "application/json"
    assert got.headers == {"x-acemq-claim": "the application's", "n": 1}


@pytest.mark.parametrize("size", [0, 1, 3, 70000, 131064, 131065, 300 * KIB, 2 * KIB * KIB])
def test_an_object_of_any_size_is_restored_for_deliver_get_and_return(bellhop, broker, name, size):
    daemon = bellhop()
    side = Side(broker, name())
    payload = body_of(size)
    key = put_object(daemon, payload)
    side.send(claim(key), claim(key))
    consumer = Consumer(daemon, side.queue, prefetch=1)
    assert consumer.deliver().body == payload
    got = consumer.client.channel().get(side.queue)
    assert got.body == payload and got.message_count == 0
    assert all(n == 131072 - 8 for n in got.body_frames[:-1])


def test_a_returned_large_publish_comes_back_whole_with_the_clients_own_header(bellhop, name):
    daemon = bellhop()
    payload = body_of(200 * KIB)
    client = amqp.connect(daemon.socket)
    channel = client.channel()
    channel.publish("", name("nobody"), payload, mandatory=True, headers={"a": 1}, content_type="text/plain")
    back = channel.wait_for("basic.return")
    assert back.body == payload and back.reply_code == 312
    assert back.properties == {"headers": {"a": 1}, "content_type": "text/plain"}


@pytest.mark.parametrize("store", ["filesystem", None])
def test_an_inline_frame_is_stripped_with_a_store_and_without(bellhop, broker, name, store):
    daemon = bellhop(store=store)
    side = Side(broker, name())
    big = body_of(300 * KIB)
    bodies = [b"", b"x", b"xyz", b"\xac\x01\x00 again", CLAIM + b"looks like one", big]
    side.send(*[INLINE + body for body in bodies])
    consumer = Consumer(daemon, side.queue)
    assert consumer.bodies(len(bodies)) == bodies


@pytest.mark.parametrize("frame_max", [SMALLEST_FRAME_MAX, 131072])
def test_the_frames_of_a_stripped_body_are_full_as_rabbitmqs_are(bellhop, broker, name, frame_max):
    # Some client libraries count a body's frames by its size.
    daemon = bellhop({"claim_check": {"threshold": "1MiB"}})
    side = Side(broker, name())
    full = frame_max - 8
    bodies = [body_of(n) for n in (full - 4, full - 3, full - 2, full, full + 1, 2 * full - 3, 2 * full - 2, 2 * full, 3 * full + 5)]
    side.send(*[INLINE + body for body in bodies])
    consumer = Consumer(daemon, side.queue, frame_max=frame_max)
    for body in bodies:
        got = consumer.deliver()
        assert got.body == body
        assert got.body_frames == [full] * (len(body) // full) + ([len(body) % full] if len(body) % full else [])


@pytest.mark.parametrize("store", ["filesystem", None])
def test_what_is_not_framed_reaches_the_application_whole(bellhop, broker, name, store):
    daemon = bellhop(store=store)
    side = Side(broker, name())
    bodies = [b"", b"\xac", b"\xac\x01", b"\xac\x01\x02", b"\xac\x01\x09 nine", b"\xac\x02\x00 other version", b"\xac\x02\x01key",
              b"{}", body_of(100 * KIB)]
    side.send(*bodies)
    consumer = Consumer(daemon, side.queue)
    assert consumer.bodies(len(bodies)) == bodies
    side.send(*bodies)
    channel = consumer.client.channel()
    consumer.channel.call("basic.cancel", consumer_tag=consumer.tag)


def test_claim_headers_are_stripped_when_their_key_is_the_bodys_and_stay_when_it_is_not(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    key, other = put_object(daemon, b"payload"), put_object(daemon, b"other")
    own = {"bellhop-claim-key": key, "bellhop-claim-store": "claims", "bellhop-claim-size": 7}
    side.send(claim(key), headers={"before": 1, **own, "after": "x"})
    copied = {"bellhop-claim-key": other, "bellhop-claim-size": 999, "bellhop-claim-xxh128": "0" * 32, "mine": True}
    side.send(claim(key), headers=copied)
    side.send(b"plain", headers=copied)
    consumer = Consumer(daemon, side.queue)
    first, second, third = consumer.deliver(), consumer.deliver(), consumer.deliver()
    assert first.body == b"payload" and first.headers == {"before": 1, "after": "x"}
    assert second.body == b"payload" and second.headers == copied
    assert third.body == b"plain" and third.headers == copied


def test_headers_of_every_type_pass_a_restore_byte_for_byte(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    key = put_object(daemon, b"payload")
    typed = {f"h-{t}": amqp.Typed(t, v) for t, v in
             [("b", -1), ("B", 200), ("s", -300), ("u", 60000), ("I", -70000), ("i", 4000000000), ("l", -2**40), ("f", 0.5),
              ("d", 0.25), ("T", 1700000000), ("V", None), ("x", b"\0\1"), ("t", True), ("F", {"in": [1, "two"]})]}
    table = amqp.encode_table(typed)
    side.send(claim(key), headers=table)
    direct = side.channel.get_wait(side.queue, no_ack=False)
    side.channel.send("basic.nack", delivery_tag=direct.delivery_tag, requeue=True)
    consumer = Consumer(daemon, side.queue)
    got = consumer.deliver()
    assert got.body == b"payload" and got.headers_raw == direct.headers_raw


def test_a_message_offloaded_by_one_session_is_handed_over_as_it_was_published(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    payload = body_of(100 * KIB)
    client = amqp.connect(daemon.socket)
    channel = client.channel()
    channel.call("confirm.select")
    channel.publish("", side.queue, payload, headers={"a": 1}, message_id="m", delivery_mode=1)
    channel.expect("basic.ack")
    [key] = daemon.objects()
    consumer = Consumer(daemon, side.queue)
    got = consumer.deliver()
    assert got.body == payload
    assert got.properties == {"headers": {"a": 1}, "message_id": "m", "delivery_mode": 1}
    assert daemon.objects() == [key], "an object outlives its reader"


def test_the_redelivered_flag_and_the_routing_of_a_restored_delivery_are_the_brokers(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    key = put_object(daemon, b"payload")
    side.send(claim(key))
    first = Consumer(daemon, side.queue)
    got = first.deliver()
    assert (got.redelivered, got.exchange, got.routing_key, got.consumer_tag) == (False, "", side.queue, first.tag)
    first.channel.send("basic.nack", delivery_tag=got.delivery_tag, requeue=True)
    again = first.deliver()
    assert again.redelivered and again.body == b"payload"
    first.client.abort()
    third = Consumer(daemon, side.queue).deliver()
    assert third.redelivered and third.body == b"payload"


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_restored_deliveries_of_classic_and_quorum_queues_are_acknowledged(bellhop, broker, name, kind):
    daemon = bellhop()
    side = Side(broker, name(), arguments={"x-queue-type": kind, "x-expires": 120000})
    bodies = [body_of(70 * KIB, n) for n in range(10)]
    side.send(*[claim(put_object(daemon, body)) for body in bodies])
    consumer = Consumer(daemon, side.queue, prefetch=3)
    for body in bodies:
        got = consumer.deliver()
        assert got.body == body
        consumer.ack(got.delivery_tag)
    consumer.client.close()
    assert side.count() == 0


def test_many_claims_and_plain_messages_keep_their_order(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    bodies = [body_of(200 * KIB if n % 7 == 0 else 70 * KIB if n % 3 == 0 else 20, n) for n in range(120)]
    for body in bodies:
        side.send(claim(put_object(daemon, body)) if len(body) > 64 * KIB else INLINE + body if len(body) % 2 else body)
    consumer = Consumer(daemon, side.queue)
    assert consumer.bodies(len(bodies)) == bodies
