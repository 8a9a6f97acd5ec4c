"""Claims as somebody else wrote them: objects put into a store by hand, and messages that stand for them.

    side = Side(broker, name("orders"))             # a queue, and a direct connection to look at it
    key = put_object(daemon, b"payload")            # an object in the daemon's store
    side.send(claim(key))                           # a message on the queue, past bellhop
    consumer = Consumer(daemon, side.queue)         # a client of bellhop that consumes it
    consumer.deliver().body == b"payload"
"""

import os
import pathlib
import uuid

from . import amqp
from .rabbitmq import wait_until

CLAIM = b"\xac\x01\x01"
INLINE = b"\xac\x01\x00"
MISSING = "11111111-2222-4333-8444-555555555555"  # a key that no store has


def claim(key):
    return CLAIM + key.encode()


def body_of(size, seed=0):
    """Bytes that show what was lost or moved: no two neighbouring blocks are alike."""
    block = b"".join(((i * 2654435761 + seed) & 0xFFFFFFFF).to_bytes(4, "big") for i in range(4096))
    return (block * (size // len(block) + 1))[:size]


def put_object(store, payload, key=None):
    """Writes an object as another program would. `store`: a daemon or a folder. Its key."""
    folder = pathlib.Path(getattr(store, "store_path", store))
    key = key or str(uuid.uuid4())
    temporary = folder / f".{key}.unfinished"
    temporary.write_bytes(payload)
    os.rename(temporary, folder / key)
    return key


class Side:
    """A queue on the broker, and a direct channel in confirm mode beside bellhop."""

    def __init__(self, broker, queue, durable=True, arguments=None):
        self.channel = broker.channel()
        self.channel.call("confirm.select")
        self.queue = queue
        self.parked = queue + ".parked"
        self.sent = 0
        self.channel.declare(queue, durable=durable, arguments={"x-expires": 120000} if arguments is None else arguments)

    def send(self, *bodies, queue=None, **properties):
        for body in bodies:
            self.channel.publish("", queue or self.queue, body, **properties)
            self.sent += 1
        self.channel.confirms(self.sent)

    def take(self, queue=None):
        """The next message of a queue (default: the parked one), taken off it."""
        queue = queue or self.parked
        wait_until(lambda: self.exists(queue), 15, f"queue {queue}")
        return self.channel.get_wait(queue)

    def exists(self, queue):
        probe = self.channel.client.channel()
        try:
            probe.call("queue.declare", queue=queue, passive=True)
        except amqp.ChannelClosed as error:
            assert error.code == 404, error
            return False
        probe.close()
        return True

    def count(self, queue=None):
        """Messages that are ready in the queue."""
        return self.channel.call("queue.declare", queue=queue or self.queue, passive=True).message_count

    def wait_count(self, count, queue=None):
        wait_until(lambda: self.count(queue) == count, 15, f"{count} messages in {queue or self.queue}")

    def wait_parked(self, count):
        """So many messages in the parked queue, which may not be there yet."""
        wait_until(lambda: self.exists(self.parked), 15, f"queue {self.parked}")
        self.wait_count(count, self.parked)


class Consumer:
    """A client of bellhop with one channel that consumes one queue."""

    def __init__(self, daemon, queue, no_ack=False, prefetch=0, arguments=None, client=None, **options):
        self.client = client or amqp.connect(daemon.socket, **options)
        self.channel = self.client.channel()
        if prefetch:
            self.channel.call("basic.qos", prefetch_count=prefetch)
        self.tag = self.channel.call("basic.consume", queue=queue, no_ack=no_ack, arguments=arguments).consumer_tag

    def deliver(self, **options):
        return self.channel.deliver(**options)

    def bodies(self, count):
        return [self.deliver().body for _ in range(count)]

    def ack(self, tag, multiple=False):
        self.channel.ack(tag, multiple)


class Marker:
    """Takes a store away and gives it back: without its marker a store that lacks an object is unavailable."""

    def __init__(self, daemon):
        self.path = daemon.store_path / ".bellhop-store"
        self.text = self.path.read_bytes()

    def remove(self):
        self.path.unlink()

    def restore(self):
        self.path.write_bytes(self.text)
