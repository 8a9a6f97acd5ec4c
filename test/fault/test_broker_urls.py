"""Several brokers, and one that comes back: the next is tried at once, rounds over all of them have pauses that grow and that no two sessions share, and
a client that reconnects after a restart is served as soon as the broker is."""

import re
import shutil
import socket
import subprocess
import threading
import time
from statistics import median

import pytest

from support import amqp
from support.rabbitmq import free_port, wait_until
from support.scripted_broker import background


class Connects:
    """When which thread of the daemon tried to connect to which port."""

    def __init__(self, daemon, folder):
        if shutil.which("strace") is None:
            pytest.skip("strace is not installed")
        self.trace = folder / "connects"
        self.process = subprocess.Popen(["strace", "-f", "-qq", "-ttt", "-e", "trace=connect", "-o", str(self.trace), "-p", str(daemon.pid)],
                                        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        traced = lambda: "TracerPid:\t0\n" not in open(f"/proc/{daemon.pid}/status").read()  # noqa: E731
        wait_until(lambda: traced() or self.process.poll() is not None, what="strace at the daemon")
        if self.process.poll() is not None:
            pytest.skip(f"tracing is not permitted here: {self.process.stderr.read().strip()}")

    def stop(self):
        """{thread: [(time, port), ...]}"""
        self.process.terminate()
        self.process.communicate(timeout=20)
        out = {}
        for thread, at, port in re.findall(r"^(\d+) +([\d.]+) connect\(\d+, \{sa_family=AF_INET, sin_port=htons\((\d+)\)", self.trace.read_text(), re.M):
            out.setdefault(thread, []).append((float(at), int(port)))
        return out


def test_dead_brokers_are_tried_in_turn_with_pauses_that_grow_and_differ(bellhop, tmp_path):
    ports = [free_port(), free_port()]
    daemon = bellhop({"broker": {"url": [f"amqp://127.0.0.1:{port}" for port in ports], "connect_timeout": "4s"}})
    connects = Connects(daemon, tmp_path)
    clients = [amqp.Client(daemon.socket) for _ in range(3)]
    for client in clients:
        client.send_header()
    for client in clients:
        assert client.expect_closed() == []
    by_thread = list(connects.stop().values())
    assert len(by_thread) == 3
    all_pauses = []
    for tries in by_thread:
        # Whichever failed last for another session comes second.
        rounds = [[port for _, port in tries[i:i + 2]] for i in range(0, len(tries) - 1, 2)]
        assert all(sorted(each) == sorted(ports) for each in rounds), tries
        pauses = [tries[i + 1][0] - tries[i][0] for i in range(1, len(tries) - 2, 2)]
        assert len(pauses) >= 3, tries
        for i, pause in enumerate(pauses):
            whole = min(0.1 * 2**i, 2)
            assert whole / 2 - 0.01 <= pause <= whole + 2 * amqp.TIME_FACTOR, pauses  # a loaded machine adds to it
        assert median(tries[i + 1][0] - tries[i][0] for i in range(0, len(tries) - 1, 2)) < 0.05 * amqp.TIME_FACTOR, "the next one at once"
        all_pauses.append(pauses[:3])
    # Jitter: no two sessions keep step.
    assert max(abs(a - b) for a, b in zip(all_pauses[0], all_pauses[1])) > 0.001


def test_a_client_that_reconnects_after_a_restart_is_served_as_soon_as_the_broker_is(own_rabbit, bellhop, name):
    daemon = bellhop({"broker": {"url": [f"amqp://127.0.0.1:{free_port()}", own_rabbit.url]}})
    client = amqp.connect(daemon.socket)
    client.channel()

    def served(address):
        """Tries until it is served; when."""
        deadline = time.monotonic() + 60 * amqp.TIME_FACTOR
        while True:
            try:
                amqp.connect(address).close()
                return time.monotonic()
            except (amqp.AmqpError, OSError):
                assert time.monotonic() < deadline
                time.sleep(0.05)

    own_rabbit.shutdown()
    client.expect_close(320)
    client.abort()
    straight, through = background(served, own_rabbit.address), [background(served, daemon.socket) for _ in range(5)]
    own_rabbit.launch()
    first = straight.result(60)
    # The longest pause between two rounds is 2 s; the rest is for a loaded machine.
    assert max(each.result(60) for each in through) - first < 5 * amqp.TIME_FACTOR
    daemon.wait_log("no broker reached yet, bellhop retries")


@pytest.mark.parametrize("says", [None, b"\x01\x00\x00\x00\x00\x02\x00half", "closes"], ids=["nothing", "half a start", "it closes"])
def test_a_node_that_takes_connections_and_says_no_start_is_passed_over(bellhop, rabbit, says):
    """A frozen node, a balancer with none behind it. Nobody but the first waits for it, and the log names it."""
    silent = socket.create_server(("127.0.0.1", 0))
    taken = []

    def take():
        while True:
            try:
                taken.append(silent.accept()[0])
            except OSError:
                return
            if says == "closes":
                taken[-1].close()
            elif says:
                taken[-1].sendall(says)

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    address = f"127.0.0.1:{silent.getsockname()[1]}"
    daemon = bellhop({"broker": {"url": [f"amqp://{address}", rabbit.url], "connect_timeout": "6s"}})
    amqp.connect(daemon.socket).close()
    daemon.wait_log(f"warn node not reached broker=amqp://{address} node={address} reason=.{address}.*connection.start")
    count = len(taken)
    for _ in range(3):
        amqp.connect(daemon.socket).close()
    assert len(taken) == count
    silent.shutdown(socket.SHUT_RDWR)
    silent.close()
    thread.join()
    for each in taken:
        each.close()


def test_when_all_nodes_are_silent_the_client_is_told_in_time_and_the_log_names_them(bellhop):
    silent = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    addresses = [f"127.0.0.1:{each.getsockname()[1]}" for each in silent]
    daemon = bellhop({"broker": {"url": [f"amqp://{each}" for each in addresses], "connect_timeout": "2s"}})
    client = amqp.Client(daemon.socket)
    client.send_header()
    assert client.expect_closed() == []
    line = daemon.wait_log("no broker could be reached.*").group(0)
    for each in addresses:
        assert f"{each} accepted the connection and sent no connection.start in time" in line
    for each in silent:
        each.close()
