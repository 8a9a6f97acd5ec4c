"""A broker that a test plays itself, frame by frame, for what a real RabbitMQ cannot be made to do.

    with ScriptedBroker(channel_max=100, frame_max=8192) as fake:
        with Bellhop({"broker": {"url": fake.url}}) as daemon:
            connecting = background(lambda: amqp.connect(daemon.socket))
            leg = fake.accept()             # one connection, with the handshake done
            client = connecting.result()
            client.send(1, "channel.open")
            leg.expect("channel.open", 1)
            leg.send(1, "channel.open-ok")

A leg is a frame stream like the client: send, send_raw, send_frame, read_frame, expect, wait_for, next_event, publish parts.
"""

import concurrent.futures
import socket
import threading

from . import amqp

SERVER_PROPERTIES = {"product": "RabbitMQ", "version": "3.10.8", "platform": "scripted",
                     "capabilities": {"publisher_confirms": True, "exchange_exchange_bindings": True, "basic.nack": True,
                                      "consumer_cancel_notify": True, "connection.blocked": True, "consumer_priorities": True,
                                      "authentication_failure_close": True, "per_consumer_qos": True, "direct_reply_to": True}}


def background(function, *args, **kwargs):
    """Runs a function in a thread; .result(timeout) gives its value or raises its exception."""
    future = concurrent.futures.Future()

    def run():
        try:
            future.set_result(function(*args, **kwargs))
        except BaseException as error:  # noqa: BLE001 - it is raised again by result()
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


class Leg(amqp.Peer):
    """The broker's end of one connection."""

    def __init__(self, sock, tune, server_properties, mechanisms):
        super().__init__(sock, frame_max=tune["frame_max"] or 131072)
        self.tune_values = tune
        self.own_properties = server_properties
        self.mechanisms = mechanisms
        self.login = self.tuned = self.opened = None

    def send_start(self):
        """Reads the protocol header and sends connection.start."""
        header = self.read_exactly(8)
        assert header == amqp.PROTOCOL_HEADER, header
        self.send(0, "connection.start", version_major=0, version_minor=9, server_properties=self.own_properties,
                  mechanisms=self.mechanisms, locales="en_US")

    def send_tune(self, **overrides):
        """Waits for start-ok and sends tune."""
        self.login = self.wait_for("connection.start-ok", 0)
        self.send(0, "connection.tune", **{**self.tune_values, **overrides})

    def send_open_ok(self):
        """Waits for tune-ok and open, and sends open-ok."""
        self.tuned = self.wait_for("connection.tune-ok", 0)
        if self.tuned.frame_max:
            self.frame_max = self.tuned.frame_max
        self.opened = self.wait_for("connection.open", 0)
        self.send(0, "connection.open-ok")

    def handshake(self, timeout=None):
        self.send_start()
        self.send_tune()
        self.send_open_ok()
        return self

    def serve_channel(self, channel):
        """Answers the next channel.open of this channel."""
        self.wait_for("channel.open", channel)
        self.send(channel, "channel.open-ok")

    def answer(self, name, channel=None, timeout=None, **reply):
        """Waits for a method and sends its -ok; the method."""
        event = self.wait_for(name, channel, timeout=timeout)
        self.send(event.channel, name + "-ok", **reply)
        return event

    def deliver(self, channel, consumer_tag, delivery_tag, body=b"", exchange="", routing_key="", redelivered=False, split=None,
                **properties):
        method = amqp.encode_method("basic.deliver", consumer_tag=consumer_tag, delivery_tag=delivery_tag, exchange=exchange,
                                    routing_key=routing_key, redelivered=redelivered)
        self.send_raw(b"".join(amqp.content_frames(channel, method, body, properties, self.frame_max, split)))

    def send_return(self, channel, exchange, routing_key, body=b"", code=312, text="NO_ROUTE", properties=None, header=None):
        """Returns a message; `header` may be the header payload that was received."""
        method = amqp.encode_method("basic.return", reply_code=code, reply_text=text, exchange=exchange, routing_key=routing_key)
        frames = amqp.content_frames(channel, method, body, properties or {}, self.frame_max)
        if header is not None:
            frames[1] = amqp.frame(amqp.FRAME_HEADER, channel, header)
        self.send_raw(b"".join(frames))

    def published(self, channel=None, timeout=None):
        """The next basic.publish with its content."""
        return self.wait_for("basic.publish", channel, timeout=timeout)


class ScriptedBroker:
    def __init__(self, channel_max=2047, frame_max=131072, heartbeat=60, server_properties=None, mechanisms="PLAIN AMQPLAIN"):
        self.tune_values = dict(channel_max=channel_max, frame_max=frame_max, heartbeat=heartbeat)
        self.server_properties = SERVER_PROPERTIES if server_properties is None else server_properties
        self.mechanisms = mechanisms
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self.url = f"amqp://{self.address}"
        self.legs = []

    def accept(self, handshake=True, timeout=amqp.DEFAULT_TIMEOUT):
        """Waits for a connection. With handshake=False the test goes through send_start, send_tune, send_open_ok itself."""
        self.listener.settimeout(timeout * amqp.TIME_FACTOR)
        try:
            sock, _ = self.listener.accept()
        except socket.timeout:
            raise amqp.Timeout("bellhop did not connect to the broker") from None
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        leg = Leg(sock, self.tune_values, self.server_properties, self.mechanisms)
        self.legs.append(leg)
        return leg.handshake() if handshake else leg

    def connect(self, address, timeout=amqp.DEFAULT_TIMEOUT, channels=(), **options):
        """Connects a client to bellhop at `address`, plays the broker's side of the handshake and opens channels: (client, leg)."""
        connecting = background(amqp.connect, address, timeout, **options)
        leg = self.accept()
        client = connecting.result(timeout * amqp.TIME_FACTOR)
        for channel in channels:
            client.send(channel, "channel.open")
            leg.serve_channel(channel)
            client.wait_for("channel.open-ok", channel)
        return client, leg

    def close(self):
        self.listener.close()
        for leg in self.legs:
            leg.abort()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
