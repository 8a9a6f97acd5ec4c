"""A channel of a client."""

import time

from .errors import DEFAULT_TIMEOUT, TIME_FACTOR, Timeout


class Channel:
    """A channel number with a client: the client's calls without the number."""

    def __init__(self, client, number):
        self.client, self.number = client, number

    def send(self, name, **arguments):
        self.client.send(self.number, name, **arguments)

    def call(self, name, timeout=None, **arguments):
        return self.client.call(self.number, name, timeout=timeout, **arguments)

    def publish(self, exchange, routing_key, body=b"", **options):
        self.client.publish(self.number, exchange, routing_key, body, **options)

    def publish_frames(self, exchange, routing_key, body=b"", **options):
        return self.client.publish_frames(self.number, exchange, routing_key, body, **options)

    def send_frame(self, kind, payload):
        self.client.send_frame(kind, self.number, payload)

    def wait_for(self, name, timeout=None, **match):
        return self.client.wait_for(name, self.number, timeout=timeout, **match)

    def expect(self, name, timeout=None, **match):
        return self.client.expect(name, self.number, timeout=timeout, **match)

    def expect_nothing(self, seconds=0.3):
        self.client.expect_nothing(seconds, self.number)

    def expect_close(self, code=None, timeout=None):
        return self.client.expect_channel_close(self.number, code, timeout)

    def deliver(self, timeout=None, **match):
        """The next basic.deliver."""
        return self.wait_for("basic.deliver", timeout=timeout, **match)

    def get(self, queue, no_ack=False, timeout=None):
        """A basic.get: the get-ok with its content, or None when the queue is empty."""
        event = self.call("basic.get", timeout=timeout, queue=queue, no_ack=no_ack)
        return None if event.name == "basic.get-empty" else event

    def get_wait(self, queue, no_ack=True, timeout=DEFAULT_TIMEOUT):
        """basic.get until there is a message."""
        deadline = time.monotonic() + timeout * TIME_FACTOR
        while True:
            event = self.get(queue, no_ack)
            if event is not None:
                return event
            if time.monotonic() > deadline:
                raise Timeout(f"queue {queue} stayed empty")
            time.sleep(0.02)

    def ack(self, delivery_tag, multiple=False):
        self.send("basic.ack", delivery_tag=delivery_tag, multiple=multiple)

    def declare(self, queue="", **options):
        """Declares a queue and returns its name."""
        return self.call("queue.declare", queue=queue, **options).queue

    def confirms(self, count, timeout=None):
        """Waits until `count` publishes (tags 1 to count, or those not settled by an earlier call) have an outcome.
        Returns {tag: "ack" or "nack"}."""
        settled = self.__dict__.setdefault("_settled", {})
        deadline = self.client._deadline(timeout)
        while len(settled) < count:
            left = max(0.0, deadline - time.monotonic()) / TIME_FACTOR
            event = self.wait_for(("basic.ack", "basic.nack"), timeout=left)
            first = 1 if event.multiple else event.delivery_tag
            for tag in range(first, event.delivery_tag + 1):
                assert event.multiple or tag not in settled, f"tag {tag} was settled twice"
                settled.setdefault(tag, event.name[len("basic."):])
        return dict(settled)

    def close(self):
        self.call("channel.close", reply_code=200, reply_text="bye")
