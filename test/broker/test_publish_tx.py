"""Transactions: what a commit publishes, what a rollback or the end of the channel leaves behind (nothing)."""

import pytest

from support.gate import Gate
from support.publishing import KIB, count, declare, key_of, pattern, publisher
from support.rabbitmq import wait_until


def transactional(daemon):
    up = publisher(daemon, confirm=False)
    up.channel.call("tx.select")
    return up


def test_a_commit_publishes_small_and_large_in_order(bellhop, broker, name):
    queue = name()
    direct = declare(broker, queue)
    daemon = bellhop()
    up = transactional(daemon)
    for i in range(3):
        up.channel.publish("", queue, pattern(70 * KIB, i))
        up.channel.publish("", queue, b"%d" % i)
    up.channel.call("queue.declare", queue=queue, passive=True)
    assert count(direct, queue) == 0
    up.channel.call("tx.commit")
    for i in range(3):
        assert daemon.object(key_of(direct.get_wait(queue))) == pattern(70 * KIB, i)
        assert direct.get_wait(queue).body == b"%d" % i
    up.client.close()
    assert len(daemon.objects()) == 3


def test_a_rollback_publishes_nothing_and_leaves_no_object(bellhop, broker, name):
    queue = name()
    direct = declare(broker, queue)
    daemon = bellhop()
    up = transactional(daemon)
    up.channel.publish("", queue, pattern(70 * KIB))
    up.channel.publish("", queue, b"small")
    up.channel.call("tx.rollback")
    wait_until(lambda: daemon.objects() == [], what="the removal of the rolled-back publish's object")
    up.channel.publish("", queue, pattern(70 * KIB, 1))
    up.channel.call("tx.commit")
    assert daemon.object(key_of(direct.get_wait(queue))) == pattern(70 * KIB, 1)
    assert count(direct, queue) == 0


@pytest.mark.parametrize("end", ["channel.close", "connection.close", "abort", "404"])
def test_the_objects_of_an_unfinished_transaction_are_removed(bellhop, broker, name, end):
    queue = name()
    direct = declare(broker, queue)
    daemon = bellhop()
    up = transactional(daemon)
    up.channel.publish("", queue, pattern(70 * KIB))
    up.channel.call("queue.declare", queue=queue, passive=True)
    assert len(daemon.objects()) == 1
    if end == "channel.close":
        up.channel.close()
    elif end == "connection.close":
        up.client.close()
    elif end == "abort":
        up.client.abort()
    else:
        up.channel.send("queue.declare", queue=name("missing"), passive=True)
        up.channel.expect_close(404)
    wait_until(lambda: daemon.objects() == [], what="the removal of the unfinished transaction's object")
    assert count(direct, queue) == 0


def test_a_rollback_that_is_not_waited_for_takes_nothing_of_the_next_transaction(bellhop, broker, name):
    """RabbitMQ refuses publishes behind a commit that it is at; behind a rollback they are the next transaction's."""
    queue = name()
    direct = declare(broker, queue)
    daemon = bellhop()
    up = transactional(daemon)
    for i in range(6):
        up.channel.publish("", queue, pattern(70 * KIB, i))
        up.channel.send("tx.rollback")
    up.channel.publish("", queue, pattern(70 * KIB, 99))
    for i in range(6):
        up.channel.wait_for("tx.rollback-ok")
    up.channel.call("queue.declare", queue=queue, passive=True)
    wait_until(lambda: len(daemon.objects()) == 1, what="the open transaction's object alone")
    up.channel.call("tx.commit")
    assert daemon.object(key_of(direct.get_wait(queue))) == pattern(70 * KIB, 99)
    assert count(direct, queue) == 0


def test_acks_of_pipelined_transactions_count_in_their_own(bellhop, broker, name):
    queue = name()
    direct = declare(broker, queue)
    for i in range(3):
        direct.publish("", queue, b"%d" % i)
    up = transactional(bellhop())
    up.channel.call("basic.consume", queue=queue)
    tags = [up.channel.deliver().delivery_tag for _ in range(3)]
    up.channel.ack(tags[0])
    up.channel.send("tx.commit")
    up.channel.ack(tags[1])
    up.channel.send("tx.rollback")
    up.channel.ack(tags[2])
    up.channel.send("tx.commit")
    for answer in ("tx.commit-ok", "tx.rollback-ok", "tx.commit-ok"):
        up.channel.wait_for(answer)
    up.client.close()
    assert direct.get_wait(queue).body == b"1"
    assert count(direct, queue) == 0


def test_a_store_failure_in_a_transaction_closes_the_channel_with_541_and_publishes_nothing_of_it(bellhop, broker, name):
    queue = name()
    direct = declare(broker, queue)
    daemon = bellhop()
    up = transactional(daemon)
    up.channel.publish("", queue, b"small")
    up.channel.publish("", queue, pattern(70 * KIB))
    up.channel.call("queue.declare", queue=queue, passive=True)
    (daemon.store_path / ".bellhop-store").unlink()
    up.channel.publish("", queue, pattern(70 * KIB))
    up.channel.send("tx.commit")
    up.channel.expect_close(541)
    up.client.channel(1).call("queue.declare", queue=queue, passive=True)
    assert count(direct, queue) == 0
    wait_until(lambda: daemon.objects() == [], what="the removal of the closed transaction's object")


def test_a_commit_waits_for_the_uploads_before_it(bellhop, broker, name, tmp_path):
    queue = name()
    direct = declare(broker, queue)
    gate = Gate(tmp_path)
    daemon = bellhop(env=gate.env)
    up = transactional(daemon)
    gate.close()
    up.channel.publish("", queue, pattern(70 * KIB))
    up.channel.send("tx.commit")
    up.channel.expect_nothing(0.1)
    gate.open()
    up.channel.wait_for("tx.commit-ok")
    assert count(direct, queue) == 1


@pytest.mark.parametrize("size", [10, 70 * KIB])
def test_an_unroutable_mandatory_publish_comes_back_at_the_commit_before_its_answer(bellhop, broker, name, size):
    queue = name()
    direct = declare(broker, queue)
    daemon = bellhop()
    up = transactional(daemon)
    up.channel.publish("", name("nobody"), pattern(size), mandatory=True, headers={"a": 1})
    up.channel.publish("", queue, pattern(size))
    up.channel.call("queue.declare", queue=queue, passive=True)
    up.channel.send("tx.commit")
    returned = up.channel.expect("basic.return")
    assert returned.body == pattern(size) and returned.properties == {"headers": {"a": 1}}
    assert returned.routing_key == name("nobody")
    up.channel.expect("tx.commit-ok")
    kept = [key_of(direct.get_wait(queue))] if size > 64 * KIB else []
    wait_until(lambda: daemon.objects() == kept, what="the returned publish's object gone, the routed one's kept")
