"""What the service's unit forbids, held against what bellhop does: its system calls, sockets, files and memory, as strace saw them."""

import functools
import os
import pathlib
import re
import signal
import subprocess

import pytest

from support import amqp
from support.admin import Admin
from support.bellhop import ROOT, Bellhop, run_cli
from support.claims import Consumer, body_of
from support.publishing import publisher
from support.rabbitmq import free_port
from support.service_manager import Manager

UNIT = (ROOT / "deploy" / "systemd" / "bellhop.service").read_text()


def settings(key):
    return re.findall(rf"^{key}=(.*)$", UNIT, re.M)


@functools.lru_cache(maxsize=None)
def calls_of(group):
    """The system calls of one of systemd's groups, those of the groups in it too."""
    listed = subprocess.run(["systemd-analyze", "--no-pager", "syscall-filter", group], capture_output=True, text=True, check=True).stdout
    words = [line.strip() for line in listed.splitlines()[1:] if line.strip() and not line.strip().startswith("#")]
    return frozenset().union(*(calls_of(word) if word.startswith("@") else {word} for word in words))


def allowed_calls():
    allowed = set()
    for line in settings("SystemCallFilter"):
        for word in line.lstrip("~").split():
            calls = calls_of(word) if word.startswith("@") else {word}
            allowed = allowed - calls if line.startswith("~") else allowed | calls
    return allowed


@pytest.fixture(scope="module")
def trace(tmp_path_factory, rabbit):
    """All that a bellhop does in a full life: stores, TLS or not, reload, admin, a drain. Lines of strace."""
    folder = tmp_path_factory.mktemp("sandbox")
    out, secret = tmp_path_factory.mktemp("trace") / "trace", folder / "secret"  # the secret's folder is watched
    secret.write_text("guest\n")
    tcp, looking = free_port(), free_port()
    config = {"broker": {"url": rabbit.url, "username": "guest", "password": f"${{file:{secret}}}"},
              "listen": [{"unix": "{socket}", "group": "0"}, {"tcp": f"127.0.0.1:{tcp}", "users": {"app": "p"}}],
              "stores": {"claims": {"type": "filesystem", "path": str(folder / "claims"), "group": "0", "retention": "30d"},
                         "archive": {"type": "s3", "endpoint": f"http://localhost:{free_port()}", "bucket": "bucket",
                                     "access_key": "a", "secret_key": "s", "retries": 0}},
              "claim_check": {"store": "claims", "threshold": "64KiB"},
              "admin": {"tcp": f"127.0.0.1:{looking}", "watch": True},
              "pipelines": {"p": {"steps": ["one"], "declare": True}}}
    (folder / "claims").mkdir()
    with Manager(folder, watchdog=1) as manager:
        daemon = Bellhop(config, env={**manager.env, "TMPDIR": str(folder)}, wrapper=["strace", "-f", "-qq", "-s", "200", "-o", str(out)])
        try:
            daemon.wait_log("pipelines declared")
            daemon.wait_log("store is unavailable")
            up = publisher(daemon)
            queue = up.channel.declare("sandbox", auto_delete=True)
            consumer = Consumer(daemon, queue)
            bodies = [b"small", body_of(100_000), body_of(3 << 20)]
            for body in bodies:
                up.channel.publish("", queue, body)
            up.channel.confirms(3)
            assert consumer.bodies(3) == bodies
            consumer.ack(3, multiple=True)
            amqp.connect(f"127.0.0.1:{tcp}", username="app", password="p").close()
            for place in (daemon.admin_socket, ("127.0.0.1", looking)):
                for path in ("/healthz", "/readyz", "/metrics", "/status"):
                    Admin(place).get(path)
            assert run_cli("reload", "--socket", daemon.admin_socket).returncode == 0
            daemon.process.send_signal(signal.SIGHUP)
            manager.wait_for("WATCHDOG")
            consumer.client.close()
            up.client.close()
            assert run_cli("drain", "--socket", daemon.admin_socket).returncode == 0
            assert daemon.wait(60) == 0
        except BaseException:
            print(daemon.log[-4000:])
            raise
        finally:
            # What strace watches outlives it.
            for child in pathlib.Path(f"/proc/{daemon.pid}/task/{daemon.pid}/children").read_text().split() if daemon.process.poll() is None else []:
                os.kill(int(child), signal.SIGKILL)
            daemon.kill()
            daemon.stop(check=False)
    return out.read_text(errors="replace").splitlines(), folder


def calls_made(lines):
    return {found.group(1) for found in (re.match(r"\d+ +(?:<\.\.\. )?(\w+)[( ]", line) for line in lines) if found}


def test_every_system_call_that_it_makes_is_allowed(trace):
    lines, _ = trace
    made = calls_made(lines)
    assert {"epoll_wait", "accept4", "sendto", "fsync"} <= made and made & calls_of("@chown"), "it was seen at work"
    assert made - allowed_calls() == set()


def test_the_filter_forbids_what_it_does_not_need(trace):
    allowed = allowed_calls()
    assert "fchown" in allowed and not {"ptrace", "mount", "reboot", "init_module", "setuid", "chroot", "kexec_load", "bpf"} & allowed


def test_every_kind_of_socket_that_it_opens_is_allowed(trace):
    lines, _ = trace
    opened = {found.group(1) for line in lines for found in re.finditer(r"socket(?:pair)?\((AF_\w+)", line)}
    [families] = settings("RestrictAddressFamilies")
    assert {"AF_UNIX", "AF_INET"} <= opened <= set(families.split())


def test_no_memory_is_writable_and_executable(trace):
    lines, _ = trace
    assert settings("MemoryDenyWriteExecute") == ["yes"]
    assert not [line for line in lines if re.search(r"m(map|protect)\(.*PROT_WRITE\|PROT_EXEC", line)]
    # Nor does memory that was written become executable: the same setting forbids that. The loader's own mappings are of files.
    assert not [line for line in lines if re.search(r"mprotect\(.*PROT_EXEC", line)]


def test_it_writes_below_its_own_folders_alone(trace):
    lines, folder = trace
    run = re.compile(r'openat?\((?:AT_FDCWD, )?"([^"]+)", [A-Z_|]*O_(?:WRONLY|RDWR|CREAT)')
    written = {found.group(1) for line in lines for found in [run.search(line)] if found}
    outside = {path for path in written if path.startswith("/") and not path.startswith((str(folder), "/dev/null"))}
    assert outside == set()


def test_of_proc_it_reads_what_is_its_own(trace):
    """ProcSubset=pid hides the rest. What the C library looks at beside, and does without, is named here."""
    lines, _ = trace
    read = {found.group(1) for line in lines for found in [re.search(r'openat\(AT_FDCWD, "(/proc/[^"]+)"', line)] if found}
    malloc = {"/proc/sys/vm/overcommit_memory"}  # how it gives a thread's memory back
    assert {path for path in read if not re.match(r"/proc/(self|thread-self|\d+)/", path)} <= malloc


def test_the_sandbox_knows_clients_by_their_ids():
    """With PrivateUsers every other user would be nobody, to allow_uids and to the log."""
    assert settings("PrivateUsers") == [] and settings("DynamicUser") == []
