"""Frames that came in an earlier read than the rest of their content: what goes out with the next one is still what came in.

A method frame that ends a read is kept until its content header comes. Here each read ends behind one, which the reply on another channel,
sent in the same write, shows to have been taken."""

import pytest

from support import amqp

KEY = "00000000-0000-4000-8000-000000000001"


@pytest.fixture
def session(stage):
    here = stage()
    (here.daemon.store_path / KEY).write_bytes(b"the payload")
    return here.client, here.leg


def frames_of(method, body, **arguments):
    return amqp.content_frames(1, amqp.encode_method(method, **arguments), body, {"message_id": "m"})


def read_ends_behind(client, leg, first_frame):
    leg.send_raw(amqp.method_frame(2, "basic.qos-ok") + first_frame)
    client.wait_for("basic.qos-ok", 2)


def test_a_delivery_whose_method_came_before_is_not_touched_by_the_claim_check_behind_it(session):
    client, leg = session
    plain = frames_of("basic.deliver", b"plain", consumer_tag="the first consumer", delivery_tag=1, exchange="e", routing_key="first")
    check = frames_of("basic.deliver", b"\xac\x01\x01" + KEY.encode(), consumer_tag="another consumer", delivery_tag=2, exchange="x",
                      routing_key="second")
    read_ends_behind(client, leg, plain[0])
    leg.send_raw(b"".join(plain[1:] + check))
    first, second = (client.wait_for("basic.deliver", 1) for _ in range(2))
    assert (first.consumer_tag, first.routing_key, first.body) == ("the first consumer", "first", b"plain")
    assert (second.consumer_tag, second.routing_key, second.body) == ("another consumer", "second", b"the payload")


def test_a_delivery_is_whole_when_its_channel_ends_in_the_same_read(session):
    client, leg = session
    client.send(1, "channel.close", reply_code=200)
    leg.wait_for(("channel.close",), 1)
    plain = frames_of("basic.deliver", b"plain", consumer_tag="c" * 200, delivery_tag=1, exchange="e", routing_key="k" * 200)
    read_ends_behind(client, leg, plain[0])
    leg.send_raw(b"".join(plain[1:]) + amqp.method_frame(1, "channel.close-ok"))
    delivered = client.expect("basic.deliver", 1)
    assert (delivered.consumer_tag, delivered.routing_key, delivered.body) == ("c" * 200, "k" * 200, b"plain")
    client.expect("channel.close-ok", 1)


def test_a_publish_whose_method_came_before_is_relayed_whole(session):
    client, leg = session
    options = dict(message_id="m", delivery_mode=2)
    first = client.publish_frames(1, "e", "f" * 200, b"first", **options)
    second = client.publish_frames(1, "e", "s" * 200, b"second", **options)
    client.send_raw(amqp.method_frame(2, "basic.qos", prefetch_count=1) + first[0])
    leg.wait_for("basic.qos", 2)
    client.send_raw(b"".join(first[1:] + second))
    assert [(p.routing_key, p.body) for p in (leg.published(), leg.published())] == [("f" * 200, b"first"), ("s" * 200, b"second")]
