"""A TLS end in front of something that speaks plainly, with whatever certificate a test wants it to have.

    with TlsFront(node.address, identity) as front:
        ... broker url: amqps://{front.address} ...
        front.names      # what clients asked for (SNI), None for those that named nothing
        front.failures   # why handshakes failed, as Python says it
        front.versions   # of the TLS that was agreed on
        front.ends       # how clients ended: "close_notify" or what went wrong

`silent=True` accepts and then says nothing. `options` alters the ssl.SSLContext first. All faults of a Proxy can be had here too.
"""

import socket
import ssl

from .proxy import Proxy


class TlsFront(Proxy):
    scheme = "amqps"

    def __init__(self, target, identity, options=None, silent=False):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(identity.cert, identity.key)
        self.context.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF
        self.context.sni_callback = lambda _socket, name, _context: self.names.append(name)
        if options:
            options(self.context)
        self.silent = silent
        self.names, self.failures, self.versions, self.ends = [], [], [], []
        self.kept = []  # connections to which nothing is said
        super().__init__(target)

    def _greet(self, below):
        if self.silent:
            self.kept.append(below)
            return None
        try:
            wrapped = self.context.wrap_socket(below, server_side=True, suppress_ragged_eofs=False)
        except OSError as error:
            self.failures.append(str(error))
            below.close()
            return None
        self.versions.append(wrapped.version())
        return wrapped

    def _ended(self, direction, sink):
        """TLS ends both ways at once."""
        if direction == "up":
            self.ends.append("close_notify")
        sink.shutdown(socket.SHUT_RDWR)

    def _broken(self, direction, error):
        if direction == "up":
            self.ends.append(str(error))

    def close(self):
        super().close()
        for each in self.kept:
            each.close()
