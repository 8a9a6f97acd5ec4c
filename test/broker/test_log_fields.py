"""What an operator's tools get of the log as JSON: a field for each thing, so that nothing has to be cut out of a text."""

import json

import pytest

from support import amqp, slips
from support.claims import MISSING, body_of, claim
from support.rabbitmq import wait_until

CLIENT = {**amqp.CLIENT_PROPERTIES, "connection_name": "shop \"one\""}


class Lines:
    def __init__(self, daemon):
        self.daemon = daemon

    def all(self):
        return [json.loads(line) for line in self.daemon.log.splitlines()]

    def wait(self, message, count=1):
        """The lines with that message, once there are so many."""
        def found():
            lines = [line for line in self.all() if line["message"] == message]
            return lines if len(lines) >= count else None
        return wait_until(found, what=f"{count} lines {message!r}")


@pytest.fixture
def logged(bellhop):
    """A daemon that logs as JSON, a client of it with a name, and the daemon's lines."""
    def start(level="debug", **config):
        daemon = bellhop({"log": {"format": "json", "level": level}, "service": "shop", **config})
        client = amqp.connect(daemon.socket, client_properties=CLIENT)
        return daemon, client, Lines(daemon)

    return start


def has(line, **fields):
    assert {key: line.get(key) for key in fields} == fields, line
    return line


def test_an_offload_and_a_restore_are_a_line_each(logged, broker, name):
    daemon, client, lines = logged()
    queue = name()
    broker.channel().declare(queue)
    channel = slips.confirming(client)
    channel.publish("", queue, body_of(100_000), message_id="order-7")
    channel.expect("basic.ack")
    key, = daemon.objects()
    line, = lines.wait("payload offloaded")
    has(line, level="debug", service="shop", session=1, client=CLIENT["connection_name"], channel=channel.number, exchange="", routing_key=queue,
        store="claims", key=key, size=100_000, message_id="order-7")
    consumer = client.channel()
    consumer.call("basic.consume", queue=queue)
    assert consumer.deliver().body == body_of(100_000)
    line, = lines.wait("payload restored")
    has(line, level="debug", session=1, client=CLIENT["connection_name"], channel=consumer.number, queue=queue, store="claims", key=key, size=100_000,
        message_id="order-7", **{"from": "claims"})
    consumer.call("queue.delete", queue=queue)


def test_parks_are_told_once_for_a_queue_and_counted_and_at_debug_each(logged, broker, name):
    daemon, client, lines = logged()
    queue = name()
    direct = broker.channel()
    direct.declare(queue)
    for n in range(5):
        direct.publish("", queue, claim(MISSING), message_id=f"m{n}")
    channel = client.channel()
    channel.call("basic.consume", queue=queue)
    parks = sorted(lines.wait("park confirmed", 5), key=lambda line: line["message_id"])
    for n, line in enumerate(parks):
        has(line, session=1, client=CLIENT["connection_name"], channel=channel.number, queue=queue, key=MISSING, message_id=f"m{n}", size=len(claim(MISSING)))
    line, = lines.wait("message parked")
    has(line, level="warn", queue=queue, key=MISSING, message_id=line["message_id"])
    assert "no such object" in line["reason"]
    client.close()
    daemon.sigterm()
    assert daemon.wait() == 0
    has(lines.wait("message parked", 2)[1], times=4)
    for each in (queue, queue + ".parked"):
        direct.call("queue.delete", queue=each)


def test_hops_are_told_by_their_slip(logged, broker, name):
    line = slips.Line(broker.channel(), name("line"), "pick", "pack")
    daemon, client, lines = logged(pipelines=line.config())
    channel = slips.confirming(client)
    channel.publish("bellhop.next", "", b"result", headers=slips.declared(line.steps, 0, "run-7"), message_id="m1")
    channel.expect("basic.ack")
    told, = lines.wait("hop confirmed")
    has(told, level="debug", session=1, client=CLIENT["connection_name"], channel=channel.number, exchange=line.name, routing_key="pack",
        pipeline=line.name, step="pack", run="run-7", message_id="m1", size=6)
    broker.channel().call("exchange.delete", exchange=line.name)
    channel.publish("bellhop.next", "", b"x" * 100_000, headers=slips.declared(line.steps, 0, "run-8"), message_id="m2")
    channel.expect("basic.nack")
    told, = lines.wait("hop failed")
    has(told, level="warn", session=1, step="pack", run="run-8", message_id="m2", code=404, store="claims")
    assert len(told["key"]) == 36 and "NOT_FOUND" in told["reason"]


def test_a_refused_publish_names_itself(logged, name):
    daemon, client, lines = logged("info")
    channel = slips.confirming(client)
    queue = channel.declare(name(), exclusive=True)
    daemon.store_path.rename(daemon.store_path.with_name("away"))
    for n in range(3):
        channel.publish("", queue, b"x" * 100_000, message_id=f"m{n}")
        channel.expect("basic.nack")
    line, = lines.wait("publish refused")
    has(line, level="warn", session=1, client=CLIENT["connection_name"], channel=channel.number, exchange="", routing_key=queue, message_id="m0",
        size=100_000, store="claims", code=541)
    daemon.store_path.with_name("away").rename(daemon.store_path)
    channel.publish("", queue, b"x" * 100_000)
    channel.expect("basic.ack")
    has(lines.wait("store takes payloads again")[0], store="claims", times=3)
    assert not [each for each in lines.all() if each["level"] == "debug"]


def test_sessions_and_what_they_are_told_have_fields(logged, name):
    daemon, client, lines = logged("info")
    has(lines.wait("session opened")[0], session=1, client=CLIENT["connection_name"], vhost="/", user="guest")
    channel = client.channel()
    channel.send("queue.declare", queue=name("none"), passive=True)
    channel.expect_close(404)
    has(lines.wait("channel closed by the broker")[0], level="info", session=1, channel=channel.number, code=404)
    client.close()
    has(lines.wait("session closed")[0], session=1, client=CLIENT["connection_name"])
