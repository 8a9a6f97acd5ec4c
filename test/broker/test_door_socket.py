"""The listening sockets: who may connect, what the file looks like, what is done about files that are there already, and other protocols."""

import grp
import os
import socket
import stat
import subprocess
import sys

import pytest

from support import amqp
from support.bellhop import Bellhop
from support.rabbitmq import wait_until

# Connects as another user and says what came: run as a process of its own, because a process cannot become root again.
AS_NOBODY = """
import os, socket, sys
os.setgroups([]); os.setgid(int(sys.argv[2])); os.setuid(65534)
s = socket.socket(socket.AF_UNIX); s.settimeout(15)
try:
    s.connect(sys.argv[1])
    s.sendall(b"AMQP\\0\\0\\x09\\x01")
    data = s.recv(1000)
    print("served" if data[:1] == b"\\x01" else "closed")
except PermissionError:
    print("denied")
except ConnectionError:
    print("closed")
"""


def as_nobody(path, gid=65534):
    done = subprocess.run([sys.executable, "-c", AS_NOBODY, path, str(gid)], stdout=subprocess.PIPE, text=True, timeout=60)
    return done.stdout.strip()


needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")


@pytest.fixture
def open_folder(tmp_path):
    """A folder that every user may enter."""
    folder = tmp_path / "run"
    folder.mkdir()
    for each in (folder, *folder.parents[:3]):
        if each.stat().st_uid == os.getuid() and each != each.parent:
            each.chmod(each.stat().st_mode | 0o055)
    return folder


@needs_root
@pytest.mark.parametrize("rule, gid, outcome", [
    ({"mode": "0666"}, 65534, "served"),
    ({"mode": "0660"}, 65534, "denied"),
    ({"mode": "0666", "allow_uids": [0, 65534]}, 65534, "served"),
    ({"mode": "0666", "allow_uids": [0]}, 65534, "closed"),
    ({"mode": "0666", "allow_gids": [12345]}, 12345, "served"),
    ({"mode": "0666", "allow_gids": [12345]}, 65534, "closed"),
    ({"mode": "0666", "allow_uids": [0], "allow_gids": [12345]}, 12345, "served"),
    ({"mode": "0660", "group": "12345"}, 12345, "served"),
])
def test_the_mode_and_the_peer_lists_decide_who_connects(bellhop, open_folder, rule, gid, outcome):
    daemon = bellhop({"listen": [{"unix": str(open_folder / "s"), **rule}]})
    assert as_nobody(daemon.socket, gid) == outcome
    if outcome == "closed":
        assert "uid=65534" in daemon.wait_log(r"peer refused.*").group(0)


@needs_root
def test_the_socket_has_its_mode_and_group(bellhop):
    group = grp.getgrall()[-1]
    daemon = bellhop({"listen": [{"unix": "{socket}", "mode": "0620", "group": group.gr_name}]})
    found = os.stat(daemon.socket)
    assert (stat.S_IMODE(found.st_mode), found.st_gid) == (0o620, group.gr_gid)


def leave_stale(path):
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(path))


def test_a_stale_socket_is_replaced(bellhop, tmp_path):
    leave_stale(tmp_path / "s")
    daemon = bellhop({"listen": [{"unix": str(tmp_path / "s")}]})
    amqp.connect(daemon.socket).close()


def test_a_socket_that_somebody_listens_on_is_left_to_them(bellhop, rabbit, tmp_path):
    first = bellhop({"listen": [{"unix": str(tmp_path / "s")}]})
    second = Bellhop({"listen": [{"unix": str(tmp_path / "s")}], "broker": {"url": rabbit.url}}, start=False, expect_exit=1)
    second.start(wait=False)
    assert second.wait() == 1
    assert "another process listens there" in second.log
    second.stop()
    amqp.connect(first.socket).close()


def test_a_file_in_the_way_is_left_alone(rabbit, tmp_path):
    (tmp_path / "s").write_text("precious")
    daemon = Bellhop({"listen": [{"unix": str(tmp_path / "s")}], "broker": {"url": rabbit.url}}, start=False, expect_exit=1)
    daemon.start(wait=False)
    assert daemon.wait() == 1
    assert "not a socket" in daemon.log
    daemon.stop()
    assert (tmp_path / "s").read_text() == "precious"


def test_a_path_that_is_too_long_is_a_configuration_error(rabbit):
    daemon = Bellhop({"listen": [{"unix": "/tmp/" + "x" * 120}], "broker": {"url": rabbit.url}}, start=False, expect_exit=2)
    daemon.start(wait=False)
    assert daemon.wait() == 2
    assert "107" in daemon.log
    daemon.stop()


def test_the_file_goes_with_the_daemon_but_not_a_newer_daemons(bellhop, tmp_path):
    daemon = bellhop({"listen": [{"unix": str(tmp_path / "s")}]})
    daemon.sigterm()
    assert daemon.wait() == 0
    assert not (tmp_path / "s").exists()

    daemon = bellhop({"listen": [{"unix": str(tmp_path / "s")}]})
    os.unlink(tmp_path / "s")
    leave_stale(tmp_path / "s")
    daemon.sigterm()
    assert daemon.wait() == 0
    assert (tmp_path / "s").exists()


def talk(address, said):
    """Sends bytes and returns all that comes until the end."""
    with amqp.open_socket(address) as sock:
        sock.sendall(said)
        got = b""
        while part := sock.recv(4096):
            got += part
        return got


@pytest.mark.parametrize("request_line", [b"GET / HTTP/1.1", b"POST /publish HTTP/1.1", b"DELETE /x HTTP/1.0", b"OPTIONS * HTTP/1.1"])
def test_http_is_told_that_it_is_not_served(bellhop, request_line):
    head, _, body = talk(bellhop().socket, request_line + b"\r\nHost: x\r\n\r\n").partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 501 ")
    assert f"Content-Length: {len(body)}".encode() in head
    assert body.startswith(b'{"error":') and body.count(b"\n") == 1 and body.endswith(b"}\n")


@pytest.mark.parametrize("said", [b"AMQP\x00\x01\x00\x00", b"AMQP\x03\x01\x00\x00", b"AMQP\x01\x01\x08\x00", b"\x16\x03\x01\x02\x00\x01\x00\x01",
                                  b"AMQP\x00\x00\x09\x00" + b"more" * 100])
def test_another_protocol_is_answered_with_the_one_that_is_spoken(bellhop, said):
    assert talk(bellhop().socket, said) == amqp.PROTOCOL_HEADER


def test_sessions_beyond_the_limit_are_told_so(bellhop):
    daemon = bellhop({"limits": {"sessions": 2, "tcp_sessions": 1}, "listen": [{"unix": "{socket}"}, {"tcp": "127.0.0.1:0"}]})
    tcp = daemon.wait_log(r"listening address=tcp:(\S+)").group(1)
    first = amqp.connect(tcp)
    for address, limit in ((tcp, "tcp_sessions"),):
        with pytest.raises(amqp.ConnectionClosed) as refused:
            amqp.connect(address)
        assert refused.value.code == 530 and limit in refused.value.text
    second = amqp.connect(daemon.socket)
    with pytest.raises(amqp.ConnectionClosed) as refused:
        amqp.connect(daemon.socket)
    assert refused.value.code == 530 and "limits.sessions" in refused.value.text
    second.close()

    def served():
        try:
            return amqp.connect(daemon.socket)
        except amqp.ConnectionClosed:
            return None

    wait_until(served, what="a place that a closed session left").close()
    first.close()


@pytest.mark.parametrize("listener", ["unix", "tcp"])
def test_a_client_that_comes_back_after_its_close_does_not_meet_its_own_last_session(bellhop, listener):
    daemon = bellhop({"limits": {"sessions": 1, "tcp_sessions": 1}, "listen": [{"unix": "{socket}"}, {"tcp": "127.0.0.1:0"}]})
    address = daemon.socket if listener == "unix" else daemon.wait_log(r"listening address=tcp:(\S+)").group(1)
    client = amqp.connect(address)
    for _ in range(50):
        client.send(0, "connection.close", reply_code=200)
        client.wait_for("connection.close-ok", 0)
        last, client = client, amqp.connect(address)
        with pytest.raises(amqp.ConnectionClosed):
            amqp.connect(address)
        last.abort()
    client.close()


def test_sessions_that_were_told_goodbye_and_stay_are_not_forgiven_without_end(bellhop):
    daemon = bellhop({"limits": {"sessions": 1}})
    staying = []
    with pytest.raises(amqp.ConnectionClosed) as refused:
        for _ in range(40):
            staying.append(amqp.connect(daemon.socket))
            staying[-1].send(0, "connection.close", reply_code=200)
            staying[-1].wait_for("connection.close-ok", 0)
    assert refused.value.code == 530
