"""One program, run against RabbitMQ itself and through bellhop: both must see the same.

    def test_x(same):
        @same
        def program(run):
            channel = run.channel()                    # a connection of its own, and a channel on it
            queue = channel.declare(run.name("q"))     # a fresh name, which the transcript shows as "q"
            ...

The program runs once straight and once through a bellhop of each variant, all on one node. Everything that arrives is written into a
transcript, whether the program looks at it or not: every method with all its arguments, contents with properties, header table (types
too) and body, closes, ends of sockets; in the order of each channel. Names that must differ from run to run are shown alike. Confirms
stand apart from the rest of their channel, one line a tag: how many of them `multiple` takes together is the broker's mood.

What may differ is the list of deploy/operations.md, "What changes on the wire", alone: one channel fewer is offered; a missing delivery mode and message id are filled in (not in the
variant `relaying`, where that is switched off and contents must be equal to the byte).
"""

import difflib
import hashlib
import os
import re

import pytest

from . import amqp
from .bellhop import Bellhop

VARIANTS = {
    "relaying": {"stamp": {"delivery_mode": "keep", "message_id": "keep"}},
    "stamping": {},
    "offloading everything": {"claim_check": {"threshold": 0}},
}
MADE_BY_THE_BROKER = re.compile(r"amq\.gen-[\w-]+|amq\.ctag-[\w-]+|amq\.rabbitmq\.reply-to\.[\w.+/=-]+")
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


class Transcript:
    """What the clients of one run saw. Lines by client and channel."""

    def __init__(self):
        self.names = {}
        self.made = {}
        self.lines = {}

    def text(self, text):
        """The text with every name shown as the program called it."""
        for name, shown in self.names.items():
            text = text.replace(name, shown)
        return MADE_BY_THE_BROKER.sub(lambda m: self.made.setdefault(m[0], f"{m[0].split('-')[0]}-{len(self.made) + 1}"), text)

    def value(self, value, key=""):
        if isinstance(value, amqp.Typed):
            if key == "time" and value.type == "T":
                return "T:now"  # of an x-death
            return f"{value.type}:{self.value(value.value)}"
        if isinstance(value, str):
            return repr(self.text(value))
        if isinstance(value, dict):
            return "{" + ", ".join(f"{self.text(k)}={self.value(v, k)}" for k, v in value.items()) + "}"
        if isinstance(value, list):
            return "[" + ", ".join(map(self.value, value)) + "]"
        if isinstance(value, bytes):
            return repr(value) if len(value) < 100 else f"{len(value)} bytes {hashlib.sha1(value).hexdigest()[:12]}"
        return repr(value)

    def add(self, place, line):
        self.lines.setdefault(place, []).append(line)

    def event(self, client, event):
        place = f"{client.label} channel {event.channel}"
        if event.name in ("basic.ack", "basic.nack"):
            self.confirm(client, place, event)
            return
        args = {k: v for k, v in event.args.items() if not k.startswith("reserved")}
        if event.name == "connection.tune" and client.through:
            args["channel_max"] += 1
        parts = [f"{event.name} {self.value(args)}"]
        if event.body is not None:
            properties = {k: v for k, v in event.properties.items() if k != "headers"}
            if event.headers_raw is not None:
                properties["headers"] = amqp.decode_table(event.headers_raw, typed=True)
            # (shown with what the broker got from the client alone, shown with what bellhop may have filled in)
            bare = {k: v for k, v in properties.items()
                    if not (k == "delivery_mode" and v == 2) and not (k == "message_id" and UUID.fullmatch(v))}
            parts += [(self.value(properties), self.value(bare)), f"body {self.value(event.body)}"]
        self.add(place, parts)

    def confirm(self, client, place, event):
        settled = client.settled.setdefault(event.channel, set())
        first = min(set(range(1, event.delivery_tag + 1)) - settled, default=event.delivery_tag) if event.multiple else event.delivery_tag
        for tag in range(first, event.delivery_tag + 1):
            if not event.multiple or tag not in settled:
                self.add(place + ", confirms", [f"{event.name} {tag}"])
            settled.add(tag)

    def apart(self, channel, method, keep=True):
        """From now back: what this method said stands apart from the rest of its channel (or, not kept, nowhere), because when and how often it
        comes is the clock's affair."""
        place = f"{channel.client.label} channel {channel.number}"
        lines = self.lines.get(place, [])
        self.lines[place] = [line for line in lines if not line[0].startswith(method)]
        if keep:
            self.lines[f"{place}, {method}"] = [line for line in lines if line[0].startswith(method)]

    def shown(self, filled_in=False):
        """The lines of all channels; with `filled_in` without what bellhop may add to a bare message."""
        out = []
        for place, lines in sorted(self.lines.items()):
            shown = [" ".join(part if isinstance(part, str) else part[filled_in] for part in line) for line in lines]
            out += [f"{place}:"] + ["    " + line for line in (sorted(shown) if place.endswith("confirms") else shown)]
        return out


class RecordedClient(amqp.Client):
    def __init__(self, run, label, address, **options):
        super().__init__(address, **options)
        self.transcript, self.label = run.transcript, label
        self.through = run.through and address == run.address
        self.settled = {}
        self.is_over = False

    def _pump(self, deadline):
        before = len(self.inbox)
        try:
            arrived = super()._pump(deadline)
        except amqp.SocketClosed:
            if not self.is_over:
                self.transcript.add(self.label, ["the socket was closed"])
            self.is_over = True
            raise
        if len(self.inbox) > before:
            event = self.inbox[-1]
            if event.name == "channel.open-ok":
                self.settled.pop(event.channel, None)
            self.transcript.event(self, event)
        return arrived

    def abort(self):
        self.is_over = True
        super().abort()

    def until_closed(self, timeout=10):
        """Takes what comes until the socket's end, answering a connection.close as clients do."""
        deadline = self._deadline(timeout)
        try:
            while True:
                seen = len(self.inbox)
                assert self._pump(deadline), "neither a close nor the end of the socket"
                for event in list(self.inbox)[seen:]:
                    if event.name == "connection.close":
                        self._answer("connection.close-ok", 0)
        except amqp.SocketClosed:
            self.inbox.clear()


class Run:
    """One run of a program: where it connects, and what it sees. `through` tells whether it is through bellhop, for set-up alone."""

    def __init__(self, address, node, daemon=None):
        self.address, self.node, self.daemon = address, node, daemon
        self.through = daemon is not None
        self.threshold = None if daemon is None else 0 if '"threshold": 0' in daemon.config_path.read_text() else 65536
        self.transcript = Transcript()
        self.clients = []
        self.tag = hashlib.sha1(str(id(self)).encode() + os.urandom(8)).hexdigest()[:8]

    def name(self, word="q"):
        name = f"{word}.{self.tag}"
        self.transcript.names[name] = word
        return name

    def client(self, address=None, **options):
        """A client that has said nothing yet. `address`: another one than this run's."""
        client = RecordedClient(self, f"client {len(self.clients) + 1}", address or self.address, **options)
        self.clients.append(client)
        return client

    def connect(self, **options):
        return self.client(**options).handshake()

    def channel(self, **options):
        return self.connect(**options).channel()

    def direct(self, **options):
        """A client of the broker itself in every run, not written down."""
        client = amqp.connect(self.node.address, **options)
        self.clients.append(client)
        return client

    def offloads(self, size):
        return self.through and size >= self.threshold

    def note(self, what, value=""):
        """Something that the program found out by itself."""
        self.transcript.add("noted", [f"{self.transcript.text(what)} {self.transcript.value(value)}"])

    def end(self, failed=False):
        for client in self.clients:
            try:
                if isinstance(client, RecordedClient) and not client.is_over and not failed:
                    client.close()
            except amqp.SocketClosed:
                pass
            finally:
                client.abort()


class Differential:
    """Called with a program it runs it straight and through each variant, and asserts that the transcripts are equal."""

    def __init__(self, node, config=None, variants=None):
        self.node, self.config = node, config or {}
        self.variants = {name: VARIANTS[name] for name in variants or VARIANTS}
        self.daemons = {}

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        for daemon in self.daemons.values():
            daemon.stop(check=kind is None)

    def version(self):
        client = amqp.connect(self.node.address)
        client.close()
        return client.server_properties["version"]

    def daemon(self, variant):
        if variant not in self.daemons:
            config = {**self.variants[variant], **self.config}
            config["broker"] = {"url": self.node.url, "heartbeat": "60s", **config.get("broker", {})}
            self.daemons[variant] = Bellhop(config)
        return self.daemons[variant]

    def run(self, program, variant=None):
        """The transcript of one run; no variant: straight at the broker."""
        daemon = self.daemon(variant) if variant else None
        run = Run(daemon.socket if daemon else self.node.address, self.node, daemon)
        try:
            program(run)
        except BaseException as error:
            run.end(failed=True)
            if isinstance(error, Exception):
                log = f"\n---- bellhop's log ----\n{daemon.log[-3000:]}" if daemon else ""
                raise AssertionError(f"the program failed, {variant or 'straight at the broker'}: {error!r}\n"
                                     + "\n".join(run.transcript.shown()) + log) from error
            raise
        run.end()
        return run.transcript

    def __call__(self, program, variants=None):
        try:
            straight = self.run(program)
        except AssertionError as error:
            if self.version().startswith("3."):
                raise
            # The programs are written to what RabbitMQ 3.10 does. Where a later one does otherwise there is nothing to compare.
            pytest.skip(f"RabbitMQ {self.version()} itself: {str(error).splitlines()[0][:200]}")
        assert straight.lines, "the program saw nothing: it shows nothing"
        for variant in variants or self.variants:
            through = self.run(program, variant)
            difference = differences(straight, through, filled_in=variant != "relaying")
            assert not difference, f"{variant}:\n{difference}\n---- bellhop's log ----\n{self.daemons[variant].log[-3000:]}"


def differences(straight, through, filled_in=False):
    """What differs, as text; empty when both saw the same."""
    return "\n".join(difflib.unified_diff(straight.shown(filled_in), through.shown(filled_in), "straight at the broker",
                                          "through bellhop", n=4, lineterm=""))
