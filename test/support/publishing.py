"""What the tests of publishing share: a client with a confirming channel, and a look at what the broker then holds."""

import re
import types

from . import amqp

KIB = 1024
MIB = 1024 * KIB
CLAIM = b"\xac\x01\x01"
INLINE = b"\xac\x01\x00"
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
CLAIM_HEADERS = ["bellhop-claim-key", "bellhop-claim-store", "bellhop-claim-size", "bellhop-claim-xxh128"]


def pattern(size, seed=0):
    """A body of that size, in which a shifted or repeated piece would show."""
    words = b"".join((i * 2654435761 + seed & 0xFFFFFFFF).to_bytes(4, "big") for i in range(min(size, 65536) // 4 + 1))
    return (words * (size // len(words) + 1))[:size]


def key_of(message):
    """The key of a claim that was read off the broker."""
    assert message.body[:3] == CLAIM, f"no claim: {message.body[:50]!r}"
    key = message.body[3:].decode()
    assert UUID.fullmatch(key), key
    return key


def publisher(daemon, confirm=True, **options):
    """A client of the daemon: .client and .channel, in confirm mode."""
    client = amqp.connect(daemon.socket, **options)
    channel = client.channel()
    if confirm:
        channel.call("confirm.select")
    return types.SimpleNamespace(client=client, channel=channel)


def begin_hops(client, count, size=65_000):
    """Publishes to bellhop.next, each on a channel of its own, and each without its last byte."""
    for _ in range(count):
        channel = client.channel()
        channel.call("confirm.select")
        client.send_raw(amqp.frame(1, channel.number, amqp.encode_method("basic.publish", exchange="bellhop.next")) +
                        amqp.frame(2, channel.number, amqp.encode_header(size, {})) +
                        amqp.frame(3, channel.number, b"x" * (size - 1)))


def declare(broker, queue, **options):
    """Declares a queue directly at the broker, on a channel of its own, which is returned."""
    channel = broker.channel()
    channel.declare(queue, **options)
    return channel


def count(channel, queue):
    """How many messages are ready in the queue."""
    return channel.call("queue.declare", queue=queue, passive=True).message_count


def sent_through(daemon, direct, queue, body=b"", exchange="", **properties):
    """Publishes one message through the daemon, waits for its ack, and returns it as the broker has it."""
    up = publisher(daemon)
    up.channel.publish(exchange, queue, body, **properties)
    up.channel.expect("basic.ack", delivery_tag=1)
    up.client.abort()
    return direct.get_wait(queue)
