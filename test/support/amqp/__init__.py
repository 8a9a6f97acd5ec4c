"""A small AMQP 0-9-1 client for tests that look at bytes.

It hides nothing: a test may stop at any stage of the handshake, send any bytes, split a body as it likes, and gets back the
header and the header table of a message exactly as they were on the wire.

    client = amqp.connect("/run/bellhop.sock")          # or "127.0.0.1:5672", or ("127.0.0.1", 5672)
    ch = client.channel()                               # opens the next free channel
    ch.call("queue.declare", queue="q", exclusive=True)
    ch.call("confirm.select")
    ch.publish("", "q", b"body", headers={"a": 1}, message_id="m")
    ch.wait_for("basic.ack")
    ch.call("basic.consume", queue="q", consumer_tag="c")
    d = ch.deliver()                                    # d.delivery_tag, d.body, d.properties, d.headers_raw
    ch.send("basic.ack", delivery_tag=d.delivery_tag)
    client.close()

Whatever waits has a deadline. A channel.close or connection.close that arrives while a test waits for something else is raised as
ChannelClosed or ConnectionClosed (with .code, .text and .failed_method).

The codec is tables.py, methods.py and frames.py; the client is stream.py, peer.py, client.py and channel.py.
"""

from .channel import Channel
from .client import CLIENT_PROPERTIES, Client, connect
from .errors import (DEFAULT_TIMEOUT, TIME_FACTOR, AmqpError, ChannelClosed, Closed, ConnectionClosed, ProtocolError,
                     SocketClosed, Timeout)
from .frames import (FRAME_BODY, FRAME_END, FRAME_HEADER, FRAME_HEARTBEAT, FRAME_METHOD, HEARTBEAT, PROPERTIES, PROTOCOL_HEADER,
                     Assembler, Event, Frame, content_frames, decode_header, decode_method, encode_header,
                     frame, method_frame)
from .methods import METHOD_NAMES, METHODS, encode_method
from .peer import Peer
from .stream import FrameStream, open_socket
from .tables import Typed, decode_table, encode_table, encode_value, long_string, short_string, sorted_table
