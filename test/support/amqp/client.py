"""A client: one connection, its handshake stage by stage, and its channels."""

from .channel import Channel
from .errors import DEFAULT_TIMEOUT
from .frames import FRAME_HEADER, PROTOCOL_HEADER, content_frames, frame
from .methods import encode_method
from .peer import Peer
from .stream import open_socket
from .tables import as_bytes, encode_table

CLIENT_PROPERTIES = {"product": "test", "capabilities": {"publisher_confirms": True, "consumer_cancel_notify": True,
                                                         "basic.nack": True, "connection.blocked": True,
                                                         "authentication_failure_close": True}}


def _plain(username, password):
    return b"\0" + as_bytes(username) + b"\0" + as_bytes(password)


class Client(Peer):
    """One connection. Use connect(); or make a Client and go through the stages one by one:
    send_header(), start(), start_ok(), tune(), tune_ok(), open()."""

    def __init__(self, address, timeout=DEFAULT_TIMEOUT, **options):
        super().__init__(open_socket(address, timeout), timeout)
        self.options = dict(username="guest", password="guest", mechanism="PLAIN", response=None, vhost="/", locale="en_US",
                            channel_max=None, frame_max=None, heartbeat=0, client_properties=CLIENT_PROPERTIES)
        unknown = set(options) - set(self.options)
        assert not unknown, f"no such option: {sorted(unknown)}"
        self.options.update(options)
        self.channel_max = 2047
        self.server_properties = None
        self.tuned = None
        self._next_channel = 1

    # -- handshake, one stage a call

    def send_header(self):
        self.send_raw(PROTOCOL_HEADER)

    def start(self, timeout=None):
        event = self.wait_for("connection.start", 0, timeout=timeout)
        self.server_properties = event.server_properties
        return event

    def start_ok(self, **overrides):
        o = self.options
        response = o["response"]
        if response is None:
            if o["mechanism"] == "PLAIN":
                response = _plain(o["username"], o["password"])
            elif o["mechanism"] == "AMQPLAIN":
                response = encode_table({"LOGIN": o["username"], "PASSWORD": o["password"]})[4:]
            else:
                response = b""
        arguments = dict(client_properties=o["client_properties"], mechanism=o["mechanism"], response=response,
                         locale=o["locale"])
        arguments.update(overrides)
        self.send(0, "connection.start-ok", **arguments)

    def tune(self, timeout=None):
        self.tuned = self.wait_for("connection.tune", 0, timeout=timeout)
        return self.tuned

    def tune_ok(self, **overrides):
        """Sends the offered values, unless the options or this call say otherwise."""
        o, t = self.options, self.tuned
        arguments = dict(channel_max=t.channel_max if o["channel_max"] is None else o["channel_max"],
                         frame_max=t.frame_max if o["frame_max"] is None else o["frame_max"],
                         heartbeat=t.heartbeat if o["heartbeat"] is None else o["heartbeat"])
        arguments.update(overrides)
        self.frame_max = arguments["frame_max"] or 131072
        self.channel_max = arguments["channel_max"] or 65535
        self.send(0, "connection.tune-ok", **arguments)

    def open(self, vhost=None, timeout=None):
        self.send(0, "connection.open", virtual_host=self.options["vhost"] if vhost is None else vhost)
        return self.wait_for("connection.open-ok", 0, timeout=timeout)

    def handshake(self, timeout=None):
        self.send_header()
        self.start(timeout)
        self.start_ok()
        self.tune(timeout)
        self.tune_ok()
        self.open(timeout=timeout)
        return self

    # -- conveniences

    def publish(self, channel, exchange, routing_key, body=b"", mandatory=False, split=None, body_size=None, header=None,
                method=None, **properties):
        """Publishes in one write. `header` is a whole header payload that replaces the one made of the properties;
        `method` a whole method payload; `headers` may be a dict or the bytes of an encoded table."""
        self.send_raw(b"".join(self.publish_frames(channel, exchange, routing_key, body, mandatory, split, body_size, header,
                                                   method, **properties)))

    def publish_frames(self, channel, exchange, routing_key, body=b"", mandatory=False, split=None, body_size=None, header=None,
                       method=None, **properties):
        """The frames of a publish as a list, for tests that send them one by one."""
        method = method or encode_method("basic.publish", exchange=exchange, routing_key=routing_key, mandatory=mandatory)
        frames = content_frames(channel, method, as_bytes(body), properties, self.frame_max, split, body_size)
        if header is not None:
            frames[1] = frame(FRAME_HEADER, channel, header)
        return frames

    def call(self, channel, name, timeout=None, **arguments):
        """Sends a method and waits for its reply."""
        self.send(channel, name, **arguments)
        reply = ("basic.get-ok", "basic.get-empty") if name == "basic.get" else name + "-ok"
        return self.wait_for(reply, channel, timeout=timeout)

    def channel(self, number=None):
        """Opens a channel (the next number, unless one is given)."""
        if number is None:
            number = self._next_channel
        self._next_channel = max(self._next_channel, number + 1)
        self.call(number, "channel.open")
        return Channel(self, number)

    def close(self, timeout=None):
        """A clean close: connection.close, its reply, and the end of the stream."""
        self.send(0, "connection.close", reply_code=200, reply_text="bye")
        self.wait_for("connection.close-ok", 0, timeout=timeout)
        self.abort()


def connect(address, timeout=DEFAULT_TIMEOUT, **options):
    """A connection with its handshake done."""
    client = Client(address, timeout, **options)
    try:
        return client.handshake()
    except BaseException:
        client.abort()
        raise
