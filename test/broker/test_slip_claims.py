"""Claims on hops: a large result is offloaded like any publish, and restored at the next step."""

import pytest

from support import amqp, slips
from support.rabbitmq import as_kept

OWN = {"bellhop-claim-key", "bellhop-claim-store", "bellhop-claim-size", "bellhop-claim-xxh128"}
LARGE = bytes(range(256)) * 1200


@pytest.fixture
def above(broker):
    return broker.channel()


@pytest.fixture
def line(above, name):
    line = slips.Line(above, name("line"), "a", "b", "c")
    above.call("exchange.declare", exchange=line.name, type="direct", durable=True)
    slips.short_lived(above, line.queue("full"), **{"x-max-length": 0, "x-overflow": "reject-publish"})
    above.call("queue.bind", queue=line.queue("full"), exchange=line.name, routing_key="full")
    return line


@pytest.fixture
def daemon(bellhop, line, name):
    steps = line.steps + ["full", "nowhere"]
    return bellhop({"pipelines": {line.name: {"steps": steps}, name("ghost"): {"steps": ["ghost"]}}})


@pytest.fixture
def channel(daemon):
    with amqp.connect(daemon.socket) as client:
        yield slips.confirming(client)


def take(channel, queue):
    """The next message of a queue by a consumer on the socket."""
    return channel.get_wait(queue, no_ack=False)


def test_a_large_result_is_a_claim_check_on_the_broker_and_whole_at_the_next_step(daemon, channel, above, line):
    channel.publish("bellhop.next", "", LARGE, headers={"app": 1, **slips.declared(line.steps, 0, "run")})
    channel.expect("basic.ack", delivery_tag=1)
    check = above.get_wait(line.queue("b"), no_ack=False)
    key = check.body[3:].decode()
    assert check.body[:3] == b"\xac\x01\x01" and daemon.object(key) == LARGE
    assert {k: v for k, v in check.headers.items() if k in OWN - {"bellhop-claim-xxh128"}} == {
        "bellhop-claim-key": key, "bellhop-claim-store": "claims", "bellhop-claim-size": len(LARGE)}
    above.send("basic.nack", delivery_tag=check.delivery_tag, requeue=True)
    whole = take(channel, line.queue("b"))
    assert whole.body == LARGE
    assert whole.headers_raw == as_kept(amqp.encode_table({"app": 1, **slips.declared(line.steps, 1, "run")}))


def test_a_large_body_goes_down_the_whole_line_and_each_step_is_an_object_of_its_own(daemon, channel, above, line):
    above.publish(line.name, "a", b"start", headers=slips.declared(line.steps, 0, "run"))
    for tag, step in enumerate(line.steps, 1):
        delivery = take(channel, line.queue(step))
        assert delivery.headers[slips.POSITION] == tag - 1 and not OWN & set(delivery.headers)
        assert delivery.body == (b"start" if tag == 1 else LARGE + b"%d" % (tag - 1))
        slips.hop(channel, delivery, LARGE + b"%d" % tag)
        channel.expect("basic.ack", delivery_tag=tag)
    # The end of the route sends nothing, and so it keeps nothing.
    slips.wait_until(lambda: len(daemon.objects()) == 2, what="two objects")


@pytest.mark.parametrize("body", [b"small", LARGE], ids=["small", "large"])
def test_claim_headers_copied_from_a_claim_do_not_describe_the_result(channel, above, line, body):
    channel.publish("bellhop.next", "", LARGE, headers=slips.declared(line.steps, 0))
    channel.expect("basic.ack", delivery_tag=1)
    check = above.get_wait(line.queue("b"))  # a worker without a bellhop sees them
    assert OWN < set(check.headers)
    channel.publish("bellhop.next", "", body, headers=check.headers_raw)
    channel.expect("basic.ack", delivery_tag=2)
    result = above.get_wait(line.queue("c"))
    names = [name for name in amqp.decode_table(result.headers_raw)]
    if body == LARGE:
        assert result.headers["bellhop-claim-key"] == result.body[3:].decode() != check.headers["bellhop-claim-key"]
        assert result.headers_raw.count(b"bellhop-claim-key") == 1
    else:
        assert not OWN & set(names) and result.body == body


def test_a_result_that_looks_framed_is_escaped(channel, above, line):
    body = b"\xac\x01\x01looks-like-a-key"
    channel.publish("bellhop.next", "", body, headers=slips.declared(line.steps, 0))
    channel.expect("basic.ack", delivery_tag=1)
    raw = above.get_wait(line.queue("b"), no_ack=False)
    assert raw.body == b"\xac\x01\x00" + body
    above.send("basic.nack", delivery_tag=raw.delivery_tag, requeue=True)
    assert take(channel, line.queue("b")).body == body


@pytest.mark.parametrize("to, objects", [("nowhere", 0), ("ghost", 0), ("full", 1)])
def test_the_object_of_a_hop_that_was_not_taken_goes_unless_it_was_a_nack(daemon, channel, line, to, objects):
    channel.publish("bellhop.next", "", LARGE, headers=slips.declared(["a", to], 0))
    channel.expect("basic.nack", delivery_tag=1)
    channel.publish("bellhop.next", "", LARGE, headers=slips.declared(["a", "b"], 0))
    channel.expect("basic.ack", delivery_tag=2)
    slips.wait_until(lambda: len(daemon.objects()) == objects + 1, what="the objects that stay")


def test_a_store_that_takes_nothing_is_a_nack_and_the_input_stays(daemon, channel, above, line):
    above.publish(line.name, "a", b"in", headers=slips.declared(line.steps, 0))
    delivery = take(channel, line.queue("a"))
    (daemon.store_path / ".bellhop-store").unlink()
    slips.hop(channel, delivery, LARGE)
    channel.expect("basic.nack", delivery_tag=1)
    slips.hop(channel, delivery, b"small goes")
    channel.expect("basic.ack", delivery_tag=2)
    assert above.get_wait(line.queue("b")).body == b"small goes"
    assert above.get(line.queue("b")) is None and daemon.objects() == daemon.debris() == []


def test_an_unknown_tag_of_a_large_hop_leaves_no_object(daemon, channel, line):
    channel.publish("bellhop.next", "", LARGE, headers={"bellhop-ack": 5, **slips.declared(line.steps, 0)})
    channel.expect_close(406)
    slips.wait_until(lambda: daemon.objects() == [], what="an empty store")


def test_a_large_result_and_the_ack_of_its_input_keep_their_order(daemon, channel, above, line):
    """The way without bellhop-ack: the hop, then basic.ack. The ack waits until the hop was written."""
    above.publish(line.name, "a", b"in", headers=slips.declared(line.steps, 0))
    delivery = take(channel, line.queue("a"))
    hop = b"".join(channel.publish_frames("bellhop.next", "", LARGE, headers=delivery.headers_raw))
    channel.client.send_raw(hop + amqp.method_frame(channel.number, "basic.ack", delivery_tag=delivery.delivery_tag))
    channel.expect("basic.ack", delivery_tag=1)
    assert take(channel, line.queue("b")).body == LARGE
    channel.client.close()
    assert above.get(line.queue("a")) is None
