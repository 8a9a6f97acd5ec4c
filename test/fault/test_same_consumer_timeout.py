"""A delivery that stays unacknowledged for longer than the broker's consumer_timeout: the channel is closed with 406, the message is back in its queue.
The broker looks for such every minute; the node of this test looks every fifth of a second."""

import pytest

from support.differential import Differential


@pytest.fixture(scope="module")
def same(own_rabbit):
    own_rabbit.eval("application:set_env(rabbit, channel_tick_interval, 200), application:set_env(rabbit, consumer_timeout, 500).")
    with Differential(own_rabbit) as differential:
        yield differential


@pytest.mark.parametrize("queue_type", ["classic", "quorum"])
def test_a_consumer_that_does_not_acknowledge_in_time(same, queue_type):
    @same
    def program(run):
        client = run.connect()
        ch, other = client.channel(), client.channel()
        queue = ch.declare(run.name("q"), durable=True, arguments={"x-queue-type": queue_type})
        other.call("confirm.select")
        other.publish("", queue, b"slow")
        other.confirms(1)
        ch.call("basic.consume", queue=queue, consumer_tag="c")
        ch.deliver()
        close = ch.expect_close(406)
        assert "500 ms" in close.reply_text
        other.get_wait(queue, no_ack=False)
        other.call("queue.delete", queue=queue)
        run.transcript.apart(other, "basic.get-empty", keep=False)
