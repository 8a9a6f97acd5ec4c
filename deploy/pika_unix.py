"""pika over a Unix socket. pika opens TCP connections only; this hands its event loop a connected Unix socket instead.

    connection = pika_unix.connect("/run/bellhop/bellhop.sock")
"""

import socket

import pika
from pika.adapters.base_connection import _StreamingProtocolShim
from pika.adapters.select_connection import SelectConnection
from pika.adapters.utils.selector_ioloop_adapter import SelectorIOServicesAdapter


def _over(path):
    class UnixConnection(SelectConnection):
        @classmethod
        def create_connection(cls, connection_configs, on_done, custom_ioloop=None, workflow=None):
            loop = SelectorIOServicesAdapter(custom_ioloop)
            sock = socket.socket(socket.AF_UNIX)
            sock.connect(path)
            sock.setblocking(False)
            connection = cls(connection_configs[0], custom_ioloop=loop, internal_connection_workflow=False)
            connection.add_on_open_callback(on_done)
            connection.add_on_open_error_callback(lambda _connection, error: on_done(error))
            loop.create_streaming_connection(lambda: _StreamingProtocolShim(connection), sock,
                                             on_done=lambda result: isinstance(result, Exception) and on_done(result))

    return UnixConnection


def connect(path, **parameters):
    """A BlockingConnection to the Unix socket at `path`; parameters are those of pika.ConnectionParameters."""
    return pika.BlockingConnection(pika.ConnectionParameters(**parameters), _impl_class=_over(path))
