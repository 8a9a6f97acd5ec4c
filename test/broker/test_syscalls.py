"""How often a session asks the kernel: whole batches go out in one call, and the loop is not told again what it watches."""

import os
import re
import shutil
import subprocess

import pytest

from support import amqp
from support.certificates import shared_authority
from support.rabbitmq import wait_until

BATCHES, BATCH = 20, 100
MESSAGES = BATCHES * BATCH


def session_thread(daemon, before):
    """The id of the thread that appeared for the only session."""
    tasks = lambda: set(os.listdir(f"/proc/{daemon.pid}/task"))  # noqa: E731
    return wait_until(lambda: next(iter(tasks() - before), None), what="a session's thread")


class Strace:
    """Counts the system calls of one thread."""

    def __init__(self, thread, folder):
        if shutil.which("strace") is None:
            pytest.skip("strace is not installed")
        self.trace = folder / "trace"
        self.process = subprocess.Popen(["strace", "-qq", "-o", str(self.trace), "-p", thread], stdin=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True)
        traced = lambda: "TracerPid:\t0\n" not in open(f"/proc/{thread}/status").read()  # noqa: E731
        wait_until(lambda: traced() or self.process.poll() is not None, what="strace at the thread")
        if self.process.poll() is not None:
            pytest.skip(f"tracing is not permitted here: {self.process.stderr.read().strip()}")

    def stop(self):
        """{name: [line, ...]}, in order."""
        self.process.terminate()
        self.process.communicate(timeout=20)
        calls = {}
        for line in self.trace.read_text(errors="replace").splitlines():
            found = re.match(r"(?:<\.\.\. )?(\w+)(?:\(| resumed)", line)
            if found:
                calls.setdefault(found.group(1), []).append(line)
        return calls


def moved(calls, names):
    """{descriptor: [bytes moved by each call, ...]}."""
    out = {}
    for name in names:
        for line in calls.get(name, []):
            found = re.match(r"\w+\((\d+),.* = (\d+)$", line)
            if found and found.group(2) != "0":
                out.setdefault(found.group(1), []).append(int(found.group(2)))
    return out


def over(transport, rabbit):
    """The section `broker` for a node with TLS."""
    if transport == "TLS":
        return {"url": f"amqps://{rabbit.tls_address}", "tls": {"ca": shared_authority().ca}}
    return {"url": f"amqp://{rabbit.address}"}


@pytest.mark.parametrize("transport", ["TCP", "TLS"])
def test_a_batch_of_publishes_costs_one_read_and_one_write_and_nothing_else(bellhop, tls_rabbit, name, tmp_path, transport):
    daemon = bellhop({"broker": over(transport, tls_rabbit)})
    before = set(os.listdir(f"/proc/{daemon.pid}/task"))
    client = amqp.connect(daemon.socket)
    channel = client.channel()
    queue = channel.declare(name(), exclusive=True)
    channel.call("confirm.select")
    channel.publish("", queue, b"the first message makes what is made once")
    channel.confirms(1)

    strace = Strace(session_thread(daemon, before), tmp_path)
    try:
        batch = b"".join(b"".join(channel.publish_frames("", queue, b"x" * 100)) for _ in range(BATCH))
        for number in range(BATCHES):
            client.send_raw(batch)
            outcome = channel.confirms(1 + (number + 1) * BATCH)
    finally:
        calls = strace.stop()
    assert set(outcome.values()) == {"ack"} and len(outcome) == MESSAGES + 1

    reads = moved(calls, ("recvfrom", "recvmsg", "read", "readv"))
    writes = moved(calls, ("sendto", "sendmsg", "write", "writev"))
    client_leg = max(reads, key=lambda each: sum(reads[each]))  # publishes are more bytes than their confirms
    broker_leg = max(writes, key=lambda each: sum(writes[each]))
    summary = f"client leg {client_leg}, broker leg {broker_leg}, reads {reads}, writes {writes}, {({k: len(v) for k, v in calls.items()})}"
    assert client_leg != broker_leg and sum(reads[client_leg]) == BATCHES * len(batch), summary
    # A batch is 15 KB: the kernel may hand it over in two parts, hardly ever in more.
    assert len(reads[client_leg]) <= 5 * BATCHES, summary
    assert len(writes[broker_leg]) <= 1.3 * len(reads[client_leg]), summary
    # Likewise downwards: the broker's confirms go on as they come.
    assert len(writes[client_leg]) <= 1.3 * len(reads[broker_leg]), summary
    assert len(calls.get("epoll_ctl", [])) <= 2, summary


def test_a_tls_handshake_touches_no_file_and_never_waits_but_in_the_loop(bellhop, tls_rabbit, name, tmp_path):
    daemon = bellhop({"broker": {"url": f"amqps://{tls_rabbit.tls_address}", "tls": {"ca": shared_authority().ca}}})
    before = set(os.listdir(f"/proc/{daemon.pid}/task"))
    client = amqp.Client(daemon.socket)
    strace = Strace(session_thread(daemon, before), tmp_path)
    try:
        client.handshake()
        client.channel().declare(name(), exclusive=True)
    finally:
        calls = strace.stop()
    assert "connect" in calls and "sendto" in calls
    assert not {"open", "openat", "stat", "newfstatat", "poll", "ppoll", "select", "nanosleep", "clock_nanosleep"} & set(calls), set(calls)
    client.close()
