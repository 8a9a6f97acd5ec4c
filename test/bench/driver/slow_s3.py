"""What an S3 store is to P9: it takes any PUT and answers a fixed time after its last byte. It keeps nothing and checks nothing."""

import base64
import socketserver
import threading
import time


class _Handler(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True

    def handle(self):
        buffer = memoryview(bytearray(1 << 20))
        while True:
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                line = self.rfile.readline()
                if not line:
                    return
                head += line
            lines = [each.partition(b": ") for each in head.split(b"\r\n")[1:]]
            fields = {name.lower(): value for name, _, value in lines}
            left = int(fields.get(b"content-length", b"0"))
            if b"expect" in fields:
                self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            while left:
                got = self.rfile.readinto1(buffer[:min(left, len(buffer))])
                if not got:
                    return
                left -= got
            time.sleep(self.server.answer_after_s)
            # The ETag is the MD5 of what came: bellhop looks at the object again where it is not. The request's header has it.
            etag = base64.b64decode(fields.get(b"content-md5", b"")).hex()
            self.wfile.write(f'HTTP/1.1 200 OK\r\nETag: "{etag}"\r\nContent-Length: 0\r\n\r\n'.encode())


class SlowS3(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, answer_after_s):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer_after_s = answer_after_s
        self.endpoint = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def stop(self):
        self.shutdown()
        self.server_close()
