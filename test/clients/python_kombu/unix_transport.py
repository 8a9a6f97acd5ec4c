"""py-amqp and kombu over a Unix socket. py-amqp opens TCP connections only; this transport opens a Unix socket instead.

    import unix_transport
    kombu.Connection("amqpunix://guest:guest@//", transport_options={"host": "/run/bellhop/bellhop.sock"})
"""

import socket

import amqp
import kombu.transport
from amqp.transport import TCPTransport
from kombu.transport import pyamqp


class _Socket(TCPTransport):
    def __init__(self, path, *args, **kwargs):
        super().__init__("localhost", *args, **kwargs)
        self.path = path

    def _connect(self, host, port, timeout):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(timeout)
        self.sock.connect(self.path)

    def _set_socket_options(self, settings):
        pass  # they are TCP's


class Connection(pyamqp.Connection):
    def Transport(self, host, connect_timeout, ssl=False, read_timeout=None, write_timeout=None, **_):
        return _Socket(host, connect_timeout=connect_timeout, read_timeout=read_timeout, write_timeout=write_timeout)


class Transport(pyamqp.Transport):
    Connection = Connection


kombu.transport.TRANSPORT_ALIASES["amqpunix"] = f"{__name__}:Transport"
