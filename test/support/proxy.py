"""A small TCP proxy between bellhop and the broker, for the network's faults.

    with Proxy(node.address) as proxy:
        ... broker url: amqp://{proxy.address} ...
        proxy.stall("up")        # nothing more is carried towards the broker; connections stay open
        proxy.stall_new()        # the same for connections that come from now on; those that are there go on
        proxy.resume()
        proxy.delay(0.05)        # each chunk arrives this much later
        proxy.cut()              # every connection is closed (FIN)
        proxy.reset()            # every connection is reset (RST)
        proxy.refuse()           # new connections are closed at once, until accept()
        proxy.cut_after("up", 70000)   # the next connection that has carried so many bytes is reset

"up" is towards the broker, "down" towards bellhop.
"""

import socket
import struct
import threading
import time


class _Pair:
    def __init__(self, below, above):
        self.sockets = {"below": below, "above": above}
        self.carried = {"up": 0, "down": 0}
        self.received = {"up": 0, "down": 0}

    def close(self, reset=False):
        for s in self.sockets.values():
            try:
                if reset:
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                else:
                    s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            # With SHUT_RD a thread that waits in recv wakes up; close alone would leave it there.
            try:
                if reset:
                    s.shutdown(socket.SHUT_RD)
                s.close()
            except OSError:
                pass


class Proxy:
    scheme = "amqp"

    def __init__(self, target):
        host, _, port = target.rpartition(":")
        self.target = (host, int(port))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self.url = f"{self.scheme}://{self.address}"
        self.pairs = []
        self.accepted = 0
        self._delay = 0.0
        self._refuse = False
        self._limits = {}
        self._new_flow = threading.Event()
        self._new_flow.set()
        self._flowing = {"up": threading.Event(), "down": threading.Event()}
        for event in self._flowing.values():
            event.set()
        self._lock = threading.Lock()
        self._closed = False
        threading.Thread(target=self._accept, daemon=True).start()

    # -- faults

    def stall(self, direction=None):
        for d in ("up", "down") if direction is None else (direction,):
            self._flowing[d].clear()

    def stall_new(self):
        self._new_flow.clear()

    def resume(self):
        self._new_flow.set()
        for event in self._flowing.values():
            event.set()

    def delay(self, seconds):
        self._delay = seconds

    def cut(self):
        self._end(False)

    def reset(self):
        self._end(True)

    def refuse(self):
        self._refuse = True

    def accept(self):
        self._refuse = False

    def cut_after(self, direction, count):
        """Counts from the start of a connection; holds for all connections until cut_after(direction, None)."""
        self._limits[direction] = count

    def _end(self, reset):
        with self._lock:
            pairs, self.pairs = self.pairs, []
        for pair in pairs:
            pair.close(reset)

    # -- carrying

    def _accept(self):
        while True:
            try:
                below, _ = self.listener.accept()
            except OSError:
                return
            if self._closed or self._refuse:
                below.close()
                continue
            threading.Thread(target=self._connect, args=(below,), daemon=True).start()

    def _greet(self, below):
        """What a connection begins with, before the broker is connected to: the socket to carry from, or None when it is over."""
        return below

    def _connect(self, raw):
        below = self._greet(raw)
        if below is None:
            return
        try:
            above = socket.create_connection(self.target, timeout=5)
            above.settimeout(None)
        except OSError:
            below.close()
            return
        for s in (below, above):
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pair = _Pair(below, above)
        with self._lock:
            if self._closed:
                pair.close()
                return
            self.pairs.append(pair)
            self.accepted += 1
        threading.Thread(target=self._carry, args=(pair, "up", below, above), daemon=True).start()
        self._carry(pair, "down", above, below)

    def _carry(self, pair, direction, source, sink):
        self._new_flow.wait()
        try:
            while True:
                data = source.recv(65536)
                pair.received[direction] += len(data)
                self._flowing[direction].wait()
                if self._delay:
                    time.sleep(self._delay)
                if not data:
                    self._ended(direction, sink)
                    return
                limit = self._limits.get(direction)
                if limit is not None and pair.carried[direction] + len(data) >= limit:
                    sink.sendall(data[:max(0, limit - pair.carried[direction])])
                    pair.carried[direction] = limit
                    pair.close(reset=True)
                    return
                pair.carried[direction] += len(data)
                sink.sendall(data)
        except OSError as error:
            self._broken(direction, error)
            pair.close()

    def _ended(self, direction, sink):
        """One end has nothing more to say in this direction; the other may."""
        sink.shutdown(socket.SHUT_WR)

    def _broken(self, direction, error):
        pass

    def carried(self, direction):
        """Bytes carried by the connections that are still open."""
        with self._lock:
            return sum(p.carried[direction] for p in self.pairs)

    def is_holding(self, direction):
        """Whether something came that is not carried yet: who sent it waits at a stall."""
        with self._lock:
            return any(p.received[direction] > p.carried[direction] for p in self.pairs)

    def close(self):
        self._closed = True
        self.resume()
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


