"""A broker that blocks its publishers, for lack of memory or of disk: clients are told as by the broker itself, and only those that asked to be."""

import pytest

from support.differential import Differential
from support.rabbitmq import wait_until

ALARMS = {
    "memory": ("rabbit_alarm:set_alarm({{resource_limit, memory, node()}, []}).", "rabbit_alarm:clear_alarm({resource_limit, memory, node()})."),
    "disk": ("rabbit_alarm:set_alarm({{resource_limit, disk, node()}, []}).", "rabbit_alarm:clear_alarm({resource_limit, disk, node()})."),
}
WITHOUT = {"capabilities": {"authentication_failure_close": True}}


@pytest.fixture(scope="module")
def same(own_rabbit):
    with Differential(own_rabbit) as differential:
        yield differential


@pytest.fixture(params=ALARMS)
def alarm(own_rabbit, request):
    raise_it, clear_it = ALARMS[request.param]
    yield lambda on: own_rabbit.eval(raise_it if on else clear_it)
    own_rabbit.eval(clear_it)


def test_who_is_told_and_when(same, alarm):
    @same
    def program(run):
        publisher, idle = run.channel(), run.channel()
        silent = run.channel(client_properties=WITHOUT)
        queue = publisher.declare(run.name("q"), exclusive=True)
        publisher.call("confirm.select")
        alarm(True)
        # A connection is blocked when it publishes, and not before: until then it is not told.
        idle.declare("", exclusive=True)
        publisher.publish("", queue, b"waits")
        publisher.client.wait_for("connection.blocked", 0)
        late = run.connect()
        late.expect_nothing(0.1)
        ch = late.channel()
        ch.call("confirm.select")
        ch.publish("", queue, b"waits too")
        late.wait_for("connection.blocked", 0)
        silent.publish("", queue, b"waits and is not told")
        silent.expect_nothing(0.1)
        alarm(False)
        publisher.client.wait_for("connection.unblocked", 0)
        late.wait_for("connection.unblocked", 0)
        publisher.confirms(1)
        ch.confirms(1)
        wait_until(lambda: publisher.call("queue.declare", queue=queue, passive=True).message_count == 3, what="all three messages")
        run.transcript.apart(publisher, "queue.declare-ok", keep=False)


def test_a_consumer_goes_on_while_publishers_are_blocked(same, alarm):
    @same
    def program(run):
        ch, consumer = run.channel(), run.channel()
        queue = ch.declare(run.name("q"), arguments={"x-expires": 60000})
        ch.call("confirm.select")
        for n in range(3):
            ch.publish("", queue, b"%d" % n)
        ch.confirms(3)
        alarm(True)
        consumer.call("basic.qos", prefetch_count=1)
        consumer.call("basic.consume", queue=queue, consumer_tag="c")
        for _ in range(3):
            consumer.ack(consumer.deliver().delivery_tag)
        consumer.call("queue.declare", queue=queue, passive=True)
        # It is blocked when it publishes, also for a confirmed publish to come: its close is read when the alarm is over.
        ch.publish("", queue, b"3")
        ch.client.wait_for("connection.blocked", 0)
        alarm(False)
        ch.client.wait_for("connection.unblocked", 0)
        ch.confirms(4)
        consumer.ack(consumer.deliver().delivery_tag)
        consumer.call("basic.cancel", consumer_tag="c")
        ch.call("queue.delete", queue=queue)
