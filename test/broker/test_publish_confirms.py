"""Outcomes: the client's own tags whatever bellhop refuses, nacks and closes with a reason, and what stays in the store."""

import os

import pytest

from support.amqp import encode_table
from support.publishing import KIB, MIB, count, declare, key_of, pattern, publisher
from support.rabbitmq import SMALLEST_FRAME_MAX, wait_until


def break_store(daemon):
    """A mount that is gone: the marker with it."""
    (daemon.store_path / ".bellhop-store").rename(daemon.folder / "marker")


def mend_store(daemon):
    (daemon.folder / "marker").rename(daemon.store_path / ".bellhop-store")


def test_a_failed_store_nacks_exactly_that_tag_and_later_tags_shift(bellhop, broker, name):
    queue = name()
    direct = declare(broker, queue)
    daemon = bellhop()
    up = publisher(daemon)
    up.channel.publish("", queue, b"1")
    up.channel.expect("basic.ack", delivery_tag=1)
    break_store(daemon)
    up.channel.publish("", queue, pattern(100 * KIB))
    nack = up.channel.expect("basic.nack", delivery_tag=2)
    assert not nack.multiple
    up.channel.publish("", queue, b"3")
    up.channel.expect("basic.ack", delivery_tag=3)
    mend_store(daemon)
    up.channel.publish("", queue, pattern(100 * KIB))
    up.channel.expect("basic.ack", delivery_tag=4)
    assert direct.get_wait(queue).body == b"1"
    assert direct.get_wait(queue).body == b"3"
    key_of(direct.get_wait(queue))
    assert count(direct, queue) == 0


def test_many_publishes_among_refused_ones_get_one_outcome_each(bellhop, broker, name):
    queue = name()
    direct = declare(broker, queue)
    daemon = bellhop()
    up = publisher(daemon)
    break_store(daemon)
    large = {7, 8, 30, 99, 150, 151, 152, 300}
    up.client.send_raw(b"".join(frame for tag in range(1, 301)
                                for frame in up.channel.publish_frames("", queue, pattern(70 * KIB) if tag in large else b"%d" % tag)))
    outcomes = up.channel.confirms(300)
    assert outcomes == {tag: "nack" if tag in large else "ack" for tag in range(1, 301)}
    assert [int(direct.get_wait(queue).body) for _ in range(292)] == [tag for tag in range(1, 301) if tag not in large]
    assert daemon.objects() == []


def test_a_store_that_fails_in_the_middle_of_a_body_refuses_that_publish_alone(bellhop, broker, name):
    queue = name()
    direct = declare(broker, queue)
    daemon = bellhop()
    up = publisher(daemon)
    frames = up.channel.publish_frames("", queue, pattern(2 * MIB))
    up.client.send_raw(b"".join(frames[:8]))
    wait_until(lambda: [link for link in (f"/proc/{daemon.pid}/fd/{fd}" for fd in range(100)) if is_upload(link, daemon)],
               what="an upload under way")
    break_store(daemon)
    up.client.send_raw(b"".join(frames[8:]))
    up.channel.expect("basic.nack", delivery_tag=1)
    assert count(direct, queue) == 0
    mend_store(daemon)
    assert daemon.objects() == daemon.debris() == []


def is_upload(link, daemon):

    try:
        return os.readlink(link).startswith(str(daemon.store_path)) and not os.path.isdir(link)
    except OSError:
        return False


def test_without_confirms_a_failed_store_closes_the_channel_with_541(bellhop, broker, name):
    queue = name()
    direct = declare(broker, queue)
    daemon = bellhop()
    up = publisher(daemon, confirm=False)
    break_store(daemon)
    up.channel.publish("", queue, b"before")
    up.channel.publish("", queue, pattern(100 * KIB))
    up.channel.publish("", queue, b"after")
    closed = up.channel.expect_close(541)
    assert "claims" in closed.reply_text and (closed.class_id, closed.method_id) == (60, 40)
    again = up.client.channel(1)
    again.publish("", queue, b"again")
    assert direct.get_wait(queue).body == b"before"
    assert direct.get_wait(queue).body == b"again"


FULL = SMALLEST_FRAME_MAX - 8 - 14 - 4 - 2 - 5  # a header `x` with so many bytes makes a frame that is full to the last byte
TAGGED = {"routes": [{"name": "tagged", "headers": {"x-tenant": "acme"}}]}  # what the route adds does not fit into such a frame


@pytest.mark.parametrize("size", [10, 70 * KIB])
def test_a_header_that_no_longer_fits_is_nacked_alone(bellhop, broker, name, size):
    queue = name()
    direct = declare(broker, queue)
    daemon = bellhop(TAGGED)
    up = publisher(daemon, frame_max=SMALLEST_FRAME_MAX)
    up.channel.publish("", queue, pattern(size), headers={"x": "y" * FULL})
    up.channel.publish("", queue, b"next")
    assert up.channel.confirms(2) == {1: "nack", 2: "ack"}
    assert direct.get_wait(queue).body == b"next"
    wait_until(lambda: daemon.objects() == [], what="the refused publish's object removed")


@pytest.mark.parametrize("size", [10, 70 * KIB])
def test_without_confirms_a_header_that_no_longer_fits_closes_the_channel_with_311(bellhop, broker, name, size):
    queue = name()
    direct = declare(broker, queue)
    daemon = bellhop(TAGGED)
    up = publisher(daemon, confirm=False, frame_max=SMALLEST_FRAME_MAX)
    up.channel.publish("", queue, pattern(size), headers={"x": "y" * FULL})
    up.channel.expect_close(311)
    up.client.channel(1).publish("", queue, b"next")
    assert direct.get_wait(queue).body == b"next"
    wait_until(lambda: daemon.objects() == [], what="the refused publish's object removed")


@pytest.mark.parametrize("config", [{}, {"stamp": {"message_id": "keep", "delivery_mode": "keep"}}], ids=["nothing fits", "nothing is added"])
@pytest.mark.parametrize("size", [0, 10, 70 * KIB])
def test_a_full_header_passes_without_what_bellhop_would_add(bellhop, broker, name, size, config):
    queue = name()
    direct = declare(broker, queue)
    daemon = bellhop(config)
    up = publisher(daemon, frame_max=SMALLEST_FRAME_MAX)
    table = encode_table({"x": "y" * FULL})
    up.channel.publish("", queue, pattern(size), headers=table)
    up.channel.expect("basic.ack")
    got = direct.get_wait(queue)
    assert got.headers_raw == table and "message_id" not in got.properties and "delivery_mode" not in got.properties
    assert key_of(got) in daemon.objects() if size > 1000 else got.body == pattern(size)


@pytest.mark.parametrize("size", [10, 70 * KIB])
def test_a_full_header_comes_back_as_it_was_published(bellhop, broker, name, size):
    """From a queue through bellhop, and as a return."""
    queue = name()
    declare(broker, queue)
    up = publisher(bellhop(), frame_max=SMALLEST_FRAME_MAX)
    table = encode_table({"x": "y" * FULL})
    up.channel.publish("", queue, pattern(size), headers=table)
    up.channel.publish("", queue + ".none", pattern(size), headers=table, mandatory=True)
    returned = up.channel.wait_for("basic.return")
    assert (returned.body, returned.headers_raw) == (pattern(size), table)
    up.channel.confirms(2)
    got = up.channel.get_wait(queue)
    assert (got.body, got.headers_raw) == (pattern(size), table)


@pytest.mark.parametrize("room, kept", [(1, {"delivery_mode"}), (39, {"delivery_mode", "message_id"})])
def test_what_fits_is_added_the_delivery_mode_first(bellhop, broker, name, room, kept):
    queue = name()
    direct = declare(broker, queue)
    up = publisher(bellhop(), frame_max=SMALLEST_FRAME_MAX)
    up.channel.publish("", queue, b"x", headers={"x": "y" * (FULL - room)})
    up.channel.expect("basic.ack")
    assert direct.get_wait(queue).properties.keys() & {"delivery_mode", "message_id"} == kept


@pytest.mark.parametrize("confirm", [True, False])
def test_a_body_above_message_bytes_closes_the_channel_with_406_before_it_has_come(bellhop, broker, name, confirm):
    queue = name()
    direct = declare(broker, queue)
    daemon = bellhop({"limits": {"message_bytes": "100KiB"}})
    up = publisher(daemon, confirm=confirm)
    up.channel.publish("", queue, pattern(100 * KIB))
    frames = up.channel.publish_frames("", queue, pattern(100 * KIB + 1))
    up.client.send_raw(b"".join(frames[:2]))
    closed = up.channel.wait_for("channel.close")
    assert closed.reply_code == 406 and "102401" in closed.reply_text and "102400" in closed.reply_text
    up.client.send_raw(b"".join(frames[2:]))
    up.channel.send("channel.close-ok")
    up.client.channel(1).call("queue.declare", exclusive=True)
    key_of(direct.get_wait(queue))
    assert count(direct, queue) == 0


@pytest.mark.parametrize("size", [10, 70 * KIB])
def test_a_foreign_user_id_closes_the_channel_with_406_naming_both_after_what_was_sent_before(bellhop, broker, name, size):
    """bellhop is the broker's user here: the broker would not know who set it. Else the broker decides (test_same_logins)."""
    queue = name()
    direct = declare(broker, queue)
    up = publisher(bellhop({"broker": {"username": "guest", "password": "guest"}}), confirm=False)
    up.channel.publish("", queue, pattern(100 * KIB))
    up.channel.publish("", queue, pattern(size), user_id="somebody")
    closed = up.channel.expect_close(406)
    assert "'somebody'" in closed.reply_text and "'guest'" in closed.reply_text
    up.client.channel(1).publish("", queue, b"mine", user_id="guest")
    key_of(direct.get_wait(queue))
    held = direct.get_wait(queue)
    assert held.body == b"mine" and held.properties["user_id"] == "guest"


def test_a_nack_of_one_full_queue_among_two_keeps_the_object_that_the_other_has(bellhop, broker, name):
    full, open_, exchange = name("full"), name("open"), name("fanout")
    direct = declare(broker, full, arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    direct.declare(open_)
    direct.call("exchange.declare", exchange=exchange, type="fanout", auto_delete=True)
    for queue in (full, open_):
        direct.call("queue.bind", queue=queue, exchange=exchange)
    daemon = bellhop()
    up = publisher(daemon)
    for tag, mandatory in ((1, False), (2, True)):
        up.channel.publish(exchange, "", pattern(100 * KIB), mandatory=mandatory)
        up.channel.expect("basic.nack", delivery_tag=tag)
        held = direct.get_wait(open_)
        assert daemon.object(key_of(held)) == pattern(100 * KIB)


def test_the_brokers_own_nacks_and_acks_keep_the_clients_tags(bellhop, broker, name):
    full, queue = name("full"), name()
    declare(broker, full, arguments={"x-max-length": 0, "x-overflow": "reject-publish"}).declare(queue)
    daemon = bellhop()
    up = publisher(daemon)
    break_store(daemon)
    plan = [(full, b"x"), (queue, b"x"), (queue, pattern(70 * KIB)), (full, b"x"), (queue, b"x"), (full, pattern(70 * KIB))] * 20
    for key, body in plan:
        up.channel.publish("", key, body)
    assert up.channel.confirms(120) == {tag: "ack" if (key, body) == (queue, b"x") else "nack" for tag, (key, body) in enumerate(plan, 1)}


def test_refused_publishes_do_not_disturb_confirms_of_another_channel(bellhop, name):
    daemon = bellhop()
    up = publisher(daemon)
    other = up.client.channel()
    other.call("confirm.select")
    queue = other.call("queue.declare", exclusive=True).queue
    break_store(daemon)
    up.channel.publish("", queue, pattern(70 * KIB))
    other.publish("", queue, b"x")
    other.expect("basic.ack", delivery_tag=1)
    up.channel.expect("basic.nack", delivery_tag=1)


def test_confirm_select_in_the_middle_counts_from_there(bellhop, broker, name):
    queue = name()
    declare(broker, queue)
    up = publisher(bellhop(), confirm=False)
    up.channel.publish("", queue, pattern(70 * KIB))
    up.channel.publish("", queue, b"x")
    up.channel.call("confirm.select")
    up.channel.publish("", queue, pattern(70 * KIB))
    up.channel.publish("", queue, b"x")
    assert up.channel.confirms(2) == {1: "ack", 2: "ack"}


def test_a_malformed_header_table_is_never_passed_on_half(bellhop, broker, name):
    """The broker answers 502 or lets it pass, as it does without bellhop; bellhop itself must live."""
    queue = name()
    declare(broker, queue)
    daemon = bellhop({"routes": [{"name": "r", "match": {"routing_key": queue}, "headers": {"a": "b"}}]})
    up = publisher(daemon)
    up.channel.publish("", queue, b"x", headers=b"\x00\x00\x00\x05\x03keyS")
    event = up.client.wait_for(("basic.ack", "basic.nack", "connection.close"))
    assert event.name in ("basic.nack", "connection.close")
    assert publisher(daemon).channel.call("queue.declare", queue=queue, passive=True)
