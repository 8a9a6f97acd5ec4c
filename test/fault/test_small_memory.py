"""In a container of 256 MiB no input from client or broker ends the daemon: what is collected or remembered has a bound."""

import os
import pathlib
import uuid

import pytest

from support import amqp
from support.bellhop import Bellhop
from support.claims import CLAIM, Consumer, Marker, Side, claim
from support.publishing import begin_hops
from support.rabbitmq import TIME_FACTOR, wait_until

MIB = 1 << 20
LIMIT = 256 * MIB
V1, V2 = pathlib.Path("/sys/fs/cgroup/memory"), pathlib.Path("/sys/fs/cgroup")


class Group:
    """A control group of the kernel with that much memory, and no swap."""

    def __init__(self):
        self.is_v2 = (V2 / "cgroup.controllers").exists()
        self.path = (V2 if self.is_v2 else V1) / f"bellhop-test-{uuid.uuid4().hex[:8]}"
        try:
            self.path.mkdir()
            self._limit("memory.max" if self.is_v2 else "memory.limit_in_bytes", LIMIT)
        except OSError as error:
            if self.path.exists():
                self.path.rmdir()
            pytest.skip(f"no control group with a limit of memory can be made here: {error}")
        for name, value in (("memory.swap.max", 0), ("memory.memsw.limit_in_bytes", LIMIT)):
            if (self.path / name).exists():
                self._limit(name, value)
        # Run as: sh -c '... move yourself, become the daemon' sh bellhop ...
        self.wrapper = ["sh", "-c", f"echo $$ >{self.path}/cgroup.procs && exec \"$@\"", "sh"]

    def _limit(self, name, value):
        (self.path / name).write_text(str(value))

    def kills(self):
        text = (self.path / ("memory.events" if self.is_v2 else "memory.oom_control")).read_text()
        return int(dict(line.split() for line in text.splitlines())["oom_kill"])

    def remove(self):
        wait_until(lambda: not (self.path / "cgroup.procs").read_text(), 10, "the end of the group's processes")
        self.path.rmdir()


@pytest.fixture
def small(rabbit):
    """A factory: daemon = small({...}), which lives in 256 MiB, and is looked at in the end."""
    if os.geteuid() != 0:
        pytest.skip("only root makes control groups")
    if TIME_FACTOR != 1:
        pytest.skip("a sanitizer's own memory says nothing of the daemon's")
    group = Group()
    daemons = []

    def run(config=None, **options):
        daemons.append(Bellhop({"broker": {"url": rabbit.url}, **(config or {})}, wrapper=group.wrapper, **options))
        return daemons[-1]

    try:
        yield run
        for daemon in daemons:
            assert group.kills() == 0 and daemon.process.poll() is None
            channel = amqp.connect(daemon.socket).channel()
            channel.call("confirm.select")
            channel.publish("", "nowhere", b"still there")
            channel.confirms(1)
    finally:
        for daemon in daemons:
            daemon.stop(check=False)
        group.remove()


def sides(broker, name, count):
    return [Side(broker, name(str(n))) for n in range(count)]


def test_bodies_that_look_like_claims_and_are_none(small, broker, name):
    daemon = small()
    for side in sides(broker, name, 8):
        side.send(CLAIM + bytes(60 * MIB))
        side.consumer = Consumer(daemon, side.queue)
        assert len(side.consumer.deliver(timeout=120).body) == 60 * MIB + 3
        side.channel.call("queue.delete", queue=side.queue)


def test_eight_such_bodies_at_once_for_clients_that_read_nothing(small, broker, name):
    daemon = small()
    all_sides = sides(broker, name, 8)
    for side in all_sides:
        side.send(CLAIM + bytes(60 * MIB))
    consumers = [Consumer(daemon, side.queue) for side in all_sides]
    for side in all_sides:
        side.wait_count(0)
    for side, consumer in zip(all_sides, consumers):
        assert len(consumer.deliver(timeout=120).body) == 60 * MIB + 3
        side.channel.call("queue.delete", queue=side.queue)


def held(daemon, broker, name, count, bodies, **consume):
    """That many consumers, each of whose deliveries stand behind a claim that no store can give now."""
    Marker(daemon).remove()
    consumers = []
    for side in sides(broker, name, count):
        side.send(claim(str(uuid.uuid4())), *bodies)
        consumers.append(Consumer(daemon, side.queue, **consume))
        consumers[-1].side = side
    return consumers


def test_large_bodies_behind_held_claims_of_many_sessions(small, broker, name):
    daemon = small({"consume": {"hold_max": "20s"}})
    bodies = [CLAIM[:2] + b"\x00" + bytes(8 * MIB), bytes(8 * MIB)]
    for consumer in held(daemon, broker, name, 24, bodies):
        for _ in bodies:
            assert len(consumer.deliver(timeout=120).body) == 8 * MIB
        consumer.client.close()
        consumer.side.channel.call("queue.delete", queue=consumer.side.queue)


def test_large_bodies_that_are_parked_since_their_consumers_have_gone(small, broker, name):
    daemon = small({"consume": {"hold_max": "60s"}})
    consumers = held(daemon, broker, name, 8, [bytes(8 * MIB)] * 4, no_ack=True)
    for consumer in consumers:
        consumer.side.wait_count(0)
    for consumer in consumers:
        consumer.client.abort()
    wait_until(lambda: daemon.log.count("session closed session=") == 8, 120, "the end of all sessions")


def test_halves_of_hops_on_many_channels(small):
    daemon = small()
    clients = [amqp.connect(daemon.socket) for _ in range(3)]
    for client in clients:
        begin_hops(client, 250)
    daemon.wait_log("more than limits.inflight_bytes")


def test_mandatory_publishes_with_large_headers(small, broker, name):
    """Without confirms nothing says that one can no longer come back."""
    daemon = small()
    side = Side(broker, name(), arguments={"x-max-length": 10})
    for _ in range(4):
        client = amqp.connect(daemon.socket)
        for _ in range(3):
            channel = client.channel()
            for _ in range(400):
                channel.publish("", side.queue, b"small", mandatory=True, headers={"trace": "t" * 100_000})
            channel.call("queue.declare", queue=side.queue, passive=True)
    assert daemon.memory_kib("VmHWM") < 128 * 1024
