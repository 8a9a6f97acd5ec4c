"""bellhop-ack: a hop and the acknowledgement of its input are one. The input is acknowledged once the hop is confirmed; else it stays the client's."""

import uuid

import pytest

from support import amqp, slips
from support.amqp import Typed
from support.bellhop import Bellhop
from support.proxy import Proxy

TAG = uuid.uuid4().hex[:8]
LINE, GHOST = f"line.{TAG}", f"ghost.{TAG}"
STEPS = ["in", "out", "full", "nowhere"]


def config(rabbit_url):
    return {"broker": {"url": rabbit_url}, "pipelines": {LINE: {"steps": STEPS}, GHOST: {"steps": ["ghost"]}}}


@pytest.fixture(scope="module")
def daemon(rabbit):
    with Bellhop(config(rabbit.url)) as running:
        yield running


@pytest.fixture
def above(broker):
    """A channel of the broker's, where `in` and `out` are empty queues, `full` takes nothing, `nowhere` has no queue and `ghost` no exchange."""
    channel = broker.channel()
    line = slips.Line(channel, LINE, "in", "out")
    slips.short_lived(channel, line.queue("full"), **{"x-max-length": 0, "x-overflow": "reject-publish"})
    channel.call("queue.bind", queue=line.queue("full"), exchange=LINE, routing_key="full")
    for step in ("in", "out"):
        channel.call("queue.purge", queue=line.queue(step))
    return channel


def queue(step):
    return f"{LINE}.{step}"


def feed(above, to, count=1):
    """Messages whose slip leads from `in` to that step."""
    for number in range(1, count + 1):
        above.publish(LINE, "in", b"%d" % number, headers=slips.declared(["in", to], 0), message_id=f"id-{number}")
    slips.wait_until(lambda: above.call("queue.declare", queue=queue("in"), passive=True).message_count == count, what="the inputs")


def work(daemon, count=1, confirm=True, address=None):
    """A channel with so many deliveries of `in`, none acknowledged."""
    channel = amqp.connect(address or daemon.socket).channel()
    if confirm:
        channel.call("confirm.select")
    channel.call("basic.consume", queue=queue("in"), consumer_tag="c")
    return channel, [channel.deliver() for _ in range(count)]


def hop_frames(channel, delivery, body=b"result", key="", **properties):
    headers = amqp.decode_table(delivery.headers_raw, typed=True)
    headers["bellhop-ack"] = Typed("l", delivery.delivery_tag)
    return b"".join(channel.publish_frames("bellhop.next", key, body, headers=headers, **properties))


def left(above, channel):
    """The bodies that are in `in` once the client is gone."""
    channel.client.close()
    return drain(above, "in")


def drain(above, step):
    bodies = []
    while (event := above.get(queue(step), no_ack=True)) is not None:
        bodies.append(event.body)
    return bodies


def test_the_input_is_acknowledged_with_its_hop(daemon, above):
    feed(above, "out", 3)
    channel, inputs = work(daemon, 3)
    for delivery in inputs:
        slips.hop(channel, delivery, b"done " + delivery.body)
    assert channel.confirms(3) == {1: "ack", 2: "ack", 3: "ack"}
    assert left(above, channel) == []
    assert drain(above, "out") == [b"done 1", b"done 2", b"done 3"]


def test_at_the_end_of_the_route_the_input_is_acknowledged_too(daemon, above):
    above.publish(LINE, "in", b"last", headers=slips.declared(["in"], 0))
    channel, (delivery,) = work(daemon)
    slips.hop(channel, delivery, b"nobody's")
    channel.expect("basic.ack", delivery_tag=1)
    assert left(above, channel) == []


def test_a_message_got_with_basic_get_is_an_input_as_well(daemon, above):
    feed(above, "out")
    channel = slips.confirming(amqp.connect(daemon.socket))
    slips.hop(channel, channel.get(queue("in")), b"got")
    channel.expect("basic.ack", delivery_tag=1)
    assert left(above, channel) == [] and drain(above, "out") == [b"got"]


@pytest.mark.parametrize("tag", [Typed("l", 2), Typed("l", 0), Typed("l", -1), Typed("I", 99), "x", None, Typed("l", 2**62 + 1)], ids=str)
def test_a_tag_that_is_no_unacknowledged_delivery_of_the_channel_closes_it_and_sends_nothing(daemon, above, tag):
    feed(above, "out")
    channel, (delivery,) = work(daemon)
    channel.publish("bellhop.next", "", b"x", headers={**slips.declared(["in", "out"], 0), "bellhop-ack": tag})
    closed = channel.expect_close(406)
    assert "bellhop-ack" in closed.reply_text and (closed.class_id, closed.method_id) == (60, 40)
    assert left(above, channel) == [b"1"] and drain(above, "out") == []


def test_a_tag_of_another_channel_or_one_that_is_settled_is_unknown(daemon, above):
    feed(above, "out", 2)
    channel, (one, two) = work(daemon, 2)
    other = slips.confirming(channel.client)
    slips.hop(other, one, b"x")
    other.expect_close(406)
    channel.ack(1)
    slips.hop(channel, one, b"x")
    channel.expect_close(406)
    assert left(above, channel) == [b"2"] and drain(above, "out") == []


def test_one_input_pays_for_one_hop(daemon, above):
    feed(above, "out")
    channel, (delivery,) = work(daemon)
    channel.client.send_raw(hop_frames(channel, delivery) + hop_frames(channel, delivery))
    channel.wait_for("channel.close", reply_code=406)
    channel.send("channel.close-ok")
    slips.wait_until(lambda: drain(above, "out") == [b"result"], what="the first hop")


@pytest.mark.parametrize("settle", ["basic.ack", "basic.nack", "basic.reject"])
def test_the_input_is_not_the_clients_while_its_hop_is_under_way(daemon, above, settle):
    feed(above, "out")
    channel, (delivery,) = work(daemon)
    channel.client.send_raw(hop_frames(channel, delivery) + amqp.method_frame(channel.number, settle, delivery_tag=1))
    closed = channel.expect_close(406)
    assert closed.reply_text == "PRECONDITION_FAILED - unknown delivery tag 1"
    assert (closed.class_id, closed.method_id) == amqp.METHODS[settle][:2]


@pytest.mark.parametrize("upto", [4, 0])
@pytest.mark.parametrize("step, stays", [("out", []), ("nowhere", [b"2"])])
def test_a_multiple_ack_covers_the_tags_around_a_hop_under_way(daemon, above, upto, step, stays):
    feed(above, step, 4)
    channel, inputs = work(daemon, 4)
    channel.client.send_raw(hop_frames(channel, inputs[1]) + amqp.method_frame(channel.number, "basic.ack", delivery_tag=upto, multiple=True))
    channel.expect("basic.nack" if stays else "basic.ack", delivery_tag=1)
    assert left(above, channel) == stays


# --- a hop that is not taken

@pytest.mark.parametrize("step", ["full", "nowhere"])
@pytest.mark.parametrize("settle", ["basic.ack", "basic.nack"])
def test_after_a_hop_that_was_not_taken_the_input_is_the_clients_again(daemon, above, step, settle):
    feed(above, step)
    channel, (delivery,) = work(daemon)
    slips.hop(channel, delivery, b"x")
    channel.expect("basic.nack", delivery_tag=1, multiple=False)
    channel.send(settle, delivery_tag=delivery.delivery_tag, **({"requeue": True} if settle == "basic.nack" else {}))
    if settle == "basic.nack":
        again = channel.deliver()
        assert (again.body, again.redelivered, again.delivery_tag) == (b"1", True, 2)
    assert left(above, channel) == ([] if settle == "basic.ack" else [b"1"])


def test_a_hop_that_was_not_taken_can_be_tried_again(daemon, above):
    feed(above, "nowhere")
    channel, (delivery,) = work(daemon)
    slips.hop(channel, delivery, b"first")
    channel.expect("basic.nack", delivery_tag=1)
    slips.hop(channel, delivery, b"second", headers=slips.declared(["in", "out"], 0))
    channel.expect("basic.ack", delivery_tag=2)
    assert left(above, channel) == [] and drain(above, "out") == [b"second"]


@pytest.mark.parametrize("size", [0, 5, 200000])
def test_an_unroutable_mandatory_hop_comes_back_as_it_was_published(daemon, above, size):
    feed(above, "nowhere")
    channel, (delivery,) = work(daemon)
    body, headers = b"r" * size, {"bellhop-ack": Typed("l", 1), "mine": [1], **slips.declared(["in", "nowhere"], 0)}
    channel.publish("bellhop.next", LINE, body, mandatory=True, headers=headers, message_id="m", type="t")
    back = channel.expect("basic.return", reply_code=312, reply_text="NO_ROUTE", exchange="bellhop.next", routing_key=LINE)
    assert back.body == body and back.headers_raw == amqp.encode_table(headers)
    assert {k: v for k, v in back.properties.items() if k != "headers"} == {"message_id": "m", "type": "t"}
    channel.expect("basic.nack", delivery_tag=1)
    slips.wait_until(lambda: daemon.objects() == [], what="an empty store")
    assert left(above, channel) == [b"1"]


@pytest.mark.parametrize("step, key, code", [("nowhere", "", 312), ("ghost", GHOST, 312), ("full", "", 541)])
def test_without_confirms_a_hop_that_was_not_taken_closes_the_channel(daemon, above, step, key, code):
    feed(above, step)
    channel, (delivery,) = work(daemon, confirm=False)
    slips.hop(channel, delivery, b"x", key)
    closed = channel.expect_close(code)
    assert "hop" in closed.reply_text and (closed.class_id, closed.method_id) == (60, 40)
    assert left(above, channel) == [b"1"]


@pytest.mark.parametrize("size", [5, 200000])
def test_without_confirms_an_unroutable_mandatory_hop_comes_back_before_the_close_and_leaves_no_object(daemon, above, size):
    channel = amqp.connect(daemon.socket).channel()
    channel.publish("bellhop.next", "", b"x" * size, mandatory=True, headers=slips.declared(["in", "nowhere"], 0))
    assert channel.expect("basic.return", reply_code=312).body == b"x" * size
    channel.expect("channel.close", reply_code=312)
    slips.wait_until(lambda: daemon.objects() == [], what="an empty store")


# --- ends

def test_a_channels_close_waits_for_its_hops(daemon, above):
    feed(above, "out", 20)
    channel, inputs = work(daemon, 20)
    close = amqp.method_frame(channel.number, "channel.close", reply_code=200, reply_text="bye")
    channel.client.send_raw(b"".join(hop_frames(channel, d) for d in inputs) + close)
    channel.wait_for("channel.close-ok")
    assert left(above, channel) == [] and len(drain(above, "out")) == 20


def test_a_connections_close_waits_for_its_hops(daemon, above):
    feed(above, "out", 20)
    channel, inputs = work(daemon, 20)
    channel.client.send_raw(b"".join(hop_frames(channel, d) for d in inputs))
    assert left(above, channel) == [] and len(drain(above, "out")) == 20


def test_hops_of_a_client_that_is_gone_are_finished(daemon, above):
    feed(above, "out", 20)
    channel, inputs = work(daemon, 20)
    channel.client.send_raw(b"".join(hop_frames(channel, d) for d in inputs))
    channel.client.abort()
    slips.wait_until(lambda: above.call("queue.declare", queue=queue("out"), passive=True).message_count == 20, what="the hops")
    slips.wait_until(lambda: above.call("queue.declare", queue=queue("in"), passive=True).consumer_count == 0, what="the end")
    assert drain(above, "in") == []


@pytest.mark.parametrize("end", ["kill", "cut"])
def test_a_hop_whose_confirm_never_came_leaves_its_input_to_be_delivered_again(rabbit, above, end):
    feed(above, "out")
    with Proxy(rabbit.upstream) as proxy, Bellhop(config(proxy.url)) as daemon:
        channel, (delivery,) = work(daemon)
        slips.hop(channel, delivery, b"x")  # opens the private channel
        channel.expect("basic.ack", delivery_tag=1)
        above.publish(LINE, "in", b"2", headers=slips.declared(["in", "out"], 0))
        delivery = channel.deliver()
        proxy.stall("down")
        slips.hop(channel, delivery, b"y")
        slips.wait_until(lambda: above.call("queue.declare", queue=queue("out"), passive=True).message_count == 2, what="the hop")
        if end == "kill":
            daemon.kill()
        proxy.cut()
        again = slips.wait_until(lambda: above.get(queue("in"), no_ack=True), what="the input")
        assert again.redelivered and again.headers[slips.RUN] == delivery.headers[slips.RUN]
    assert drain(above, "out") == [b"x", b"y"]
