"""What a service manager does for its service: hears what it says, and hands sockets over.

    with Manager(tmp_path) as manager:
        daemon = bellhop(config, env=manager.env)
        manager.wait_for("READY")           # {"READY": "1", "STATUS": "listening on ..."}

    daemon = bellhop(config, **handing_over(a_listening_socket))
"""

import os
import pathlib
import socket
import sys
import threading

from .rabbitmq import wait_until

# Becomes the program in its arguments, which finds the sockets from descriptor 3 on. What may be said of them is in FDS.
LAUNCHER = """
import os, sys
numbers = [int(each) for each in sys.argv[1].split(",")]
high = [os.dup(each) for each in numbers]
while min(high, default=100) < 3 + len(high):
    high = [os.dup(each) for each in high]
for place, each in enumerate(high, 3):
    os.dup2(each, place, inheritable=True)
os.environ["LISTEN_PID"] = str(os.getpid())
os.environ["LISTEN_FDS"] = str(len(numbers))
os.environ["LISTEN_FDNAMES"] = ":".join(["test.socket"] * len(numbers))
os.execvp(sys.argv[2], sys.argv[2:])
"""


class Manager:
    """Hears on a datagram socket: a file, or a name that is none."""

    def __init__(self, folder, abstract=False, watchdog=None):
        self.place = f"@bellhop-test-{os.getpid()}-{id(self)}" if abstract else str(pathlib.Path(folder) / "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.place.replace("@", "\0", 1) if abstract else self.place)
        self.env = {"NOTIFY_SOCKET": self.place}
        if watchdog:
            self.env["WATCHDOG_USEC"] = str(int(watchdog * 1e6))
        self.heard = []  # a dict each, in their order
        self._thread = threading.Thread(target=self._hear, daemon=True)
        self._thread.start()

    def _hear(self):
        while True:
            said = self.socket.recv(4096).decode()
            if not said:
                return
            self.heard.append(dict(line.split("=", 1) for line in said.splitlines()))

    def said(self, key, value=None, begin=0):
        """What had the key, and that value."""
        return [each for each in list(self.heard)[begin:] if key in each and value in (None, each[key])]

    def wait_for(self, key, value=None, begin=0):
        wait_until(lambda: self.said(key, value, begin), what=f"{key}={value} of {self.heard[-10:]}")
        return self.said(key, value, begin)[0]

    def wait_for_status(self, text, begin=0):
        def found():
            return [each for each in self.said("STATUS", begin=begin) if text in each["STATUS"]]
        wait_until(found, what=f"the status {text!r}; there were {[each['STATUS'] for each in self.said('STATUS')]}")
        return found()[0]["STATUS"]

    def close(self):
        ends = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        ends.sendto(b"", self.socket.getsockname())
        ends.close()
        self._thread.join(10)
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def handing_over(*sockets):
    """What makes Bellhop(...) inherit these. They stay the test's as well."""
    numbers = [each.fileno() for each in sockets]
    return {"wrapper": [sys.executable, "-c", LAUNCHER, ",".join(map(str, numbers))], "pass_fds": numbers}
