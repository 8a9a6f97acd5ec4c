"""Starting before something is there: one line says what bellhop lacks, or waits for, with the key and what to do. Exit code 1: a restart may
help; 2: it cannot."""

import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys

import pytest

from support import amqp
from support.bellhop import Bellhop, binary, run_cli
from support.certificates import shared_authority
from support.gate import SUPPORT, preloaded
from support.publishing import publisher
from support.rabbitmq import free_port

@pytest.fixture
def start(tmp_path, rabbit):
    """start({...}) -> (exit code, the lines that say why) of a bellhop that does not start. A str is the file's text."""
    def run(config, env=None):
        file = tmp_path / "bellhop.yaml"
        if isinstance(config, dict):
            config = json.dumps({"broker": {"url": rabbit.url}, "listen": [{"unix": str(tmp_path / "s")}], **config})
        if config is not None:
            file.write_text(config)
        done = run_cli("run", "--config", file, env=env)
        return done.returncode, [line for line in done.stderr.splitlines() if " info " not in line]
    return run


# -- files: the configuration, secrets, TLS


def test_a_configuration_that_is_not_there(start, tmp_path):
    assert start(None) == (1, [f"{tmp_path}/bellhop.yaml: cannot be read: No such file or directory; create or mount it first"])


def test_a_configuration_that_is_a_folder(tmp_path):
    done = run_cli("run", "--config", tmp_path)
    assert (done.returncode, done.stderr) == (1, f"{tmp_path}: cannot be read: Is a directory\n")


@pytest.mark.parametrize("broker", [
    {"url": "amqp://127.0.0.1", "username": "u", "password": "${file:/nowhere/p}"},
    {"url": "amqp://127.0.0.1", "username": "${file:/nowhere/p}", "password": "p"},
    {"url": "amqp://u:${file:/nowhere/p}@127.0.0.1"},
], ids=["password", "username", "URL"])
def test_a_secret_file_that_is_not_there(start, broker, tmp_path):
    code, [line] = start({"broker": broker})
    assert code == 1
    assert re.fullmatch(re.escape(f"{tmp_path}/bellhop.yaml:") + r"1:\d+: broker\.(password|username|url): "
                        "file '/nowhere/p' cannot be read: No such file or directory; create or mount it first", line)


@pytest.mark.parametrize("more", [{}, {"username": "u", "password": "p"}])
def test_a_secret_of_a_user_or_a_bucket_that_is_not_there(start, tmp_path, more):
    code, [line] = start({"broker": {"url": "amqp://127.0.0.1", **more}, "listen": [{"tcp": "127.0.0.1:0", "users": {"app": "${file:/nowhere/p}"}}]})
    assert code == 1 and "listen[0].users.app: file '/nowhere/p' cannot be read" in line
    code, [line] = start({"stores": {"s3": {"type": "s3", "bucket": "bucket", "access_key": "a", "secret_key": "${file:/nowhere/k}"}}})
    assert code == 1 and "stores.s3.secret_key: file '/nowhere/k' cannot be read" in line


@pytest.mark.parametrize("key", ["ca", "cert", "key"])
def test_a_tls_file_that_is_not_there(start, key, tls_rabbit):
    authority = shared_authority()
    own = authority.issue("bellhop")
    tls = {"ca": authority.ca, "cert": own.cert, "key": own.key, key: "/nowhere/x.pem"}
    code, [line] = start({"broker": {"url": f"amqps://{tls_rabbit.tls_address}", "tls": tls}})
    assert code == 1
    assert f"broker.tls.{key}: file '/nowhere/x.pem' cannot be read: No such file or directory; create or mount it first, allowed: a readable PEM file" in line


def test_what_is_there_but_is_no_certificate_is_wrong_for_good(start, tls_rabbit, tmp_path):
    (tmp_path / "ca.pem").write_text("none")
    code, [line] = start({"broker": {"url": f"amqps://{tls_rabbit.tls_address}", "tls": {"ca": str(tmp_path / "ca.pem")}}})
    assert code == 2 and "broker.tls.ca" in line


def test_wrong_text_beside_a_missing_file_is_wrong_for_good_and_both_are_told(start):
    code, lines = start({"broker": {"url": "amqp://127.0.0.1", "username": "u", "password": "${file:/nowhere/p}"}, "serivce": "x"})
    assert code == 2 and len(lines) == 2


def test_a_variable_that_is_not_set_is_wrong_for_good(start):
    code, [line] = start({"service": "${BELLHOP_TEST_NONE}"})
    assert code == 2 and "service: environment variable BELLHOP_TEST_NONE is not set" in line


AS_NOBODY = "import os, sys; os.setgroups([]); os.setgid(65534); os.setuid(65534); os.execv(sys.argv[1], sys.argv[1:])"


@pytest.fixture
def start_as_nobody(tmp_path, rabbit):
    """The same for a user without rights."""
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    for each in (tmp_path, *tmp_path.parents[:3]):
        if each != each.parent:
            each.chmod(each.stat().st_mode | 0o055)
    # The program may lie where that user cannot go.
    program = pathlib.Path(shutil.copy(binary(), tmp_path / "bellhop"))
    program.chmod(0o755)

    def run(config, mode=0o644):
        file = tmp_path / "bellhop.yaml"
        file.write_text(json.dumps({"broker": {"url": rabbit.url}, **config}))
        file.chmod(mode)
        done = subprocess.run([sys.executable, "-c", AS_NOBODY, program, "run", "--config", file], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=60)
        return done.returncode, [line for line in done.stderr.splitlines() if " info " not in line]
    return run


def test_files_that_its_user_may_not_read(start_as_nobody, tmp_path):
    assert start_as_nobody({}, mode=0o600) == (1, [f"{tmp_path}/bellhop.yaml: cannot be read: Permission denied; let bellhop's user (uid 65534) read it"])
    (tmp_path / "secret").write_text("x")
    (tmp_path / "secret").chmod(0o600)
    code, [line] = start_as_nobody({"broker": {"url": "amqp://127.0.0.1", "username": "u", "password": f"${{file:{tmp_path}/secret}}"}})
    assert code == 1 and line.endswith("Permission denied; let bellhop's user (uid 65534) read it")


def test_a_socket_folder_that_its_user_may_not_write(start_as_nobody, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir(mode=0o755)
    code, lines = start_as_nobody({"listen": [{"unix": str(folder / "s")}]})
    assert code == 1
    assert f"listen: unix: {folder}/s: cannot bind: Permission denied; make the socket's folder writable for bellhop's user (uid 65534)" in lines[-1]


def test_a_port_that_only_root_may_have(start_as_nobody):
    limit = int(pathlib.Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text())
    if limit == 0:
        pytest.skip("this host gives every port to everybody")
    code, lines = start_as_nobody({"listen": [{"tcp": "127.0.0.1:1"}]})
    assert code == 1 and "listen: tcp: 127.0.0.1:1: cannot bind: Permission denied; choose a port from 1024 on: lower ones are root's" in lines[-1]


# -- places of sockets


def cannot_start(line):
    return re.search(r'error cannot start reason="(.*)"$', line).group(1)


def test_a_socket_folder_that_is_not_there(start, tmp_path):
    code, lines = start({"listen": [{"unix": f"{tmp_path}/none/s"}]})
    assert code == 1
    assert cannot_start(lines[-1]) == (f"listen: unix: {tmp_path}/none/s: cannot bind: No such file or directory; "
                                       "create the socket's folder, writable for bellhop's user")


def test_a_socket_folder_that_is_none(start, tmp_path):
    (tmp_path / "file").write_text("")
    code, lines = start({"listen": [{"unix": f"{tmp_path}/file/s"}]})
    assert code == 1 and f"listen: unix: {tmp_path}/file/s" in cannot_start(lines[-1])


def test_an_address_in_use(start):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, lines = start({"listen": [{"tcp": f"127.0.0.1:{port}"}]})
        assert code == 1
        assert cannot_start(lines[-1]) == (f"listen: tcp: 127.0.0.1:{port}: cannot bind: Address already in use; "
                                           "end the process that listens there, or choose another port")


def test_an_address_that_this_host_does_not_have(start):
    code, lines = start({"listen": [{"tcp": "192.0.2.1:5672", "users": {"u": "p"}}]})
    assert code == 1
    assert cannot_start(lines[-1]) == ("listen: tcp: 192.0.2.1:5672: cannot bind: Cannot assign requested address; "
                                       "this host has no such address: choose one that it has")


def test_a_socket_that_another_process_has(start, bellhop, tmp_path):
    bellhop({"listen": [{"unix": str(tmp_path / "s")}]})
    code, lines = start({})
    assert code == 1
    assert cannot_start(lines[-1]) == f"listen: unix: {tmp_path}/s: another process listens there; end it or choose another path"


def test_a_group_that_is_not_there(start, tmp_path):
    code, lines = start({"listen": [{"unix": str(tmp_path / "s"), "group": "no-such-group"}]})
    assert code == 1 and cannot_start(lines[-1]) == "listen: group: this host has no group 'no-such-group'"


def test_the_place_of_an_admin_socket_that_is_named_must_be_there(start, tmp_path):
    code, lines = start({"admin": {"socket": f"{tmp_path}/none/admin.sock"}})
    assert code == 1
    assert cannot_start(lines[-1]) == (f"admin.socket: listen: unix: {tmp_path}/none/admin.sock: cannot bind: No such file or directory; "
                                       "create the socket's folder, writable for bellhop's user")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, lines = start({"admin": {"tcp": f"127.0.0.1:{taken.getsockname()[1]}"}})
        assert code == 1 and cannot_start(lines[-1]).startswith("admin.tcp: listen: tcp: 127.0.0.1:")
    assert not (tmp_path / "s").exists(), "what was opened before is gone again"


def test_the_default_admin_socket_is_not_worth_an_end(bellhop, tmp_path):
    (tmp_path / "admin.sock").write_text("a file of somebody's")
    daemon = bellhop({"listen": [{"unix": str(tmp_path / "s")}]})
    line = daemon.wait_log("there is no admin socket; to have one, set admin.socket.*").group(0)
    assert f"{tmp_path}/admin.sock: a file that is not a socket is in the way" in line
    amqp.connect(daemon.socket).close()


# -- stores


def test_a_store_folder_that_is_a_file(start, tmp_path):
    (tmp_path / "claims").write_text("")
    code, lines = start({"stores": {"claims": {"type": "filesystem", "path": str(tmp_path / "claims")}}})
    assert code == 1 and cannot_start(lines[-1]) == f"store 'claims': {tmp_path}/claims is not a directory"


def test_a_store_folder_that_is_not_there_is_waited_for(bellhop, tmp_path):
    store = {"type": "filesystem", "path": str(tmp_path / "claims")}
    daemon = bellhop({"stores": {"claims": store}})
    line = daemon.wait_log("store is not there: until it is bellhop nacks publishes that need it, and holds deliveries.*").group(0)
    assert "store=claims key=stores.claims.path" in line and "No such file or directory" in line
    assert 'advice="mount it; a new folder: create it and start bellhop again, which marks it as the store"' in line
    amqp.connect(daemon.socket).close()


def test_a_bucket_that_does_not_answer_or_refuses_is_waited_for(bellhop, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        endpoint = f"http://127.0.0.1:{server.getsockname()[1]}"
        server.close()
        daemon = bellhop({"stores": {"archive": {"type": "s3", "endpoint": endpoint, "bucket": "bucket", "access_key": "a", "secret_key": "s"}}})
        line = daemon.wait_log("store is unavailable: until it is back.*").group(0)
        assert "store=archive key=stores.archive" in line and endpoint in line
        amqp.connect(daemon.socket).close()


def test_a_store_that_stands_still_at_the_start_is_named(bellhop, tmp_path):
    gate = tmp_path / "gate"
    (tmp_path / "mount").mkdir()
    gate.touch()
    daemon = Bellhop({"broker": {"url": "amqp://127.0.0.1:1"}, "stores": {"claims": {"type": "filesystem", "path": str(tmp_path / "mount")}}},
                     env={**preloaded(SUPPORT / "held_mount.c", tmp_path), "BELLHOP_TEST_GATE": str(gate)}, start=False)
    daemon.start(wait=False)
    try:
        line = daemon.wait_log("waits for a store that does not answer: is its mount dead?.*").group(0)
        assert f"store=claims key=stores.claims path={tmp_path}/mount" in line and "listening" not in daemon.log
        gate.unlink()
        daemon.wait_log("the store has answered store=claims")
        daemon.wait_log("listening")
    finally:
        gate.unlink(missing_ok=True)
        daemon.stop()


# -- the broker


def test_a_broker_that_is_not_there_is_waited_for_and_its_coming_is_told(bellhop, rabbit):
    port = free_port()
    daemon = bellhop({"broker": {"url": f"amqp://127.0.0.1:{port}", "username": "guest", "password": "guest"}})
    line = daemon.wait_log("broker cannot be reached at start, bellhop serves all the same.*").group(0)
    assert f"broker=amqp://127.0.0.1:{port} key=broker.url" in line and "Connection refused" in line
    forward = subprocess.Popen(["socat", f"TCP-LISTEN:{port},bind=127.0.0.1,fork,reuseaddr", f"TCP:{rabbit.upstream}"])
    try:
        daemon.wait_log("broker lets bellhop in")
        publisher(daemon).client.close()
        assert daemon.log.count("broker cannot be reached at start") == 1
    finally:
        forward.terminate()
        forward.wait()


def test_a_refused_login_names_what_to_look_at(bellhop):
    daemon = bellhop({"broker": {"username": "guest", "password": "wrong"}})
    line = daemon.wait_log("broker refuses bellhop's login: check the credentials under broker in the configuration.*").group(0)
    assert "ACCESS_REFUSED" in line and "wrong" not in line.partition("reason=")[2].replace("wrong credentials", "")
