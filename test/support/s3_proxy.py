"""An HTTP proxy in front of an S3 server, for the faults of a service and to see what is asked of it. Signatures stay good, because
the Host header is passed on as it came.

    with S3Proxy(server.address) as proxy:
        store = server.store(endpoint=proxy.endpoint)
        proxy.requests                              # of Request: method, target, headers, body_bytes, status
        proxy.rule = lambda request: SLOW_DOWN      # answered by the proxy itself
        proxy.rule = lambda request: Delay(0.05)    # the answer comes later
        proxy.rule = lambda request: ResetUp(70000) # the connection is reset when so much of the body has come
        proxy.rule = lambda request: ResetDown(70000)   # ... when so much of the answer's body has gone out
        proxy.rule = lambda request: Hang()         # no answer, until hang_over()
        proxy.rule = lambda request: Trickle()      # the answer's body comes a byte at a time, twenty a second
        proxy.rule = lambda request: Endless(200)   # an answer of the proxy's own whose body goes on and on; 100: that comes again and again
        proxy.rule = lambda request: Reply(204)     # this answer instead; carried_out=True: after the server has carried the request out
        proxy.rule = lambda request: EndlessHead()  # an answer whose header fields go on and on
        proxy.rule = None                           # everything is passed on
        proxy.on_body = lambda request, body: ...   # the body of each request that was passed on whole, in memory
"""

import dataclasses
import socket
import struct
import threading
import time


@dataclasses.dataclass
class Answer:
    status: int
    code: str
    message: str = "said the test"
    extra: str = ""

    def bytes(self):
        body = (f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{self.code}</Code><Message>{self.message}</Message>{self.extra}'
                "<RequestId>r</RequestId></Error>").encode()
        return (f"HTTP/1.1 {self.status} X\r\ncontent-type: application/xml\r\ncontent-length: {len(body)}\r\n\r\n").encode() + body


@dataclasses.dataclass
class Delay:
    seconds: float


@dataclasses.dataclass
class ResetUp:
    after: int


@dataclasses.dataclass
class ResetDown:
    after: int


class Hang:
    pass


class Trickle:
    pass


@dataclasses.dataclass
class Endless:
    status: int
    trickles: bool = False


@dataclasses.dataclass
class Reply:
    """`sized`: with its Content-Length; else its end is the connection's."""
    status: int
    headers: dict = dataclasses.field(default_factory=dict)
    body: bytes = b""
    carried_out: bool = False
    sized: bool = True

    def bytes(self):
        headers = {"content-length": len(self.body), **self.headers} if self.sized and self.status != 204 else self.headers
        return f"HTTP/1.1 {self.status} X\r\n".encode() + b"".join(f"{k}: {v}\r\n".encode() for k, v in headers.items()) + b"\r\n"


class EndlessHead:
    pass


SLOW_DOWN = Answer(503, "SlowDown", "Please reduce your request rate.")
UNAVAILABLE = Answer(503, "ServiceUnavailable")
INTERNAL = Answer(500, "InternalError")


@dataclasses.dataclass
class Request:
    method: str
    target: str
    headers: dict
    raw_names: list
    body_bytes: int = 0
    status: int = 0


class _Reset(Exception):
    pass


class S3Proxy:
    def __init__(self, target):
        host, _, port = target.rpartition(":")
        self.target = (host, int(port))
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = self.listener.getsockname()[1]
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self.rule = self.on_body = None
        self.requests = []
        self.connections = 0
        self._over = threading.Event()
        self._open = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def seen(self, method, part=""):
        return [r for r in list(self.requests) if r.method == method and part in r.target]

    def hang_over(self):
        self._over.set()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connections += 1
            self._open.add(client)
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        stream = client.makefile("rb", buffering=65536)
        try:
            while self._one(client, stream):
                pass
        except _Reset:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        except OSError:
            pass
        finally:
            self._open.discard(client)
            try:
                stream.close()
            except OSError:
                pass
            client.close()

    @staticmethod
    def _head(stream):
        line = stream.readline()
        headers, names = {}, []
        while True:
            each = stream.readline()
            if each in (b"\r\n", b""):
                return line, headers, names
            name, _, value = each.decode("latin-1").partition(":")
            names.append(name)
            headers[name.strip().lower()] = value.strip()

    def _one(self, client, stream):
        line, headers, names = self._head(stream)
        if not line:
            return False
        method, target, _ = line.decode().split(" ", 2)
        request = Request(method, target, headers, names)
        self.requests.append(request)
        act = self.rule(request) if self.rule else None
        if isinstance(act, Answer):
            request.status = act.status
            # What is on its way is taken first, so that the answer is not lost with a reset.
            if "expect" not in headers:
                self._skip(stream, int(headers.get("content-length", 0)))
            client.sendall(act.bytes())
            return "expect" not in headers
        if isinstance(act, Reply) and not act.carried_out:
            request.status = act.status
            if "expect" not in headers:
                self._skip(stream, int(headers.get("content-length", 0)))
            return self._reply(client, request, act) and "expect" not in headers
        if isinstance(act, EndlessHead):
            self._skip(stream, int(headers.get("content-length", 0)))
            client.sendall(b"HTTP/1.1 200 X\r\n")
            while True:
                client.sendall(b"x-more: of it\r\n" * 4096)
        if isinstance(act, Endless):
            request.status = act.status
            self._skip(stream, int(headers.get("content-length", 0)))
            head = f"HTTP/1.1 {act.status} X\r\n\r\n".encode()
            more = head if act.status == 100 else b" "
            client.sendall(head)
            while True:
                client.sendall(more if act.trickles else more * 65536)
                time.sleep(0.05 if act.trickles else 0)
        if isinstance(act, Hang):
            self._over.wait()
            raise _Reset
        if headers.pop("expect", None):
            client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        above = socket.create_connection(self.target, timeout=60)
        try:
            head = line + b"".join(f"{k}: {v}\r\n".encode("latin-1") for k, v in headers.items() if k != "connection")
            above.sendall(head + b"connection: close\r\n\r\n")
            left = int(headers.get("content-length", 0))
            body = bytearray() if self.on_body else None
            while left:
                data = stream.read1(min(left, 65536))
                if not data:
                    return False
                left -= len(data)
                if body is not None:
                    body += data
                request.body_bytes += len(data)
                if isinstance(act, ResetUp) and request.body_bytes >= act.after:
                    raise _Reset
                try:
                    above.sendall(data)
                except OSError:  # it has answered already, and does not want the rest
                    self._skip(stream, left)
                    break
            if body is not None:
                self.on_body(request, body)
            return self._answer(client, above, request, act)
        finally:
            above.close()

    @staticmethod
    def _reply(client, request, act):
        client.sendall(act.bytes() + (act.body if request.method != "HEAD" else b""))
        return act.sized

    @staticmethod
    def _skip(stream, left):
        while left:
            data = stream.read1(min(left, 65536))
            if not data:
                return
            left -= len(data)

    def _answer(self, client, above, request, act):
        answer = above.makefile("rb", buffering=65536)
        line, headers, _ = self._head(answer)
        if not line:
            raise _Reset
        request.status = int(line.split()[1])
        if isinstance(act, Reply):
            while answer.read1(65536):
                pass
            answer.close()
            return self._reply(client, request, act)
        if isinstance(act, Delay):
            time.sleep(act.seconds)
        headers.pop("connection", None)
        sized = "content-length" in headers or request.status == 204 or "transfer-encoding" in headers
        client.sendall(line + b"".join(f"{k}: {v}\r\n".encode("latin-1") for k, v in headers.items()) + b"\r\n")
        sent = 0
        while request.method != "HEAD":
            data = answer.read1(65536)
            if not data:
                break
            if isinstance(act, ResetDown) and sent + len(data) >= act.after:
                client.sendall(data[:max(0, act.after - sent)])
                raise _Reset
            if isinstance(act, Trickle):
                for at in range(len(data)):
                    time.sleep(0.05)
                    client.sendall(data[at:at + 1])
                continue
            sent += len(data)
            client.sendall(data)
        answer.close()
        return sized

    def close(self):
        self._over.set()
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        for each in list(self._open):
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
