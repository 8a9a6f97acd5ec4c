"""What deploy/demo and test/run say on a host where something is missing that they cannot put there."""

import os
import shutil
import signal
import subprocess

import pytest

from support.bellhop import ROOT
from support.rabbitmq import wait_until

SETUP = f'set -eu -o pipefail; ROOT={ROOT}; . "$ROOT/deploy/setup.sh"; '


@pytest.fixture
def host(tmp_path):
    """A host with these commands alone, and a shell on it."""
    def command(name, script):
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def shell(script):
        return subprocess.run(["/bin/bash", "-c", SETUP + script], env={"PATH": str(tmp_path)}, capture_output=True, text=True, timeout=60)

    for name in ("grep", "cat"):
        os.symlink(shutil.which(name), tmp_path / name)
    command("dpkg-query", "exit 1")
    shell.command = command
    return shell


@pytest.mark.parametrize("sudo", [None, "echo sorry >&2; exit 1"], ids=["no sudo", "sudo says no"])
def test_a_user_who_may_not_install_gets_the_line_for_the_administrator(host, sudo):
    host.command("id", "echo 1000")
    if sudo:
        host.command("sudo", sudo)
    done = host("install_packages build broker")
    assert done.returncode == 1 and done.stdout == ""
    [line] = [line.split() for line in done.stderr.splitlines() if "apt-get" in line]
    assert line[:6] == ["apt-get", "update", "&&", "apt-get", "install", "--no-install-recommends"]
    assert {"rabbitmq-server", "cmake"} <= set(line)
    assert "systemctl disable --now rabbitmq-server" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM, None], ids=["hang-up", "Ctrl-C", "end", "apt fails"])
def test_what_keeps_services_from_starting_is_gone_when_the_installation_is_interrupted(tmp_path, number):
    policy, begun = tmp_path / "policy-rc.d", tmp_path / "begun"
    host = tmp_path / "host"
    host.mkdir()
    for name, script in {"id": "echo 0", "dpkg-query": "exit 1", "apt-get": f"echo > {begun}; exec cat {tmp_path}/wait" if number else "exit 100"}.items():
        (host / name).write_text(f"#!/bin/sh\n{script}\n")
        (host / name).chmod(0o755)
    os.mkfifo(tmp_path / "wait")
    (tmp_path / "build").mkdir()
    script = SETUP + f'ROOT={tmp_path}; mkdir $ROOT/test; echo "build some-package" >$ROOT/test/packages; install_packages build'
    process = subprocess.Popen(["/bin/bash", "-c", script], env={"PATH": f"{host}:{os.environ['PATH']}", "BELLHOP_POLICY_FILE": str(policy)},
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    if number:
        wait_until(begun.exists, what="the installation under way")
        assert policy.read_text() == "#!/bin/sh\nexit 101\n"
        os.killpg(process.pid, number)
    assert process.wait(60) != 0
    wait_until(lambda: not policy.exists(), what="the policy to be gone")


def test_a_user_needs_nobody_when_nothing_is_missing(host):
    host.command("id", "echo 1000")
    host.command("dpkg-query", "echo installed")
    done = host("install_packages build broker")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("answer, code", [
    ("exit 2", 1), ("echo '10.1.2.3 STREAM localhost'", 1), ("echo '127.0.0.1 STREAM localhost'; echo '127.0.0.1 DGRAM'", 0)])
def test_a_host_without_localhost_is_told_first(host, answer, code):
    host.command("getent", answer)
    done = host("needs_localhost")
    assert done.returncode == code
    assert ("127.0.0.1 localhost" in done.stderr) == (code == 1)
