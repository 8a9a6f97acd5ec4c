"""Consumers, prefetch and acknowledgements: deliveries, tags, redeliveries and ends as at RabbitMQ itself."""

import pytest

from support import amqp
from support.rabbitmq import wait_until


def filled(run, ch, count, queue="q", **options):
    """A queue with `count` messages "0", "1", ..."""
    queue = ch.declare(run.name(queue), **(options or {"exclusive": True}))
    filler = run.direct().channel() if not options.get("exclusive", not options) else ch.client.channel()
    filler.call("confirm.select")
    for n in range(count):
        filler.publish("", queue, b"%d" % n, type="t", delivery_mode=1, message_id=f"m{n}")
    filler.confirms(count)
    return queue


def ready(ch, queue):
    return ch.call("queue.declare", queue=queue, passive=True).message_count


@pytest.mark.parametrize("nowait", [False, True])
@pytest.mark.parametrize("no_ack", [False, True])
@pytest.mark.parametrize("tag", ["c", ""])
def test_a_consumers_life(same, nowait, no_ack, tag):
    @same
    def program(run):
        ch = run.channel()
        queue = filled(run, ch, 3)
        ch.send("basic.consume", queue=queue, consumer_tag=tag, no_ack=no_ack, no_local=True, nowait=nowait)
        if not nowait:
            ch.wait_for("basic.consume-ok")
        deliveries = [ch.deliver() for _ in range(3)]
        if not no_ack:
            ch.ack(deliveries[-1].delivery_tag, multiple=True)
        ch.send("basic.cancel", consumer_tag=deliveries[0].consumer_tag, nowait=nowait)
        if not nowait:
            ch.wait_for("basic.cancel-ok")
        ch.call("confirm.select")
        ch.publish("", queue, b"after the cancel")
        ch.confirms(1)
        ch.call("queue.declare", queue=queue, passive=True)
        # The tag is free again.
        ch.call("basic.consume", queue=queue, consumer_tag=tag, no_ack=not no_ack)
        ch.deliver()
        ch.call("basic.cancel", consumer_tag="there is none")
        ch.send("basic.cancel", consumer_tag="there is none", nowait=True)
        ch.call("queue.declare", queue=queue, passive=True)


def test_a_queue_that_is_deleted_cancels_its_consumers(same):
    @same
    def program(run):
        client = run.connect()
        other = client.channel()
        queue = filled(run, other, 2, arguments={"x-expires": 60000})
        ch = client.channel()
        for tag in ("one", "two"):
            ch.call("basic.consume", queue=queue, consumer_tag=tag)
        ch.deliver()
        ch.deliver()
        other.call("queue.delete", queue=queue)
        ended = {ch.wait_for("basic.cancel").consumer_tag for _ in "12"}
        assert ended == {"one", "two"}
        run.transcript.lines[f"{client.label} channel {ch.number}"].sort(key=str)  # in whatever order
        ch.call("basic.consume", queue=ch.declare("", exclusive=True), consumer_tag="one")


def test_a_client_without_the_capability_is_not_told_of_a_cancel(same):
    @same
    def program(run):
        client = run.connect(client_properties={"capabilities": {}})
        ch = client.channel()
        queue = ch.declare(run.name("q"), exclusive=True)
        ch.call("basic.consume", queue=queue, consumer_tag="c")
        ch.call("queue.delete", queue=queue)
        ch.expect_nothing(0.1)


def test_priorities_of_consumers(same):
    @same
    def program(run):
        ch = run.channel()
        queue = ch.declare(run.name("q"), exclusive=True)
        for tag, priority in (("low", -5), ("middle", None), ("high", amqp.Typed("b", 10))):
            one = ch.client.channel()
            one.call("basic.qos", prefetch_count=2)
            one.call("basic.consume", queue=queue, consumer_tag=tag, arguments={} if priority is None else {"x-priority": priority})
        ch.call("confirm.select")
        for n in range(6):
            ch.publish("", queue, b"%d" % n)
            ch.confirms(n + 1)
            ch.client.wait_for("basic.deliver")
        ch.publish("", queue, b"nobody has room")
        ch.confirms(7)
        ch.call("queue.declare", queue=queue, passive=True)


def test_exclusive_consumers_and_single_active_ones(same):
    @same
    def program(run):
        ch, second = run.channel(), run.channel()
        queue = filled(run, ch, 1, arguments={"x-expires": 60000})
        ch.call("basic.consume", queue=queue, consumer_tag="mine", exclusive=True)
        ch.deliver()
        second.send("basic.consume", queue=queue, consumer_tag="too late")
        second.expect_close(403)
        ch.call("basic.cancel", consumer_tag="mine")
        single = filled(run, ch, 2, "single", arguments={"x-expires": 60000, "x-single-active-consumer": True})
        ch.call("basic.consume", queue=single, consumer_tag="active")
        third = run.channel()
        third.call("basic.consume", queue=single, consumer_tag="waits")
        ch.deliver()
        ch.deliver()
        ch.close()
        third.deliver()
        third.deliver()


@pytest.mark.parametrize("form", ["each consumer", "whole channel", "both", "each consumer, a new one"])
def test_prefetch(same, form):
    """What comes, and when, while only some is acknowledged."""
    @same
    def program(run):
        ch = run.channel()
        queue = filled(run, ch, 10)
        if form != "whole channel":
            ch.call("basic.qos", prefetch_count=2)
        if form in ("whole channel", "both"):
            ch.call("basic.qos", prefetch_count=3, **{"global": True})
        for tag in ("one", "two"):
            ch.call("basic.consume", queue=queue, consumer_tag=tag)
            count = {"each consumer": 2, "whole channel": 3 if tag == "one" else 0, "both": 2 if tag == "one" else 1}.get(form, 2)
            for _ in range(count):
                last = ch.deliver()
        ch.expect_nothing(0.05)
        ch.ack(last.delivery_tag)
        ch.ack(ch.deliver().delivery_tag)
        ch.deliver()
        ch.expect_nothing(0.05)
        if form == "each consumer, a new one":
            ch.call("basic.qos", prefetch_count=0)
            ch.call("basic.consume", queue=queue, consumer_tag="three")
            for _ in range(4):
                ch.deliver()
        ch.call("queue.declare", queue=queue, passive=True)


@pytest.mark.parametrize("said, left", [
    ([("basic.ack", dict(delivery_tag=1))], 4),
    ([("basic.ack", dict(delivery_tag=3, multiple=True))], 2),
    ([("basic.ack", dict(delivery_tag=0, multiple=True))], 0),
    ([("basic.nack", dict(delivery_tag=2, requeue=True))], 5),
    ([("basic.nack", dict(delivery_tag=2, requeue=False))], 4),
    ([("basic.nack", dict(delivery_tag=3, multiple=True, requeue=True))], 5),
    ([("basic.nack", dict(delivery_tag=0, multiple=True, requeue=False))], 0),
    ([("basic.nack", dict(delivery_tag=0, multiple=True, requeue=True))], 5),
    ([("basic.reject", dict(delivery_tag=5, requeue=True))], 5),
    ([("basic.reject", dict(delivery_tag=5, requeue=False))], 4),
    ([("basic.ack", dict(delivery_tag=2)), ("basic.ack", dict(delivery_tag=2))], 4),
    ([("basic.ack", dict(delivery_tag=2)), ("basic.nack", dict(delivery_tag=2, requeue=True))], 4),
    ([("basic.reject", dict(delivery_tag=2)), ("basic.reject", dict(delivery_tag=2))], 4),
    ([("basic.ack", dict(delivery_tag=5, multiple=True)), ("basic.ack", dict(delivery_tag=3, multiple=True))], 0),
    ([("basic.ack", dict(delivery_tag=6))], 5),
    ([("basic.ack", dict(delivery_tag=2**64 - 1, multiple=True))], 5),
    ([("basic.ack", dict(delivery_tag=2)), ("basic.ack", dict(delivery_tag=0, multiple=True)), ("basic.ack", dict(delivery_tag=0, multiple=True))], 0),
], ids=str)
@pytest.mark.parametrize("way", ["consume", "get"])
def test_acknowledging(same, said, left, way):
    @same
    def program(run):
        watch = run.direct().channel()
        ch = run.channel()
        queue = filled(run, ch, 5, arguments={"x-expires": 60000})
        if way == "consume":
            ch.call("basic.qos", prefetch_count=5)
            ch.call("basic.consume", queue=queue, consumer_tag="c")
            for _ in range(5):
                ch.deliver()
            ch.call("basic.cancel", consumer_tag="c")
        else:
            for _ in range(5):
                ch.get(queue)
        for method, arguments in said:
            ch.send(method, **arguments)
        try:
            ch.call("exchange.declare", exchange="amq.direct", passive=True)
            ch.close()
        except amqp.ChannelClosed:
            pass
        wait_until(lambda: ready(watch, queue) == left, what=f"{left} messages in {queue}")
        while (got := watch.get(queue, no_ack=True)) is not None:
            run.note("left", [got.body, got.redelivered])
        watch.call("queue.delete", queue=queue)


@pytest.mark.parametrize("method", ["basic.recover", "basic.recover-async"])
def test_recover(same, method):
    @same
    def program(run):
        ch = run.channel()
        queue = filled(run, ch, 3)
        ch.call("basic.consume", queue=queue, consumer_tag="c")
        for _ in range(3):
            last = ch.deliver()
        ch.ack(last.delivery_tag - 1)
        ch.send(method, requeue=True)
        if method == "basic.recover":
            ch.wait_for("basic.recover-ok")
        again = [ch.deliver(), ch.deliver()]
        ch.ack(again[-1].delivery_tag, multiple=True)
        ch.ack(last.delivery_tag)  # it was requeued: nobody's any more
        ch.expect_close(406)


@pytest.mark.parametrize("queue_type", ["classic", "quorum"])
def test_requeued_deliveries_come_again_with_their_count(same, queue_type):
    @same
    def program(run):
        ch = run.channel()
        queue = filled(run, ch, 2, durable=True, arguments={"x-queue-type": queue_type})
        ch.call("basic.qos", prefetch_count=1)
        ch.call("basic.consume", queue=queue, consumer_tag="c")
        for _ in range(3):
            ch.send("basic.nack", delivery_tag=ch.deliver().delivery_tag, requeue=True)
        ch.ack(ch.deliver().delivery_tag)
        ch.ack(ch.deliver().delivery_tag)
        ch.call("basic.cancel", consumer_tag="c")
        ch.call("queue.delete", queue=queue)


def test_a_quorum_queues_delivery_limit_and_dead_letters(same):
    @same
    def program(run):
        ch = run.channel()
        dead = ch.declare(run.name("dead"), exclusive=True)
        ch.call("queue.bind", queue=dead, exchange="amq.topic", routing_key=run.name("rejected"))
        queue = filled(run, ch, 1, durable=True, arguments={"x-queue-type": "quorum", "x-delivery-limit": 2, "x-dead-letter-exchange": "amq.topic",
                                                            "x-dead-letter-routing-key": run.name("rejected")})
        ch.call("basic.consume", queue=queue, consumer_tag="c")
        for _ in range(3):
            ch.send("basic.nack", delivery_tag=ch.deliver().delivery_tag, requeue=True)
        ch.call("basic.cancel", consumer_tag="c")
        ch.call("basic.consume", queue=dead, consumer_tag="d")
        ch.deliver()
        ch.call("queue.delete", queue=queue)


def test_streams_are_read_from_every_kind_of_offset(same):
    @same
    def program(run):
        ch = run.channel()
        stream = filled(run, ch, 5, durable=True, arguments={"x-queue-type": "stream"})
        try:
            for tag, offset in (("first", "first"), ("last", "last"), ("second", 2), ("past", amqp.Typed("T", 0)), ("typed", amqp.Typed("s", 3))):
                one = ch.client.channel()
                one.call("basic.qos", prefetch_count=10)
                one.call("basic.consume", queue=stream, consumer_tag=tag, arguments={"x-stream-offset": offset})
                # "last" begins at the last chunk, whose size is the broker's affair.
                for _ in range({"first": 5, "second": 3, "past": 5, "typed": 2}.get(tag, 0)):
                    last = one.deliver()
                if tag != "last":
                    one.ack(last.delivery_tag, multiple=True)
                one.call("basic.cancel", consumer_tag=tag)
                if tag == "last":
                    while one.client.inbox:
                        one.client.inbox.popleft()
                    run.transcript.lines.pop(f"{one.client.label} channel {one.number}")
                one.close()
            later = ch.client.channel()
            later.call("basic.qos", prefetch_count=10)
            later.call("basic.consume", queue=stream, consumer_tag="next", arguments={"x-stream-offset": "next"})
            later.expect_nothing(0.1)
            ch.call("confirm.select")
            ch.publish("", stream, b"news", message_id="m", delivery_mode=1)
            ch.confirms(1)
            later.ack(later.deliver().delivery_tag)
            later.call("basic.cancel", consumer_tag="next")
            for method, arguments in (("basic.consume", {"no_ack": True}), ("basic.consume", {}), ("basic.get", {})):
                bad = run.channel()
                if arguments:
                    bad.call("basic.qos", prefetch_count=1)
                bad.send(method, queue=stream, **arguments)
                try:
                    bad.expect_close()
                except amqp.ConnectionClosed:
                    bad.client.until_closed()
        finally:
            run.direct().channel().call("queue.delete", queue=stream)
