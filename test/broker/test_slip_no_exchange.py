"""Pipelines whose steps are queues alone: the AceMQ Pipelines of .NET declare no exchange and send to queue P.s through the default exchange.
bellhop finds out once a session, by a question that disturbs nobody, and sends its starts and hops there too."""

import pytest

from support import amqp, slips
from support.amqp import Typed
from support.rabbitmq import wait_until


@pytest.fixture
def queues(broker, name):
    """A pipeline of queues without an exchange; its name."""
    pipeline = name("dotnet")
    for step in ("pick", "pack", "ship"):
        slips.short_lived(broker.channel(), f"{pipeline}.{step}")
    return pipeline


def config(pipeline, **more):
    return {"pipelines": {pipeline: {"steps": ["pick", "pack", "ship"]}, **more.pop("pipelines", {})}, **more}


def questions(daemon):
    return daemon.log.count("the broker has no exchange of that name")


def test_hops_go_to_the_queues_in_their_order(bellhop, broker, queues):
    daemon = bellhop(config(queues))
    channel = slips.confirming(amqp.connect(daemon.socket))
    for n in range(20):
        channel.publish("bellhop.next", "", b"%d" % n, headers=slips.declared(["pick", "pack", "ship"], 0, f"run {n}"))
    assert set(channel.confirms(20).values()) == {"ack"}
    above = broker.channel()
    for n in range(20):
        here = above.get_wait(f"{queues}.pack")
        assert (here.exchange, here.routing_key, here.body) == ("", f"{queues}.pack", b"%d" % n)
        assert here.headers[slips.POSITION] == 1 and here.headers[slips.RUN] == f"run {n}"
    assert questions(daemon) == 1


def test_pipelines_with_and_without_one_stand_side_by_side(bellhop, broker, queues, name):
    line = slips.Line(broker.channel(), name("java"), "a", "b")
    channel = slips.confirming(amqp.connect(bellhop(config(queues, pipelines=line.config())).socket))
    for n in range(10):
        channel.publish("bellhop.next", "", b"%d" % n, headers=slips.declared(line.steps if n % 2 else ["pick", "pack"], 0))
    assert set(channel.confirms(10).values()) == {"ack"}
    above = broker.channel()
    assert [above.get_wait(line.queue("b")).body for _ in range(5)] == [b"1", b"3", b"5", b"7", b"9"]
    assert [above.get_wait(f"{queues}.pack").body for _ in range(5)] == [b"0", b"2", b"4", b"6", b"8"]


@pytest.mark.parametrize("size", [0, 10, 100_000])
@pytest.mark.parametrize("carries", [False, True], ids=["fresh", "carried"])
def test_a_slip_starts_in_the_first_steps_queue(bellhop, broker, queues, size, carries):
    daemon = bellhop(config(queues, routes=[{"name": "orders", "match": {"exchange": "orders"}, "slip": {"pipeline": queues}}]))
    channel = slips.confirming(amqp.connect(daemon.socket))
    headers = slips.declared(["pick", "pack"], 1) if carries else {}
    for n in range(3):
        channel.publish("orders", "k", b"x" * size, headers=headers)
    channel.publish("bellhop.route", "orders", b"y" * size, headers=headers)
    assert set(channel.confirms(4).values()) == {"ack"}
    consumer = amqp.connect(daemon.socket).channel()
    for body in (b"x",) * 3 + (b"y",):
        assert consumer.get_wait(f"{queues}.{'pack' if carries else 'pick'}").body == body * size


def test_an_exchange_that_is_declared_later_is_found_when_the_queue_is_gone(bellhop, broker, queues):
    channel = slips.confirming(amqp.connect(bellhop(config(queues)).socket))

    def hop(tag, answer):
        channel.publish("bellhop.next", "", b"%d" % tag, headers=slips.declared(["pick", "pack"], 0))
        channel.expect(answer, delivery_tag=tag)

    hop(1, "basic.ack")
    above = broker.channel()
    above.call("queue.delete", queue=f"{queues}.pack")
    above.call("exchange.declare", exchange=queues, type="direct", durable=True)
    slips.short_lived(above, f"{queues}.elsewhere")
    above.call("queue.bind", queue=f"{queues}.elsewhere", exchange=queues, routing_key="pack")
    hop(2, "basic.nack")
    hop(3, "basic.ack")
    assert above.get_wait(f"{queues}.elsewhere").body == b"3"
    above.call("exchange.delete", exchange=queues)
    slips.short_lived(above, f"{queues}.pack")
    hop(4, "basic.nack")
    hop(5, "basic.ack")
    assert above.get_wait(f"{queues}.pack").body == b"5"


def test_the_question_disturbs_no_transaction_and_no_other_hop(bellhop, broker, queues, name):
    line = slips.Line(broker.channel(), name("java"), "a", "b")
    daemon = bellhop(config(queues, pipelines=line.config()))
    channel = slips.confirming(amqp.connect(daemon.socket))
    out = b""
    for n in range(300):
        slip = slips.declared(["pick", "pack"] if n == 150 else line.steps, 0)
        out += b"".join(channel.publish_frames("bellhop.next", "", b"%d" % n, headers=slip))
    channel.client.send_raw(out)
    assert set(channel.confirms(300).values()) == {"ack"}
    above = broker.channel()
    assert [above.get_wait(line.queue("b")).body for _ in range(299)] == [b"%d" % n for n in range(300) if n != 150]
    assert above.get(line.queue("b")) is None


def test_a_message_without_a_slip_starts_at_the_step_whose_queue_it_came_from(bellhop, broker, queues):
    broker.channel().publish("", f"{queues}.pack", b"by hand", headers={"app": 1})
    channel = slips.confirming(amqp.connect(bellhop(config(queues)).socket))
    channel.call("basic.consume", queue=f"{queues}.pack", consumer_tag="a.long.tag.that.fits.no.small.string")
    got = channel.deliver()
    channel.publish("bellhop.next", "", b"packed", headers={**got.headers, "bellhop-ack": Typed("l", got.delivery_tag)})
    channel.expect("basic.ack", delivery_tag=1)
    here = broker.channel().get_wait(f"{queues}.ship")
    assert here.body == b"packed" and here.headers["app"] == 1
    assert here.headers[slips.ROUTE] == "pick,pack,ship" and here.headers[slips.POSITION] == 2 and len(here.headers[slips.RUN]) == 36
    wait_until(lambda: broker.channel().call("queue.declare", queue=f"{queues}.pack", passive=True).message_count == 0)


@pytest.mark.parametrize("how", ["get", "consume"])
def test_the_queue_that_a_message_came_from_says_the_pipeline_of_a_step_that_two_have(bellhop, broker, queues, name, how):
    other = name("other")
    for step in ("pick", "pack"):
        slips.short_lived(broker.channel(), f"{other}.{step}")
    broker.channel().publish("", f"{other}.pick", b"in", headers=slips.declared(["pick", "pack"], 0))
    channel = slips.confirming(amqp.connect(bellhop(config(queues, pipelines={other: {"steps": ["pick", "pack"]}})).socket))
    if how == "get":
        got = channel.get_wait(f"{other}.pick", no_ack=False)
    else:
        channel.call("basic.consume", queue=f"{other}.pick")
        got = channel.deliver()
    channel.publish("bellhop.next", "", b"out", headers={**got.headers, "bellhop-ack": Typed("l", got.delivery_tag)})
    channel.expect("basic.ack", delivery_tag=1)
    assert broker.channel().get_wait(f"{other}.pack").body == b"out"


def test_steps_have_any_name_and_one_that_the_configuration_no_longer_has_is_still_gone_to(bellhop, broker, name):
    line = slips.Line(broker.channel(), name("line"), "check_stock", "出荷 2", "gone")
    channel = slips.confirming(amqp.connect(bellhop({"pipelines": {line.name: {"steps": ["check_stock", "出荷 2"]}}}).socket))
    channel.publish("bellhop.next", "", b"1", headers=slips.declared(line.steps, 0))
    channel.expect("basic.ack", delivery_tag=1)
    channel.call("basic.consume", queue=line.queue("出荷 2"))
    got = channel.deliver()
    assert got.body == b"1"
    channel.publish("bellhop.next", "", b"2", headers={**got.headers, "bellhop-ack": Typed("l", got.delivery_tag)})
    channel.expect("basic.ack", delivery_tag=2)
    assert broker.channel().get_wait(line.queue("gone")).body == b"2"


def test_an_itinerary_by_queues_is_told_which_setting_it_needs(bellhop, broker, queues):
    daemon = bellhop(config(queues))
    channel = slips.confirming(amqp.connect(daemon.socket))
    channel.publish("bellhop.next", "", b"x", message_id="m1", headers=slips.itinerary(slips.stop("", "here"), slips.stop("", "q.there")))
    channel.expect("basic.nack", delivery_tag=1)
    line = daemon.wait_log(r"publish refused .*").group(0)
    assert 'exchange=bellhop.next' in line and 'message_id=m1' in line
    assert "queue 'q.there', is not among slip.allowed_exchanges: add \"\" there" in line.replace('\\"', '"')


def test_a_hop_beyond_the_end_is_confirmed_and_told(bellhop, queues):
    daemon = bellhop(config(queues))
    channel = slips.confirming(amqp.connect(daemon.socket))
    channel.publish("bellhop.next", "", b"x", headers=slips.declared(["pick", "pack"], 2, "run 7"), message_id="m7")
    channel.expect("basic.ack", delivery_tag=1)
    assert "m7" in daemon.wait_log("run=.?run 7.*").group(0)
