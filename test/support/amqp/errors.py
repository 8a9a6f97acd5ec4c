"""What can go wrong with an AMQP peer, and how long a test waits for it."""

import os

# Sanitizer builds and busy machines are slower; every deadline is multiplied by this.
TIME_FACTOR = float(os.environ.get("BELLHOP_TEST_TIME_FACTOR", "1"))
DEFAULT_TIMEOUT = 15.0


class AmqpError(Exception):
    pass


class ProtocolError(AmqpError):
    """The peer broke the protocol (bad frame end, body too long, content interleaved)."""


class Timeout(AmqpError, AssertionError):
    pass


class SocketClosed(AmqpError):
    """The peer closed the socket without the closing methods."""


class Closed(AmqpError):
    """A channel.close or connection.close came: `code`, `text`, and the name of the method that it was for."""

    def __init__(self, method):
        self.method = method
        self.channel = method.channel
        self.code = method.reply_code
        self.text = method.reply_text
        self.failed_method = method.closes
        super().__init__(f"{method.name} {self.code} {self.text!r} (because of {self.failed_method})")


class ChannelClosed(Closed):
    pass


class ConnectionClosed(Closed):
    pass
