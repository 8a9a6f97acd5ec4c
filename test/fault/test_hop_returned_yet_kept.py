"""An exchange may return a hop and keep it for later (here the bundled x-recent-history): sent again with every try it would come again and again.
One result, and the input is acknowledged with it. An exchange that keeps nothing goes on leaving the input where it is."""

import pytest

from support import amqp, slips
from support.amqp import Typed
from support.rabbitmq import Node, wait_until

pytestmark = pytest.mark.usefixtures("own_rabbit")

LARGE = b"kept all the same " * 8000


@pytest.fixture(scope="module")
def own_rabbit():
    node = Node.start(plugins=["rabbitmq_recent_history_exchange"])
    yield node
    node.stop()


def hop(channel, headers, body, tag, **more):
    channel.publish("bellhop.next", "", body, headers={**headers, **more})
    return channel.wait_for(("basic.ack", "basic.nack")).name


@pytest.mark.parametrize("body", [b"small", LARGE], ids=["small", "large"])
def test_what_the_exchange_keeps_counts_as_sent(bellhop, broker, name, body):
    history, step = name("history"), name("step")
    above = broker.channel()
    above.call("exchange.declare", exchange=history, type="x-recent-history", durable=True)
    slips.short_lived(above, step)
    above.publish("", step, b"input", headers=slips.itinerary(slips.stop("", step), slips.stop(history, "k")))
    daemon = bellhop({"slip": {"allowed_exchanges": [history]}})
    channel = slips.confirming(amqp.connect(daemon.socket))
    channel.call("basic.consume", queue=step)
    got = channel.deliver()
    assert hop(channel, got.headers, body, 1, **{"bellhop-ack": Typed("l", got.delivery_tag)}) == "basic.ack"
    wait_until(lambda: above.call("queue.declare", queue=step, passive=True).message_count == 0, what="the input's acknowledgement")
    slips.short_lived(above, name("late"))
    above.call("queue.bind", queue=name("late"), exchange=history, routing_key="k")
    consumer = amqp.connect(daemon.socket).channel()
    assert consumer.get_wait(name("late")).body == body
    assert consumer.get(name("late")) is None


def test_what_a_direct_exchange_returns_leaves_the_input_where_it_is(bellhop, broker, name):
    direct, step = name("direct"), name("step")
    above = broker.channel()
    above.call("exchange.declare", exchange=direct, type="direct", durable=True)
    slips.short_lived(above, step)
    above.publish("", step, b"input", headers=slips.itinerary(slips.stop("", step), slips.stop(direct, "k")))
    channel = slips.confirming(amqp.connect(bellhop({"slip": {"allowed_exchanges": [direct]}}).socket))
    channel.call("basic.consume", queue=step)
    got = channel.deliver()
    for tag in (1, 2):
        assert hop(channel, got.headers, b"out", tag, **{"bellhop-ack": Typed("l", got.delivery_tag)}) == "basic.nack"
    slips.short_lived(above, name("late"))
    above.call("queue.bind", queue=name("late"), exchange=direct, routing_key="k")
    assert hop(channel, got.headers, b"out", 3, **{"bellhop-ack": Typed("l", got.delivery_tag)}) == "basic.ack"
    assert above.get_wait(name("late")).body == b"out"
    assert above.get(name("late")) is None


def test_a_publish_that_is_returned_and_kept_can_be_read_later(bellhop, broker, name):
    above = broker.channel()
    above.call("exchange.declare", exchange=name("history"), type="x-recent-history", durable=True)
    daemon = bellhop()
    channel = slips.confirming(amqp.connect(daemon.socket))
    channel.publish(name("history"), "k", LARGE, mandatory=True)
    assert channel.expect("basic.return").body == LARGE
    channel.expect("basic.ack", delivery_tag=1)
    slips.short_lived(above, name("late"))
    above.call("queue.bind", queue=name("late"), exchange=name("history"), routing_key="k")
    assert amqp.connect(daemon.socket).channel().get_wait(name("late")).body == LARGE
