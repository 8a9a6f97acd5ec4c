"""Asks a running bellhop by its admin listeners.

    admin = Admin(daemon.admin_socket)            # or Admin(("127.0.0.1", port))
    admin.get("/status").json()["ready"]
    admin.metrics()["bellhop_sessions", "door=unix"]
"""

import http.client
import json
import re
import socket

from .rabbitmq import TIME_FACTOR


class Answer:
    def __init__(self, response):
        self.status, self.headers = response.status, response.headers
        self.body = response.read().decode()

    def json(self):
        return json.loads(self.body)


def open_socket(place):
    """A connected socket: `place` is a path or (host, port)."""
    made = socket.socket(socket.AF_UNIX if isinstance(place, str) else socket.AF_INET)
    made.settimeout(20 * TIME_FACTOR)
    made.connect(place)
    return made


class Admin:
    def __init__(self, place):
        self.place = place

    def ask(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("bellhop", timeout=20 * TIME_FACTOR)
        connection.sock = open_socket(self.place)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def get(self, path):
        return self.ask("GET", path)

    def post(self, path, body=""):
        return self.ask("POST", path, body)

    def status(self):
        return self.get("/status").json()

    def metrics(self):
        """{(name, "label=value,label=value"): number}; the labels in the order of their names."""
        found = {}
        for line in self.get("/metrics").body.splitlines():
            if line.startswith("#"):
                continue
            name, labels, value = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line).groups()
            pairs = sorted(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels or ""))
            found[name, ",".join(f"{key}={text}" for key, text in pairs)] = float(value)
        return found


class Changes:
    """What the counters of `admin` changed by since it was made: only those that changed, without the process's own."""

    def __init__(self, admin):
        self.admin = admin
        self.before = admin.metrics()

    def __call__(self, *names):
        """Of the metrics with these names, or that begin so: {(name, labels): difference}."""
        now = self.admin.metrics()
        return {key: now[key] - self.before.get(key, 0) for key in now
                if key[0].startswith(names) and now[key] != self.before.get(key, 0)}
