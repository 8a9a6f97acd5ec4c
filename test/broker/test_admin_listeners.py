"""The admin listeners: what each answers, who may act, and what those can do who mean no good."""

import os
import socket
import stat
import threading

import pytest

from support import amqp
from support.admin import Admin, open_socket
from support.bellhop import run_cli
from support.publishing import declare, pattern, publisher
from support.rabbitmq import free_port, wait_until


@pytest.fixture
def watched(bellhop):
    """A daemon with both listeners: daemon, by the socket, by TCP."""
    port = free_port()
    daemon = bellhop({"service": "orders-api", "admin": {"tcp": f"127.0.0.1:{port}"}, "log": {"level": "debug"}})
    return daemon, Admin(daemon.admin_socket), Admin(("127.0.0.1", port))


def test_the_socket_is_for_its_owner_alone_and_goes_with_the_daemon(watched):
    daemon, _, _ = watched
    assert stat.S_IMODE(os.stat(daemon.admin_socket).st_mode) == 0o600
    daemon.sigterm()
    assert daemon.wait() == 0
    assert not os.path.exists(daemon.admin_socket)


def test_both_listeners_show_the_same(watched):
    _, by_socket, by_tcp = watched
    for admin in (by_socket, by_tcp):
        assert (admin.get("/healthz").status, admin.get("/healthz").body) == (200, "ok\n")
        assert admin.get("/metrics").headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert admin.metrics()["bellhop_config_generation", ""] == 1
        status = admin.status()
        assert (status["service"], status["draining"], status["config"]["generation"]) == ("orders-api", False, 1)
        page = admin.get("/")
        assert page.headers["Content-Type"] == "text/html; charset=utf-8" and "<title>bellhop</title>" in page.body
        assert admin.ask("HEAD", "/metrics").status == 200


def test_ready_means_that_the_broker_was_reached(watched, bellhop):
    _, admin, _ = watched
    wait_until(lambda: admin.get("/readyz").status == 200, 20, "bellhop's own look at the broker")
    assert admin.get("/readyz").body == "ready\n"
    assert admin.get("/readyz?verbose").body == (
        "[+] broker: reached\n[+] store 'claims': works\n[+] draining: no\nready\n")
    away = Admin(bellhop({"broker": {"url": f"amqp://127.0.0.1:{free_port()}", "connect_timeout": "1s"}}).admin_socket)
    assert away.get("/healthz").status == 200
    assert away.get("/readyz").status == 503
    wait_until(lambda: away.get("/readyz").body == "[-] broker: no broker can be reached; the log says why\nnot ready\n", 20,
               "the end of bellhop's own look")
    assert away.metrics()["bellhop_broker_up", ""] == 0


def test_tcp_is_for_looking_only(watched):
    daemon, by_socket, by_tcp = watched
    for path in ("/drain", "/log-level"):
        refused = by_tcp.post(path, "error")
        assert (refused.status, refused.body) == (403, "Actions are taken only by the admin socket (admin.socket).\n")
    for path in ("/status", "/metrics", "/"):
        refused = by_tcp.post(path)
        assert (refused.status, refused.headers["Allow"]) == (405, "GET, HEAD")
    assert by_tcp.ask("DELETE", "/status").status == 405
    assert by_tcp.get("/etc/passwd").status == 404
    assert not by_socket.status()["draining"] and by_socket.status()["log_level"] == "debug"
    assert by_socket.get("/drain").headers["Allow"] == "POST"


def test_the_log_level_changes_while_it_runs(watched):
    daemon, admin, _ = watched
    assert admin.post("/log-level", "warn\n").body == "log level warn\n"
    assert admin.status()["log_level"] == "warn"
    assert admin.post("/log-level", "loud").status == 400
    assert admin.post("/log-level", "x" * 2000).status == 413
    assert admin.status()["log_level"] == "warn"
    daemon.wait_log("log level changed by the admin socket to=warn")
    done = run_cli("log-level", "info", "--socket", daemon.admin_socket)
    assert (done.returncode, done.stdout, done.stderr) == (0, "log level info\n", "")
    done = run_cli("log-level", "loud", "--config", daemon.config_path)
    assert (done.returncode, done.stdout) == (1, "") and "Allowed: trace, debug, info, warn, error" in done.stderr


def test_a_drain_by_the_socket_ends_bellhop_as_a_signal_does(watched, broker, name):
    daemon, admin, _ = watched
    queue = name()
    declare(broker, queue)
    client = amqp.connect(daemon.socket)
    channel = client.channel()
    channel.call("tx.select")
    channel.publish("", queue, b"not committed yet")
    assert admin.post("/drain").status == 202
    wait_until(lambda: admin.status()["draining"], 20, "the drain")
    assert admin.get("/readyz").body == "[-] draining: bellhop is shutting down\nnot ready\n"
    assert run_cli("drain", "--socket", daemon.admin_socket).stdout == "bellhop is draining already\n"
    channel.call("tx.commit")
    daemon.told_to_end = daemon.pid
    assert daemon.wait() == 0
    client.abort()


def test_the_commands_say_what_is_wrong_where_none_runs(tmp_path, watched):
    daemon, _, _ = watched
    nowhere = tmp_path / "none.sock"
    done = run_cli("status", "--socket", nowhere)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (f"bellhop: there is no admin socket {nowhere}: bellhop does not run, or its socket is elsewhere "
                           "(--config FILE or --socket PATH says where)\n")
    left = tmp_path / "left.sock"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(left))
    done = run_cli("health", "--socket", left)
    assert done.returncode == 1 and "bellhop was killed. Start it again" in done.stderr
    bad = tmp_path / "bad.yaml"
    bad.write_text("broker: {}\n")
    assert run_cli("drain", "--config", bad).returncode == 2
    assert run_cli("log-level").returncode == 2
    assert run_cli("status", "--socket", nowhere, "--config", bad).returncode == 2


def test_health_gives_up_after_a_second(tmp_path):
    silent = str(tmp_path / "silent.sock")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(silent)
        listening.listen()
        done = run_cli("health", "--socket", silent)
    assert done.returncode == 1
    assert done.stderr == (f"bellhop: no answer by {silent} within 1 s: bellhop stands still, or this host has too much to do\n")


def test_health_and_status_of_one_that_runs(watched):
    daemon, admin, _ = watched
    wait_until(lambda: admin.get("/readyz").status == 200, 20, "the broker")
    done = run_cli("health", "--socket", daemon.admin_socket)
    assert (done.returncode, done.stdout) == (0, "ok\n")
    done = run_cli("health", "--ready", "--socket", daemon.admin_socket)
    assert (done.returncode, done.stdout) == (0, "ready\n")
    text = run_cli("status", "--config", daemon.config_path)
    assert text.returncode == 0 and text.stdout.startswith("ready\nbellhop       orders-api 0.")
    assert "no client is connected" in text.stdout
    assert run_cli("status", "--json", "--socket", daemon.admin_socket).stdout.startswith("{\n")


class Publishing:
    """A session that publishes and waits for each confirm, until it is told to end."""

    def __init__(self, daemon, queue):
        self.channel = publisher(daemon).channel
        self.queue, self.count, self.ending = queue, 0, False
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self):
        while not self.ending:
            self.channel.publish("", self.queue, pattern(200))
            self.channel.expect("basic.ack", delivery_tag=self.count + 1)
            self.count += 1

    def goes_on(self):
        """Waits for some more confirms."""
        wanted = self.count + 50
        wait_until(lambda: self.count >= wanted, 30, "confirms")

    def end(self):
        self.ending = True
        self.thread.join(30)


def test_who_means_no_good_holds_up_no_session_and_no_scraper(watched, broker, name):
    """200 connections that say nothing, a head that comes byte by byte, one that never ends, a body without end."""
    daemon, by_socket, by_tcp = watched
    queue = name()
    declare(broker, queue)
    publishing = Publishing(daemon, queue)
    held = []
    try:
        by_socket.get("/healthz")
        threads = daemon.threads()
        for _ in range(200):
            held.append(open_socket(by_tcp.place))
        publishing.goes_on()
        assert by_tcp.get("/metrics").status == 200
        for slow in held:
            try:
                slow.sendall(b"G")
            except OSError:
                pass  # it had to give way
        publishing.goes_on()
        assert by_tcp.get("/healthz").status == 200
        assert by_socket.get("/healthz").status == 200
        wait_until(lambda: daemon.descriptors() < 130, 20, "the bound of connections")
        assert daemon.threads() == threads, "a connection has no thread of its own"

        large = open_socket(by_tcp.place)
        held.append(large)
        try:
            large.sendall(b"GET /status HTTP/1.1\r\nHost: x\r\nX-Long: " + b"a" * 1_000_000 + b"\r\n\r\n")
        except OSError:
            pass  # it does not wait for the end
        try:
            answer = large.recv(4096)
        except ConnectionError:
            answer = b""
        assert answer == b"" or answer.startswith((b"HTTP/1.1 431", b"HTTP/1.1 413"))

        nonsense = open_socket(by_tcp.place)
        held.append(nonsense)
        nonsense.sendall(b"AMQP\x00\x00\x09\x01\r\n\r\n")
        assert nonsense.recv(4096)[:12] in (b"", b"HTTP/1.0 400", b"HTTP/1.1 400")

        endless = open_socket(by_tcp.place)
        held.append(endless)
        endless.sendall(b"POST /drain HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n" + b"x" * 100_000)
        publishing.goes_on()
        assert by_tcp.get("/readyz?verbose").status == 200
        assert not by_socket.status()["draining"]
    finally:
        publishing.end()
        for each in held:
            each.close()
    wait_until(lambda: daemon.descriptors() < 60, 20, "the connections' ends")
    assert by_socket.metrics()["bellhop_sessions", "door=unix"] == 1


def test_bellhop_serves_without_the_default_socket(bellhop, tmp_path):
    """Two bellhops in one folder: the second has no admin socket, and says so."""
    first = bellhop({"listen": [{"unix": str(tmp_path / "a.sock")}]})
    second = bellhop({"listen": [{"unix": str(tmp_path / "b.sock")}]})
    second.wait_log("there is no admin socket; to have one, set admin.socket reason=\"listen: unix: .*another process listens there")
    amqp.connect(second.socket).close()
    assert Admin(str(tmp_path / "admin.sock")).status()["pid"] == first.pid
