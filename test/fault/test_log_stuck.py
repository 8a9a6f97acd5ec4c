"""The log is written for a person, who may not be reading: a pipe that is full, a descriptor that is closed. And it must stay
readable: the same trouble is told once, then counted, then told to be over."""

import os
import re
import signal
import subprocess

import pytest

from support import amqp
from support.bellhop import Bellhop, binary
from support.rabbitmq import TIME_FACTOR, wait_until


class _Deaf:
    """A daemon whose standard error is a full pipe that nobody reads."""

    def __init__(self, rabbit):
        self.prepared = Bellhop({"broker": {"url": rabbit.url}, "limits": {"drain_timeout": "10s"}}, start=False)
        self.read_end, write_end = os.pipe()
        os.set_blocking(write_end, False)
        try:
            while True:
                os.write(write_end, b"x" * 4096)
        except BlockingIOError:
            os.set_blocking(write_end, True)
        self.process = subprocess.Popen([binary(), "run", "--config", str(self.prepared.config_path)],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=write_end)
        os.close(write_end)
        self.socket = self.prepared.socket
        wait_until(lambda: os.path.exists(self.socket) and self._answers(), what="the daemon's socket")

    def _answers(self):
        try:
            amqp.open_socket(self.socket).close()
            return True
        except OSError:
            return False

    def read(self):
        """All that was said, once somebody reads; until its end."""
        text = b""
        while piece := os.read(self.read_end, 65536):
            text += piece
        return text.lstrip(b"x").decode()

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.read_end)
        self.prepared.stop(check=False)


@pytest.fixture
def deaf(rabbit):
    deaf = _Deaf(rabbit)
    yield deaf
    deaf.close()


def test_a_log_that_nobody_reads_holds_up_neither_a_session_nor_the_end(deaf, name):
    served = amqp.connect(deaf.socket)
    channel = served.channel()
    for _ in range(1500):  # two lines each: more than a queue of 256 KiB holds
        amqp.connect(deaf.socket).close()
    channel.declare(name(), exclusive=True)
    deaf.process.send_signal(signal.SIGTERM)
    served.expect_close(320)
    served.expect_closed()
    assert deaf.process.wait(20 * TIME_FACTOR) == 0


def test_what_was_dropped_is_told_when_somebody_reads_again(deaf):
    for _ in range(1500):
        amqp.connect(deaf.socket).close()
    deaf.process.send_signal(signal.SIGTERM)
    text = deaf.read()
    assert deaf.process.wait(20 * TIME_FACTOR) == 0
    dropped = sum(map(int, re.findall(r"warn log lines dropped count=(\d+)", text)))
    opened, closed = text.count("session opened session="), text.count("session closed session=")
    assert dropped > 0 and dropped + opened + closed >= 3000
    assert "warn" not in re.sub(r"warn log lines dropped", "", text)


@pytest.mark.parametrize("closed", [(2,), (0, 1, 2)], ids=["stderr", "all"])
def test_a_daemon_without_standard_descriptors_serves_and_ends(rabbit, name, closed):
    prepared = Bellhop({"broker": {"url": rabbit.url}}, start=False)
    redirections = " ".join(f"{fd}{'<' if fd == 0 else '>'}&-" for fd in closed)
    process = subprocess.Popen(["/bin/sh", "-c", f'exec "$@" {redirections}', "sh", binary(), "run", "--config",
                                str(prepared.config_path)])
    try:
        wait_until(lambda: os.path.exists(prepared.socket), what="the daemon's socket")
        client = wait_until(lambda: _connected(prepared.socket), what="a session")
        for fd in closed:
            assert os.readlink(f"/proc/{process.pid}/fd/{fd}") == "/dev/null"
        client.channel().declare(name(), exclusive=True)
        process.send_signal(signal.SIGTERM)
        client.expect_close(320)
        client.expect_closed()
        assert process.wait(20 * TIME_FACTOR) == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        prepared.stop(check=False)


def _connected(path):
    try:
        return amqp.connect(path)
    except (OSError, amqp.AmqpError):
        return None


def test_the_same_refusal_is_told_once_and_its_end_as_well(bellhop, name):
    daemon = bellhop()
    channel = amqp.connect(daemon.socket).channel()
    queue = channel.declare(name(), exclusive=True)
    channel.call("confirm.select")
    away = daemon.store_path.with_name("away")
    daemon.store_path.rename(away)
    for _ in range(300):
        channel.publish("", queue, b"x" * 100_000)
        channel.wait_for("basic.nack")
    assert daemon.log.count("publish refused") == 1
    away.rename(daemon.store_path)
    channel.publish("", queue, b"x" * 100_000)
    channel.wait_for("basic.ack")
    assert daemon.wait_log(r"info store takes payloads again store=claims times=(\d+)").group(1) == "300"


def test_a_held_delivery_is_told_once_for_its_queue_and_when_it_is_handed_over(bellhop, broker, name):
    daemon = bellhop()
    queue = name()
    broker.channel().declare(queue)
    channel = amqp.connect(daemon.socket).channel()
    channel.call("confirm.select")
    for _ in range(10):
        channel.publish("", queue, b"x" * 100_000)
    channel.confirms(10)
    away = daemon.store_path.with_name("away")
    daemon.store_path.rename(away)
    consuming = amqp.connect(daemon.socket).channel()
    consuming.call("basic.consume", queue=queue, no_ack=False)
    daemon.wait_log("delivery held")
    away.rename(daemon.store_path)
    for _ in range(10):
        consuming.deliver()
    daemon.wait_log(f"info deliveries that were held are handed over queue={queue}")
    assert daemon.log.count("delivery held") == 1
    channel.call("queue.delete", queue=queue)


def test_clients_past_a_limit_are_told_once(bellhop):
    daemon = bellhop({"limits": {"sessions": 1}})
    served = amqp.connect(daemon.socket)
    for _ in range(20):
        with pytest.raises(amqp.ConnectionClosed):
            amqp.connect(daemon.socket)
    assert daemon.log.count("connection refused") == 1
    served.close()
    daemon.wait_log("limits.sessions is not reached any more")


def test_a_graceful_end_is_no_warning(bellhop):
    daemon = bellhop()
    client = amqp.connect(daemon.socket)
    daemon.sigterm()
    client.expect_close(320)
    client.expect_closed()
    assert daemon.wait() == 0
    assert " warn " not in daemon.log and " error " not in daemon.log
