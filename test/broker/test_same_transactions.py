"""Transactions: publishes and acknowledgements are done together at a commit and undone together at a rollback, with offloaded bodies too."""

import pytest

from support.publishing import pattern
from support.rabbitmq import wait_until


def ready(probe, queue):
    return probe.call("queue.declare", queue=queue, passive=True).message_count


def two_queues(run, ch, size):
    """A queue with three messages that a transaction may acknowledge, and one that it may publish to."""
    ch.call("queue.declare", queue=run.name("in"), arguments={"x-expires": 60000})
    ch.call("queue.declare", queue=run.name("out"), arguments={"x-expires": 60000})
    filler = ch.client.channel()
    filler.call("confirm.select")
    for n in range(3):
        filler.publish("", run.name("in"), pattern(size, n))
    filler.confirms(3)
    filler.close()
    return run.name("in"), run.name("out")


@pytest.mark.parametrize("size", [5, 200_000])
@pytest.mark.parametrize("end", ["tx.commit", "tx.rollback", "channel.close", "connection.close", "the socket", "an error"])
def test_publishes_and_acks_are_done_or_undone_together(same, size, end):
    @same
    def program(run):
        watch = run.direct().channel()
        ch = run.channel()
        source, target = two_queues(run, ch, size)
        ch.call("tx.select")
        got = [ch.get_wait(source, no_ack=False) for _ in range(3)]
        ch.publish("", target, pattern(size, 7))
        ch.ack(got[0].delivery_tag)
        ch.publish("", run.name("nobody"), pattern(size, 8), mandatory=True)
        ch.send("basic.nack", delivery_tag=got[1].delivery_tag, requeue=False)
        ch.publish("", target, pattern(size, 9))
        ch.call("queue.declare", queue=target, passive=True)
        run.note("before", ready(watch, target))
        objects = len(run.daemon.objects()) if run.offloads(size) else 0
        if end.startswith("tx"):
            ch.call(end)
            run.note("after", [ready(watch, target), ready(watch, source)])
            ch.publish("", target, pattern(size, 10))
            ch.call("tx.commit")
            ch.client.close()
        elif end == "channel.close":
            ch.close()
        elif end == "connection.close":
            ch.client.close()
        elif end == "the socket":
            ch.client.abort()
        else:
            ch.send("queue.declare", queue=run.name("nobody"), passive=True)
            ch.expect_close(404)
        back = {"tx.commit": 1}.get(end, 3)
        wait_until(lambda: ready(watch, source) == back, what=f"{back} messages back in their queue")
        for queue in (source, target):
            count = ready(watch, queue)
            run.note(queue, count)
            watch.call("queue.delete", queue=queue)
        if objects:
            # Of what was published in the transaction the three objects are gone, unless it was committed; a returned one is gone anyway.
            kept = objects + {"tx.commit": 0, "tx.rollback": -2}.get(end, -3)
            wait_until(lambda: len(run.daemon.objects()) == kept, what=f"{kept} objects; there are {run.daemon.objects()}")


@pytest.mark.parametrize("size", [5, 200_000])
def test_one_transaction_after_the_other_on_a_channel_that_consumes(same, size):
    @same
    def program(run):
        ch = run.channel()
        source, target = two_queues(run, ch, size)
        ch.call("tx.select")
        ch.call("basic.qos", prefetch_count=1)
        ch.call("basic.consume", queue=source, consumer_tag="c")
        tag = ch.deliver().delivery_tag
        for end in ("tx.rollback", "tx.commit", "tx.rollback", "tx.commit"):
            ch.publish("", target, pattern(size, tag))
            ch.ack(tag)
            ch.call(end)
            if end == "tx.commit":  # a rollback gives the delivery back to the client, to be settled again
                tag = ch.deliver().delivery_tag
        ch.call("basic.cancel", consumer_tag="c")
        for _ in range(2):
            ch.get_wait(target)
        ch.call("queue.declare", queue=target, passive=True)
        ch.call("queue.delete", queue=source)
        ch.call("queue.delete", queue=target)
        run.transcript.apart(ch, "tx.")  # the next delivery and the answer to the commit that made room for it come in any order
