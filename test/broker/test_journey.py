"""The main job end to end: a client's publish to the broker's bytes, and back to the client."""

import pytest

from support import amqp
from support.rabbitmq import version

KIB = 1024


def test_a_small_body_travels_as_it_is_with_its_delivery_mode_and_id_filled_in(bellhop, broker, name):
    daemon = bellhop()
    queue = name()
    client = amqp.connect(daemon.socket)
    channel = client.channel()
    channel.call("queue.declare", queue=queue)
    channel.call("confirm.select")
    channel.publish("", queue, b"hello")
    channel.expect("basic.ack", delivery_tag=1)

    held = broker.channel().get_wait(queue, no_ack=False)
    assert held.body == b"hello"
    assert held.properties["delivery_mode"] == 2
    assert len(held.properties["message_id"]) == 36


@pytest.mark.parametrize("size", [0, 1, 2, 3, 64 * KIB - 1, 64 * KIB, 64 * KIB + 1, 131072 - 8, 131072 - 7, 131072, KIB * KIB, 5 * KIB * KIB])
def test_a_body_of_any_size_comes_back_as_it_was(bellhop, name, size):
    daemon = bellhop()
    queue = name()
    body = (b"0123456789abcdef" * (size // 16 + 1))[:size]
    client = amqp.connect(daemon.socket)
    channel = client.channel()
    channel.call("queue.declare", queue=queue)
    channel.call("confirm.select")
    channel.publish("", queue, body)
    channel.expect("basic.ack", delivery_tag=1)
    channel.call("basic.consume", queue=queue, consumer_tag="c")
    got = channel.deliver()
    assert got.body == body
    assert not any(key.startswith("bellhop-") for key in got.properties.get("headers", {}))
    channel.ack(got.delivery_tag)
    client.close()


@pytest.mark.parametrize("properties", [{}, {"headers": {}}, {"headers": {"a": 1}}], ids=["no table", "an empty table", "a table"])
def test_an_offloaded_message_comes_back_with_the_headers_table_it_had(bellhop, name, properties):
    daemon = bellhop({"stamp": {"delivery_mode": "keep", "message_id": "keep"}})
    queue = name()
    client = amqp.connect(daemon.socket)
    channel = client.channel()
    channel.call("queue.declare", queue=queue)
    channel.publish("", queue, bytes(64 * KIB), **properties)
    got = channel.get_wait(queue)
    assert got.body == bytes(64 * KIB)
    if version() >= (4, 0) and properties == {"headers": {}}:
        properties = {}  # the order of the table, which the broker does not keep, says that there was one
    assert got.properties == properties
    client.close()
