"""What bellhop tells its service manager, on a real notify socket: that it serves, reloads and ends, that its main loop goes round, and a line
for people."""

import json
import signal
import socket
import subprocess
import time

import pytest

from support import amqp
from support.admin import Admin
from support.bellhop import run_cli
from support.gate import SUPPORT, preloaded
from support.publishing import declare, publisher
from support.rabbitmq import free_port, wait_until
from support.service_manager import Manager

LOGIN = {"username": "guest", "password": "guest"}


@pytest.fixture(params=["a file", "a name that is no file"])
def any_manager(request, tmp_path):
    with Manager(tmp_path, abstract=request.param != "a file") as manager:
        yield manager


@pytest.fixture
def manager(tmp_path):
    with Manager(tmp_path) as manager:
        yield manager


def rewrite(daemon, **sections):
    config = {**json.loads(daemon.config_path.read_text()), **sections}
    new = daemon.config_path.with_suffix(".new")
    new.write_text(json.dumps(config))
    new.rename(daemon.config_path)


def test_ready_is_told_once_all_listeners_listen(bellhop, any_manager):
    daemon = bellhop({"listen": [{"unix": "{socket}"}, {"tcp": "127.0.0.1:0"}]}, env=any_manager.env)
    status = any_manager.wait_for("READY", "1")["STATUS"]
    assert f"unix:{daemon.socket}" in status and "tcp:127.0.0.1:" in status and "no session" in status
    assert any_manager.heard[0] == {"STATUS": "opening the stores"}
    amqp.connect(daemon.socket).close()


def test_the_status_says_how_many_sessions_there_are(bellhop, manager):
    daemon = bellhop({"broker": LOGIN}, env=manager.env)
    first = amqp.connect(daemon.socket)
    assert "broker reached" in manager.wait_for_status("1 session;")
    second = amqp.connect(daemon.socket)
    manager.wait_for_status("2 sessions;")
    first.close()
    second.close()
    manager.wait_for_status("no session; broker reached", begin=len(manager.heard) - 1)


def test_the_status_says_what_is_waited_for_and_when_it_is_over(bellhop, manager, rabbit, tmp_path, name):
    store = tmp_path / "mount"
    port = free_port()
    daemon = bellhop({"broker": {"url": f"amqp://127.0.0.1:{port}", **LOGIN},
                      "stores": {"claims": {"type": "filesystem", "path": str(store), "marker": "optional"}},
                      "claim_check": {"store": "claims", "threshold": "1KiB"}}, env=manager.env)
    manager.wait_for_status("waits for the broker; waits for store 'claims'")
    line = daemon.wait_log(r"broker cannot be reached at start.*").group(0)
    assert "key=broker.url" in line
    line = daemon.wait_log(r"store is not there.*").group(0)
    assert "key=stores.claims.path" in line and str(store) in line and "advice=\"mount or create it\"" in line
    # Both come.
    forward = subprocess.Popen(["socat", f"TCP-LISTEN:{port},bind=127.0.0.1,fork,reuseaddr", f"TCP:{rabbit.upstream}"])
    try:
        daemon.wait_log("broker lets bellhop in")
        store.mkdir()
        up = publisher(daemon)
        queue = up.channel.declare(name(), exclusive=True)
        up.channel.publish("", queue, b"x" * 5000)
        up.channel.confirms(1)
        daemon.wait_log("store is available again store=claims")
        wait_until(lambda: manager.said("STATUS")[-1]["STATUS"].endswith("; 1 session; broker reached"))
        up.client.close()
        daemon.sigterm()
        daemon.wait()
    finally:
        forward.terminate()
        forward.wait()


def test_a_login_that_the_broker_refuses_is_in_the_status(bellhop, manager):
    bellhop({"broker": {"username": "guest", "password": "wrong"}}, env=manager.env)
    manager.wait_for_status("the broker refuses bellhop's login")


# -- reloading


def is_about_now(told, before):
    return before <= int(told["MONOTONIC_USEC"]) / 1e6 <= time.monotonic()


@pytest.mark.parametrize("way", ["command", "signal"])
def test_a_reload_begins_and_ends(bellhop, manager, way):
    daemon = bellhop(env=manager.env)
    manager.wait_for("READY")
    begin, before = len(manager.heard), time.monotonic()
    if way == "command":
        assert run_cli("reload", "--socket", daemon.admin_socket).returncode == 0
    else:
        daemon.process.send_signal(signal.SIGHUP)
    assert is_about_now(manager.wait_for("RELOADING", "1", begin), before)
    manager.wait_for("READY", "1", begin)
    states = [key for each in manager.heard[begin:] for key in each if key in ("RELOADING", "READY")]
    assert states == ["RELOADING", "READY"]


def test_a_reload_that_fails_ends_too_and_the_status_says_so_until_one_succeeds(bellhop, manager):
    daemon = bellhop(env=manager.env)
    manager.wait_for("READY")
    good = json.loads(daemon.config_path.read_text())["broker"]
    rewrite(daemon, broker={**good, "heartbeet": "3s"})
    begin = len(manager.heard)
    assert run_cli("reload", "--socket", daemon.admin_socket).returncode == 2
    manager.wait_for("RELOADING", "1", begin)
    assert "the configuration has a mistake, number 1 stays in use" in manager.wait_for("READY", "1", begin)["STATUS"]
    rewrite(daemon, broker=good)
    begin = len(manager.heard)
    assert run_cli("reload", "--socket", daemon.admin_socket).returncode == 0
    assert "mistake" not in manager.wait_for("READY", "1", begin)["STATUS"]


def test_a_change_that_is_noticed_is_a_reload_and_a_look_at_the_same_is_none(bellhop, manager):
    daemon = bellhop({"admin": {"watch": True}}, env=manager.env)
    manager.wait_for("READY")
    begin = len(manager.heard)
    rewrite(daemon, log={"level": "debug"})
    manager.wait_for("RELOADING", "1", begin)
    manager.wait_for("READY", "1", begin)
    wait_until(lambda: "configuration reloaded number=2" in daemon.log)
    # The same file written again is looked at, in a second; and what is the same is no reload.
    begin, looks = len(manager.heard), Admin(daemon.admin_socket).status()["config"]["looks"]
    rewrite(daemon)
    wait_until(lambda: Admin(daemon.admin_socket).status()["config"]["looks"] > looks)
    assert not manager.said("RELOADING", begin=begin)


# -- ending


def test_the_end_is_told_with_what_is_left(bellhop, manager, name):
    daemon = bellhop({"limits": {"drain_timeout": "40s"}}, env=manager.env)
    channel = amqp.connect(daemon.socket).channel()
    queue = channel.declare(name(), exclusive=True)
    channel.publish("", queue, b"work")
    got = channel.get_wait(queue, no_ack=False)
    idle = amqp.connect(daemon.socket)
    manager.wait_for_status("2 sessions")
    daemon.sigterm()
    told = manager.wait_for("STOPPING", "1")
    assert told["EXTEND_TIMEOUT_USEC"] == "45000000"
    assert told["STATUS"].startswith("draining: 2 sessions left, ")
    idle.expect_close(320)
    manager.wait_for_status("draining: 1 session left, ")
    channel.ack(got.delivery_tag)
    assert daemon.wait() == 0


def test_a_drain_that_the_command_asks_for_is_told_too(bellhop, manager):
    daemon = bellhop(env=manager.env)
    assert run_cli("drain", "--socket", daemon.admin_socket).returncode == 0
    assert manager.wait_for("STOPPING", "1")["STATUS"].startswith("draining: ")
    assert daemon.wait() == 0


def test_a_reload_that_the_end_overtakes_says_ready_no_more(bellhop, tmp_path, manager):
    gate, mount = tmp_path / "gate", tmp_path / "mount"
    mount.mkdir()
    daemon = bellhop(env={**manager.env, **preloaded(SUPPORT / "held_mount.c", tmp_path), "BELLHOP_TEST_GATE": str(gate)})
    stores = json.loads(daemon.config_path.read_text())["stores"]
    rewrite(daemon, stores={**stores, "other": {"type": "filesystem", "path": str(mount)}}, claim_check={"store": "claims"})
    gate.touch()
    daemon.process.send_signal(signal.SIGHUP)
    manager.wait_for("RELOADING", "1")
    client = amqp.connect(daemon.socket)
    channel = client.channel()
    channel.call("tx.select")
    queue = channel.declare("overtaken", exclusive=True)
    channel.publish("", queue, b"1")
    daemon.sigterm()
    manager.wait_for("STOPPING", "1")
    begin = len(manager.heard)
    gate.unlink()
    daemon.wait_log("not read again: bellhop is shutting down")
    channel.call("tx.commit")
    assert daemon.wait() == 0
    assert not manager.said("READY", begin=begin)


# -- signs of life


def test_signs_of_life_come_twice_within_the_time_that_is_allowed(bellhop, tmp_path):
    with Manager(tmp_path, watchdog=0.5) as manager:
        daemon = bellhop(env=manager.env)
        wait_until(lambda: len(manager.said("WATCHDOG", "1")) >= 8)
        daemon.sigterm()
        daemon.wait()


@pytest.mark.parametrize("variables", [{"WATCHDOG_USEC": "100000", "WATCHDOG_PID": "1"}, {"WATCHDOG_USEC": "soon"}, {}],
                         ids=["for another process", "no time", "nobody"])
def test_no_signs_where_nobody_waits_for_them(bellhop, manager, tmp_path, variables):
    bellhop(env={**manager.env, **variables})
    manager.wait_for("READY")
    (tmp_path / "other").mkdir()
    with Manager(tmp_path / "other", watchdog=0.1) as other:  # the measure of the time
        bellhop(env=other.env)
        wait_until(lambda: len(other.said("WATCHDOG")) >= 10)
    assert not manager.said("WATCHDOG")


def test_a_main_loop_that_hangs_gives_no_sign_while_sessions_still_work(bellhop, broker, name, tmp_path):
    gate = tmp_path / "gate"
    with Manager(tmp_path, watchdog=0.4) as manager:
        daemon = bellhop(env={**manager.env, **preloaded(SUPPORT / "hanging_accept.c", tmp_path), "BELLHOP_TEST_GATE": str(gate)})
        up = publisher(daemon)
        queue = name()
        channel = declare(broker, queue)
        wait_until(lambda: len(manager.said("WATCHDOG")) >= 3)
        gate.touch()
        with socket.socket(socket.AF_UNIX) as visitor:
            visitor.connect(daemon.socket)  # the main loop goes to take it, and stands still

            def quiet():
                """No sign for five times as long as one may take."""
                begin, since = len(manager.said("WATCHDOG")), time.monotonic()
                while time.monotonic() < since + 1:
                    if len(manager.said("WATCHDOG")) != begin:
                        return False
                    time.sleep(0.02)
                return True
            wait_until(quiet)
            # The other threads are well: that is not what the signs are about.
            up.channel.publish("", queue, b"still")
            up.channel.confirms(1)
            assert channel.get_wait(queue).body == b"still"
            begin = len(manager.said("WATCHDOG"))
            gate.unlink()
            wait_until(lambda: len(manager.said("WATCHDOG")) >= begin + 3)


# -- a manager that is not there


@pytest.mark.parametrize("place, reason", [
    ("/nowhere/notify", "No such file or directory"), ("relative", "neither a path from the root nor an @name"),
    ("@nobody-listens-here", "Connection refused"), ("/" + "x" * 200, "the system allows 107")])
def test_a_notify_socket_that_is_none_is_one_warning(bellhop, place, reason):
    daemon = bellhop(env={"NOTIFY_SOCKET": place, "WATCHDOG_USEC": "100000"})
    assert reason in daemon.wait_log(r"warn the service manager .*").group(0)
    client = amqp.connect(daemon.socket)
    assert run_cli("reload", "--socket", daemon.admin_socket).returncode == 0
    client.close()
    daemon.sigterm()
    assert daemon.wait() == 0
    assert daemon.log.count("the service manager") == 1


def test_a_manager_that_never_reads_holds_nothing_up(bellhop, tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as deaf:
        deaf.bind(str(tmp_path / "deaf"))
        full = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        full.setblocking(False)
        with pytest.raises(BlockingIOError):
            for _ in range(100_000):
                full.sendto(b"STATUS=full", str(tmp_path / "deaf"))
        daemon = bellhop(env={"NOTIFY_SOCKET": str(tmp_path / "deaf"), "WATCHDOG_USEC": "100000"})
        amqp.connect(daemon.socket).close()
        # Room again: what matters has been kept for it.
        deaf.settimeout(10)
        while not (said := deaf.recv(4096)).startswith(b"READY=1"):
            assert said in (b"STATUS=full", b"STATUS=opening the stores"), said
        daemon.sigterm()
        assert daemon.wait() == 0
        full.close()
