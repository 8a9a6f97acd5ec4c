"""Sockets that somebody else listens on and hands over at the start, as bellhop.socket does: they are used as they are."""

import fcntl
import os
import pathlib
import socket
import stat

import pytest

from support import amqp
from support.admin import Admin
from support.bellhop import Bellhop, run_cli
from support.rabbitmq import free_port, wait_until
from support.service_manager import Manager, handing_over


def listening(path, mode=0o660):
    made = socket.socket(socket.AF_UNIX)
    made.bind(str(path))
    os.chmod(path, mode)
    made.listen(16)
    return made


def listening_tcp(host="127.0.0.1"):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, 0), family=family)
    except OSError:
        if family == socket.AF_INET6:
            pytest.skip("this host has no IPv6")
        raise


def identity(path):
    found = os.lstat(path)
    return found.st_dev, found.st_ino, stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid


@pytest.fixture
def run_folder(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    return folder


def test_a_client_that_connects_before_bellhop_runs_is_served(bellhop, run_folder, name):
    path = run_folder / "s"
    with listening(path) as made, amqp.open_socket(str(path)) as early:
        early.sendall(b"AMQP\x00\x00\x09\x01")
        early.settimeout(0.2)
        with pytest.raises(TimeoutError):
            early.recv(1)  # nobody is there
        early.settimeout(20)
        daemon = bellhop({"listen": [{"unix": str(path)}]}, **handing_over(made))
        assert early.recv(1) == b"\x01", "a method frame: connection.start"
        assert f'socket inherited address=unix:{path} descriptor=3' in daemon.log
        client = amqp.connect(str(path))
        channel = client.channel()
        queue = channel.declare(name(), exclusive=True)
        channel.publish("", queue, b"1")
        assert channel.get_wait(queue).body == b"1"


def test_systemd_s_own_tool_hands_a_socket_over(bellhop, run_folder):
    """It listens, waits for the first client, and becomes bellhop."""
    path = run_folder / "s"
    daemon = bellhop({"listen": [{"unix": str(path)}]}, start=False, wrapper=["systemd-socket-activate", "-l", str(path)])
    daemon.start(wait=False)
    wait_until(path.exists)
    client = amqp.connect(str(path))
    daemon.wait_log("socket inherited")
    client.close()


def test_its_file_is_the_same_after_the_end_and_clients_wait_for_the_next_start(bellhop, run_folder):
    path = run_folder / "s"
    with listening(path, mode=0o640) as made:
        before = identity(path)
        daemon = bellhop({"listen": [{"unix": str(path), "mode": "0600"}]}, **handing_over(made))
        line = daemon.wait_log("inherited socket has another mode than the configuration says.*").group(0)
        assert "mode=0640" in line and "configured=0600" in line
        amqp.connect(str(path)).close()
        daemon.sigterm()
        assert daemon.wait() == 0
        assert identity(path) == before
        with amqp.open_socket(str(path)) as between:  # nobody runs, and it connects
            between.sendall(b"AMQP\x00\x00\x09\x01")
            bellhop({"listen": [{"unix": str(path)}]}, **handing_over(made))
            assert between.recv(1) == b"\x01"
        killed = bellhop({"listen": [{"unix": str(path)}]}, **handing_over(made))
        killed.kill()
        assert identity(path) == before


def test_the_folder_needs_no_rights_and_its_lock_may_be_held(bellhop, run_folder):
    path = run_folder / "s"
    with listening(path) as made:
        held = os.open(run_folder, os.O_RDONLY)
        fcntl.flock(held, fcntl.LOCK_EX)
        daemon = bellhop({"listen": [{"unix": str(path)}], "admin": {"socket": str(run_folder.parent / "admin.sock")}},
                         **handing_over(made))
        amqp.connect(str(path)).close()
        os.close(held)
        assert "another process" not in daemon.log


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
def test_tcp_and_unix_and_admin_together_and_the_rest_is_opened_as_ever(bellhop, run_folder, host):
    data, admin, own = run_folder / "s", run_folder / "a", run_folder / "own"
    with listening(data) as one, listening_tcp(host.strip("[]")) as two, listening(admin, 0o600) as three, listening_tcp() as four:
        tcp, looking = f"{host}:{two.getsockname()[1]}", four.getsockname()
        daemon = bellhop({"listen": [{"unix": str(own)}, {"tcp": tcp}, {"unix": str(data)}],
                          "admin": {"socket": str(admin), "tcp": f"127.0.0.1:{looking[1]}"}},
                         **handing_over(three, two, one, four))  # in another order
        wait_until(lambda: daemon.log.count("listening address") == 3)
        assert daemon.log.count("socket inherited") == 4
        for address in (str(data), str(own)):
            amqp.connect(address).close()
        with socket.create_connection(two.getsockname()[:2]) as client:
            client.sendall(b"AMQP\x00\x00\x09\x01")
            assert client.recv(1) == b"\x01"
        assert Admin(str(admin)).get("/healthz").status == 200
        assert Admin(looking).get("/healthz").status == 200
        assert run_cli("health", "--socket", admin).returncode == 0
        before = identity(data), identity(admin)
        daemon.sigterm()
        assert daemon.wait() == 0
        assert (identity(data), identity(admin)) == before and not own.exists()


def test_the_default_admin_socket_may_be_inherited_too(bellhop, run_folder):
    with listening(run_folder / "s") as one, listening(run_folder / "admin.sock", 0o600) as two:
        daemon = bellhop({"listen": [{"unix": str(run_folder / "s")}]}, **handing_over(one, two))
        assert Admin(str(run_folder / "admin.sock")).get("/healthz").status == 200
        daemon.sigterm()
        assert daemon.wait() == 0
        assert (run_folder / "admin.sock").exists()


def test_the_peer_rules_of_the_entry_count(bellhop, run_folder):
    path = run_folder / "s"
    with listening(path) as made:
        daemon = bellhop({"listen": [{"unix": str(path), "allow_uids": [os.getuid() + 1]}]}, **handing_over(made))
        with amqp.open_socket(str(path)) as client:
            assert client.recv(1) == b""
        daemon.wait_log("peer refused by allow_uids")


def test_a_reload_keeps_the_inherited_sockets_and_their_place_cannot_change(bellhop, run_folder):
    path = run_folder / "s"
    with listening(path) as made:
        daemon = bellhop({"listen": [{"unix": str(path)}], "admin": {"socket": str(run_folder / "a")}}, **handing_over(made))
        assert run_cli("reload", "--socket", run_folder / "a").returncode == 0
        amqp.connect(str(path)).close()
        daemon.config_path.write_text(daemon.config_path.read_text().replace(str(path), str(path) + "2"))
        done = run_cli("reload", "--socket", run_folder / "a")
        assert done.returncode == 2 and "listen" in done.stderr
        amqp.connect(str(path)).close()


def test_what_was_meant_for_it_is_not_left_in_its_environment(bellhop, run_folder, tmp_path):
    """As far as it can be seen from outside: a daemon that is handed sockets for another process id takes none of them."""
    with listening(run_folder / "s") as made, Manager(tmp_path) as manager:
        daemon = bellhop({"listen": [{"unix": str(run_folder / "other")}]}, env={**manager.env, "LISTEN_FDS": "1", "LISTEN_PID": "1"})
        assert "socket inherited" not in daemon.log
        assert made.getsockname() == str(run_folder / "s")


# -- what is refused


def refusal(config, *sockets, rabbit, env=None):
    """What a daemon says that must not start."""
    daemon = Bellhop({"broker": {"url": rabbit.url}, **config}, start=False, env=env, expect_exit=2, **handing_over(*sockets))
    daemon.start(wait=False)
    assert daemon.wait() == 2, daemon.log
    daemon.stop()
    return daemon.log


def test_one_that_no_entry_is_for_is_refused_and_nothing_is_opened(rabbit, run_folder):
    wanted = run_folder / "wanted"
    with listening(run_folder / "other") as made:
        said = refusal({"listen": [{"unix": str(wanted)}]}, made, rabbit=rabbit)
        assert (f"inherited descriptor 3 (test.socket), bound to unix:{run_folder}/other, is for no entry of the configuration, allowed: "
                f"the addresses of listen and admin (unix:{wanted}, unix:{run_folder}/admin.sock); change the .socket unit or the configuration") in said
        assert not wanted.exists()


def test_a_port_that_no_entry_has_is_refused(rabbit, run_folder):
    with listening_tcp() as made:
        said = refusal({"listen": [{"tcp": f"127.0.0.1:{free_port()}"}, {"tcp": "127.0.0.1:0"}]}, made, rabbit=rabbit)
        assert f"bound to tcp:127.0.0.1:{made.getsockname()[1]}, is for no entry" in said


def test_an_abstract_name_is_refused(rabbit, run_folder):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(f"\0bellhop-test-{os.getpid()}")
        made.listen()
        assert f"the abstract name @bellhop-test-{os.getpid()}, is for no entry" in refusal({}, made, rabbit=rabbit)


def test_one_that_comes_twice_is_refused(rabbit, run_folder):
    with listening(run_folder / "s") as made:
        said = refusal({"listen": [{"unix": str(run_folder / "s")}]}, made, made, rabbit=rabbit)
        assert "inherited descriptor 3 (test.socket)" in said and "inherited descriptor 4 (test.socket)" in said
        assert "are for the same entry, allowed: one" in said


def not_listening(folder):
    made = socket.socket(socket.AF_UNIX)
    made.bind(str(folder / "s"))
    return made


def datagrams(folder):
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    made.bind(str(folder / "s"))
    return made


@pytest.mark.parametrize("make, says", [
    (not_listening, "does not listen (Accept=yes hands over connections)"), (datagrams, "is no stream socket"),
    (lambda folder: socket.socketpair()[0], "does not listen (Accept=yes hands over connections)"),
    (lambda folder: open(folder / "file", "w"), "is no socket")])
def test_what_clients_cannot_connect_to_is_refused(rabbit, run_folder, make, says):
    with make(run_folder) as made:
        said = refusal({"listen": [{"unix": str(run_folder / "s")}]}, made, rabbit=rabbit)
        assert f"inherited descriptor 3 (test.socket) {says}, allowed: listening stream sockets, Unix or TCP" in said


def test_a_socket_whose_file_is_gone_is_served_and_told(bellhop, run_folder):
    path = run_folder / "s"
    with listening(path) as made:
        path.unlink()
        daemon = bellhop({"listen": [{"unix": str(path)}]}, **handing_over(made))
        assert "No such file" in daemon.wait_log("inherited socket has no file.*").group(0)
        assert not pathlib.Path(path).exists()
