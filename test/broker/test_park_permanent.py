"""Messages that can never be restored: parked as they were, with the reason, and only then acknowledged (proto/README.md, "Parked message")."""

import os
import uuid

import pytest

from support import amqp
from support.claims import CLAIM, MISSING, Consumer, Side, body_of, claim, put_object
from support.rabbitmq import wait_until


@pytest.mark.parametrize("key", [b"", b"../../etc/passwd", b"/etc/passwd", b".hidden", b"a" * 200, b"nested/key", b"line\n", b"nul\0",
                                 b"upload.partial", b"\xff\xfe", b"a" * 60000])
def test_a_key_no_store_issues_is_parked(bellhop, broker, name, key):
    daemon = bellhop()
    side = Side(broker, name())
    side.send(CLAIM + key)
    consumer = Consumer(daemon, side.queue)
    parked = side.take()
    assert parked.body == CLAIM + key
    assert "is not a key this store issued" in parked.headers["x-acemq-error"]
    assert len(parked.headers["x-acemq-error"].encode(errors="surrogateescape")) <= 1024
    side.send(b"goes on")
    assert consumer.deliver().body == b"goes on"
    consumer.client.close()
    wait_until(lambda: side.count() == 1, 15, "only the unacknowledged one to be left")


def test_a_missing_object_is_parked_with_its_bytes_properties_and_headers(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    headers = {"a": amqp.Typed("s", 5), "x-acemq-error": "an older one", "bellhop-claim-key": MISSING, "bellhop-claim-size": 9}
    side.send(claim(MISSING), headers=headers, content_type="a/b", content_encoding="gzip", priority=3, correlation_id="c",
              reply_to="r", message_id="m", timestamp=1700000000, type="t", app_id="app", cluster_id="cl", delivery_mode=1)
    consumer = Consumer(daemon, side.queue)
    parked = side.take()
    assert parked.body == claim(MISSING)
    reason = parked.headers.pop("x-acemq-error")
    assert MISSING in reason and "retention" in reason
    assert parked.headers == {"a": 5, "bellhop-claim-key": MISSING, "bellhop-claim-size": 9}
    expected = dict(content_type="a/b", content_encoding="gzip", priority=3, correlation_id="c", reply_to="r", message_id="m",
                    timestamp=1700000000, type="t", app_id="app", cluster_id="cl", delivery_mode=2)
    assert {k: v for k, v in parked.properties.items() if k != "headers"} == expected


def test_a_park_keeps_in_headers_what_would_make_it_vanish_spread_or_fail(rabbit, bellhop, broker, name):
    user = name("user").replace(".", "")
    rabbit.add_user(user, "secret")
    try:
        daemon = bellhop()
        copies, hidden = name("copies"), name("hidden")
        side = Side(broker, name())
        for queue in (copies, hidden):
            side.channel.declare(queue, arguments={"x-expires": 120000})
        theirs = amqp.connect(rabbit.address, username=user, password="secret")
        channel = theirs.channel()
        channel.call("confirm.select")
        channel.publish("", side.queue, claim(MISSING), user_id=user, expiration="60000", headers={"CC": [copies], "BCC": [hidden]})
        channel.expect("basic.ack")
        side.take(copies), side.take(hidden)
        theirs.abort()
        consumer = Consumer(daemon, side.queue)
        parked = side.take()
        assert "user_id" not in parked.properties and "expiration" not in parked.properties
        assert parked.headers["bellhop-user-id"] == user
        assert parked.headers["bellhop-expiration"] == "60000"
        assert parked.headers["bellhop-cc"] == [copies]
        assert "CC" not in parked.headers and "BCC" not in parked.headers
        assert parked.properties["delivery_mode"] == 2
        assert side.count(copies) == 0 and side.count(hidden) == 0
    finally:
        rabbit.delete_user(user)


def test_a_parked_queue_is_declared_classic_durable_without_arguments(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    side.send(claim(MISSING))
    consumer = Consumer(daemon, side.queue)
    side.take()
    # Declaring it again with exactly that must be the same queue.
    side.channel.declare(side.parked, durable=True, arguments={"x-queue-type": "classic"})
    side.channel.declare(side.parked, durable=True)


def test_a_size_that_differs_is_parked_with_both_values(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    key = put_object(daemon, b"x" * 1234)
    side.send(claim(key), headers={"bellhop-claim-key": key, "bellhop-claim-size": 4321})
    consumer = Consumer(daemon, side.queue)
    reason = side.take().headers["x-acemq-error"]
    assert "1234" in reason and "4321" in reason and key in reason


@pytest.mark.parametrize("damage", ["flipped", "truncated"])
@pytest.mark.parametrize("size", [70_000, 3 << 20])
def test_a_damaged_object_is_never_begun_and_parked_with_both_checksums(bellhop, broker, name, damage, size):
    daemon = bellhop()
    side = Side(broker, name())
    client = amqp.connect(daemon.socket)
    channel = client.channel()
    channel.call("confirm.select")
    channel.publish("", side.queue, body_of(size))
    channel.expect("basic.ack")
    [key] = daemon.objects()
    path = daemon.store_path / key
    data = bytearray(path.read_bytes())
    if damage == "flipped":
        data[-1] ^= 1
    else:
        del data[-1]
    path.chmod(0o640)
    path.write_bytes(data)
    consumer = Consumer(daemon, side.queue)
    parked = side.take()
    reason = parked.headers["x-acemq-error"]
    if damage == "flipped":
        assert parked.headers["bellhop-claim-xxh128"] in reason and reason.count("XXH3-128") == 1
    else:
        assert str(size) in reason and str(size - 1) in reason
    consumer.client.expect_nothing(0.1)


@pytest.mark.parametrize("kind", ["symlink", "fifo", "directory"])
def test_an_object_that_is_no_regular_file_is_parked(bellhop, broker, name, kind):
    daemon = bellhop()
    side = Side(broker, name())
    secret = daemon.folder / "secret"
    secret.write_text("not for clients")
    path = daemon.store_path / MISSING
    {"symlink": lambda: path.symlink_to(secret), "fifo": lambda: os.mkfifo(path), "directory": path.mkdir}[kind]()
    side.send(claim(MISSING))
    consumer = Consumer(daemon, side.queue)
    assert "regular file" in side.take().headers["x-acemq-error"]


def test_an_exclusive_queue_and_a_server_named_one_park_in_bellhop_parked(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    client = amqp.connect(daemon.socket)
    channel = client.channel()
    exclusive = channel.declare(name("mine"), exclusive=True)
    named = channel.declare("")
    for queue in (exclusive, named):
        channel.call("basic.consume", queue=queue)
        mark = name("mark")
        side.send(claim(MISSING), queue=queue, message_id=mark)
        wait_until(lambda: side.exists("bellhop.parked"), 15, "bellhop.parked")
        while True:  # other tests of the node park there too
            parked = side.channel.get_wait("bellhop.parked", no_ack=True)
            if parked.properties.get("message_id") == mark:
                break
    channel.call("queue.delete", queue=named)


def test_a_full_parked_queue_keeps_nobody_waiting_and_the_message_is_parked_when_there_is_room(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    side.channel.declare(side.parked, durable=True, arguments={"x-max-length": 1, "x-overflow": "reject-publish", "x-expires": 120000})
    side.send(b"in the way", queue=side.parked)
    side.send(claim(MISSING), b"behind it")
    consumer = Consumer(daemon, side.queue)
    assert consumer.deliver().body == b"behind it"
    daemon.wait_log("did not take it")
    consumer.ack(0, multiple=True)
    consumer.channel.declare("", exclusive=True)
    assert side.take().body == b"in the way"
    parked = side.take()
    assert parked.body == claim(MISSING) and "retention" in parked.headers["x-acemq-error"]
    consumer.client.close()
    side.wait_count(0)


def test_a_get_whose_message_cannot_be_parked_is_answered_and_the_next_one_gets_the_next(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    side.channel.declare(side.parked, durable=True, arguments={"x-max-length": 1, "x-overflow": "reject-publish", "x-expires": 120000})
    side.send(b"in the way", queue=side.parked)
    side.send(claim(MISSING), b"behind it")
    channel = amqp.connect(daemon.socket).channel()
    assert channel.get(side.queue) is None
    assert channel.get(side.queue, no_ack=True).body == b"behind it"
    assert side.take().body == b"in the way"
    assert side.take().body == claim(MISSING)
    channel.client.close()
    side.wait_count(0)


def test_undeliverable_reject_drops_into_the_dead_letter_queue(bellhop, broker, name):
    daemon = bellhop({"consume": {"undeliverable": "reject"}})
    dead = Side(broker, name("dead"))
    side = Side(broker, name(), arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead.queue, "x-expires": 120000})
    side.send(claim(MISSING), b"behind it")
    consumer = Consumer(daemon, side.queue)
    assert consumer.deliver().body == b"behind it"
    got = dead.take(dead.queue)
    assert got.body == claim(MISSING) and got.headers["x-death"][0]["reason"] == "rejected"
    assert not side.exists(side.parked)


def test_a_get_of_a_message_that_is_parked_is_answered_empty_after_the_park(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    for no_ack in (False, True):
        side.send(claim(MISSING), b"next")
        channel = amqp.connect(daemon.socket).channel()
        assert channel.get(side.queue, no_ack=no_ack) is None
        assert side.channel.get(side.parked, no_ack=True).body == claim(MISSING)
        assert channel.get(side.queue, no_ack=True).body == b"next"


def test_many_parks_at_once_arrive_each_once(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    keys = [str(uuid.uuid4()) for _ in range(300)]
    side.send(*[claim(key) for key in keys], message_id="the same")
    side.send(b"last")
    consumer = Consumer(daemon, side.queue)
    assert consumer.deliver(timeout=30).body == b"last"
    side.wait_parked(300)
    assert sorted(side.take().body for _ in keys) == sorted(claim(key) for key in keys)


def test_a_message_whose_header_leaves_room_for_a_short_reason_only_is_parked_with_that(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    room = 131072 - 8 - 14 - 4 - len("big") - 1 - 5  # the frame, the fixed header, the table's length, the field's name and lengths
    side.send(claim(MISSING), headers={"big": "x" * (room - 130)})
    consumer = Consumer(daemon, side.queue)
    reason = side.take().headers["x-acemq-error"]
    assert 0 < len(reason) <= 100 and MISSING in reason
    side.send(b"goes on")
    assert consumer.deliver().body == b"goes on"


def test_parking_goes_on_behind_a_deep_backlog_of_plain_messages(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    side.send(claim(MISSING), *[body_of(60_000, n) for n in range(700)])  # 42 MB, no prefetch
    consumer = Consumer(daemon, side.queue)
    assert consumer.bodies(700) == [body_of(60_000, n) for n in range(700)]
    assert side.take().body == claim(MISSING)


def test_large_messages_behind_one_that_is_parked_do_not_keep_the_brokers_answer_away(bellhop, broker, name):
    """The answer to the park stands behind all that the broker had sent before: it has to be read, however much that is."""
    daemon = bellhop()
    side = Side(broker, name())
    side.send(claim(MISSING), *[b"z" * (8 << 20)] * 12)
    consumer = Consumer(daemon, side.queue)
    for _ in range(12):
        assert len(consumer.deliver().body) == 8 << 20
    assert side.take().body == claim(MISSING)
    consumer.client.close()
