"""What tests of routing slips share: pipelines on the broker, and the headers of the two forms of a slip.

    line = slips.Line(broker.channel(), "fulfilment.1", "validate", "reserve", "dispatch")
    daemon = bellhop({"pipelines": line.config()})
    headers = slips.declared(line.steps, 0)             # or slips.itinerary(*line.stops())
"""

import json
import uuid

from .amqp import Typed, decode_table
from .rabbitmq import wait_until  # noqa: F401

ROUTE, POSITION, RUN, ITINERARY = "x-acemq-route", "x-acemq-route-position", "x-acemq-route-id", "acemq-routing-slip"
SHORT_LIVED = {"x-expires": Typed("l", 120000)}


class Line:
    """A pipeline by proto/README.md, "Pipeline": exchange P, and for each step s a queue P.s bound with key s. Queues expire by themselves."""

    def __init__(self, channel, name, *steps, queues=True):
        self.name, self.steps = name, list(steps)
        channel.call("exchange.declare", exchange=name, type="direct", durable=True)
        for step in self.steps if queues else ():
            channel.call("queue.declare", queue=self.queue(step), durable=True, arguments=SHORT_LIVED)
            channel.call("queue.bind", queue=self.queue(step), exchange=name, routing_key=step)

    def queue(self, step):
        return f"{self.name}.{step}"

    def config(self):
        return {self.name: {"steps": self.steps}}

    def stops(self, *steps):
        return [stop(self.name, step, step) for step in steps or self.steps]


def stop(exchange, key, name=None, completed=None, **unknown):
    out = {"exchange": exchange, "routingKey": key}
    if name:
        out["name"] = name
    if completed:
        out["completedAt"] = completed
    return {**out, **unknown}


def itinerary(*steps, done=(), **unknown):
    """The header of a carried itinerary, as compact as libraries write it."""
    root = {"steps": list(steps)}
    if done:
        root["done"] = list(done)
    return {ITINERARY: json.dumps({**root, **unknown}, separators=(",", ":"))}


def declared(steps, position=0, run=None):
    """The three headers of a declared route."""
    return {ROUTE: ",".join(steps), POSITION: Typed("l", position), RUN: run or str(uuid.uuid4())}


def short_lived(channel, queue, **arguments):
    """Declares a queue that expires by itself."""
    channel.call("queue.declare", queue=queue, arguments={**SHORT_LIVED, **arguments})
    return queue


def confirming(client):
    """A channel in confirm mode."""
    channel = client.channel()
    channel.call("confirm.select")
    return channel


def hop(channel, delivery, body, key="", ack=True, headers=None, **properties):
    """What a worker does: its result to bellhop.next, with the headers that it received, and its input's tag."""
    copied = decode_table(delivery.headers_raw, typed=True)
    if ack:
        copied["bellhop-ack"] = Typed("l", delivery.delivery_tag)
    channel.publish("bellhop.next", key, body, headers={**copied, **(headers or {})}, **properties)
