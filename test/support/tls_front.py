"""A TLS end in front of something that speaks plainly, with whatever certificate a test wants it to have.

    with TlsFront(node.address, identity) as front:
        ... broker url: amqps://{front.address} ...
        front.names      # what clients asked for (SNI), None for those that named nothing
        front.failures   # why handshakes failed, as Python says it
        front.versions   # of the TLS that was agreed on
        front.ends       # how clients ended: "close_notify" or what went wrong

`silent=True` accepts and then says nothing. `options` alters the ssl.SSLContext first.
"""

import socket
import ssl
import threading


class TlsFront:
    def __init__(self, target, identity, options=None, silent=False):
        host, _, port = target.rpartition(":")
        self.target = (host, int(port))
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(identity.cert, identity.key)
        self.context.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF
        self.context.sni_callback = lambda _socket, name, _context: self.names.append(name)
        if options:
            options(self.context)
        self.silent = silent
        self.names, self.failures, self.versions, self.ends = [], [], [], []
        self.accepted = 0
        self.sockets = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.url = f"amqps://{self.address}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                below, _ = self.listener.accept()
            except OSError:
                return
            self.accepted += 1
            self.sockets.append(below)
            if not self.silent:
                threading.Thread(target=self._serve, args=(below,), daemon=True).start()

    def _serve(self, raw):
        try:
            below = self.context.wrap_socket(raw, server_side=True, suppress_ragged_eofs=False)
        except (OSError, ssl.SSLError) as error:
            self.failures.append(str(error))
            raw.close()
            return
        self.versions.append(below.version())
        self.sockets.append(below)
        try:
            above = socket.create_connection(self.target, timeout=10)
        except OSError:
            below.close()
            return
        above.settimeout(None)
        self.sockets.append(above)
        threading.Thread(target=self._carry, args=(below, above, self.ends), daemon=True).start()
        self._carry(above, below, [])

    @staticmethod
    def _carry(source, sink, ends):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
            ends.append("close_notify")
        except OSError as error:
            ends.append(str(error))
        try:
            sink.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def cut(self):
        """Every connection ends, without a word of TLS."""
        sockets, self.sockets = self.sockets, []
        for each in sockets:
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        self.cut()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
