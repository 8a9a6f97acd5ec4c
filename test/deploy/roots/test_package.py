"""The Debian package, as deploy/package builds it: installed, used, upgraded, removed and purged in fresh Debian 12 roots."""

import os
import re
import shutil
import signal
import subprocess

import pytest

from support import amqp
from support.container import as_user
from support.debian_root import DebianRoot
from support.documents import ROOT
from support.publishing import MIB, declare, key_of, pattern
from support.rabbitmq import wait_until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may enter other roots")

VERSION = re.search(r"^project\(bellhop VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]
CONFIG = "/etc/bellhop/bellhop.yaml"
STATE = "/var/lib/bellhop"
UNITS = ["bellhop.service", "bellhop.socket"]
AS_BELLHOP = ["setpriv", "--reuid=bellhop", "--regid=bellhop", "--init-groups"]
SERVICE = 1234  # another user, who is in the group
KEEP = ["-o", "Dpkg::Options::=--force-confdef", "-o", "Dpkg::Options::=--force-confold"]

# What every installation of whatever package changes, or what belongs to another program and says when something was done.
NOT_OURS = {"/proc", "/sys", "/dev", "/tmp", "/root", "/var/log", "/var/cache/apt", "/var/lib/apt", "/var/cache/ldconfig/aux-cache",
            "/var/lib/dpkg/status-old", "/var/lib/dpkg/lock", "/var/lib/dpkg/triggers/Lock",
            # The last state but one of the users, which useradd and its like keep.
            "/etc/passwd-", "/etc/group-", "/etc/shadow-", "/etc/gshadow-", "/etc/.pwd.lock"}

# In the place of systemctl, as if systemd ran: it notes what it is asked, and whether the former version's files are still there.
SYSTEMCTL = """#!/bin/sh
former=$(test -e /usr/share/doc/bellhop/former && echo ' (former)')
echo "$*$former" >>/root/systemctl.log
case "$*" in
  *is-active*) test -e /root/active && echo active ;;
  *is-enabled*) exec /usr/bin/systemctl --root=/ "$@" ;;
esac
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """Built once; or the file that BELLHOP_TEST_PACKAGE names, with its .changes beside it."""
    if "BELLHOP_TEST_PACKAGE" in os.environ:
        return os.environ["BELLHOP_TEST_PACKAGE"]
    folder = tmp_path_factory.mktemp("package")
    done = subprocess.run([ROOT / "deploy" / "package", folder], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=3000)
    assert done.returncode == 0, done.stdout
    [file] = folder.glob(f"bellhop_{VERSION}-1_*.deb")
    assert str(file) in done.stdout.splitlines()
    return str(file)


@pytest.fixture(scope="module")
def former(package, tmp_path_factory):
    """The same with a lower version, with another configuration to begin with, and a file that this version has not."""
    folder = tmp_path_factory.mktemp("former")
    tree = folder / "tree"
    subprocess.run(["dpkg-deb", "-R", package, tree], check=True)
    control = tree / "DEBIAN" / "control"
    control.write_text(re.sub(r"^Version: .*", "Version: 0.1.9-1", control.read_text(), flags=re.M))
    config = tree / CONFIG[1:]
    config.write_text(config.read_text() + "# the former version's last line\n")
    (tree / "usr" / "share" / "doc" / "bellhop" / "former").write_text("")
    file = folder / "bellhop_0.1.9-1.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", tree, file], check=True, stdout=subprocess.DEVNULL)
    return file


@pytest.fixture(scope="module")
def installed(package):
    """A fresh root into which apt has installed it, with what it depends on and nothing else."""
    with DebianRoot() as debian:
        debian.installation = debian.apt(debian.put(package)).stdout
        yield debian


def edit(debian, broker):
    """What the operator does."""
    config = debian.path(CONFIG)
    config.write_text(config.read_text().replace("EDIT-ME", broker))


def test_lintian_finds_nothing(package):
    changes = re.sub(r"\.deb$", ".changes", package)
    done = subprocess.run(["lintian", "-E", "--pedantic", "--allow-root", changes], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "")


def test_what_is_installed_has_the_right_owners_and_modes(installed):
    files = [line for line in installed.run("dpkg", "-L", "bellhop").stdout.split() if not installed.path(line).is_dir()]
    assert {installed.facts(file) for file in files if file != CONFIG} == {"root:root 644", "root:root 755"}
    assert [file for file in files if os.access(installed.path(file), os.X_OK)] == ["/usr/bin/bellhop"]
    # It will hold the broker's password: bellhop reads it, others do not.
    assert installed.facts(CONFIG) == "root:bellhop 640"
    assert installed.run("dpkg-query", "-W", "-f", "${Conffiles}", "bellhop").stdout.split()[0] == CONFIG
    assert installed.run("dpkg", "--verify", "bellhop").stdout == ""


def test_it_has_what_cmake_install_puts_where_debian_wants_it(installed, tmp_path):
    build = ROOT / "build" / "dev"
    subprocess.run(["cmake", "--install", build, "--prefix", "/usr"], env={**os.environ, "DESTDIR": str(tmp_path)}, check=True,
                   stdout=subprocess.DEVNULL)
    moved = {"/usr/lib/systemd/": "/lib/systemd/", "/zsh/site-functions/": "/zsh/vendor-completions/", "CHANGELOG.md": "changelog", "LICENSE": "copyright"}
    expected = set()
    for path in tmp_path.rglob("*"):
        if not path.is_dir():
            name = f"/{path.relative_to(tmp_path)}"
            for here, there in moved.items():
                name = name.replace(here, there)
            expected.add(name)
    files = {line.removesuffix(".gz") for line in installed.run("dpkg", "-L", "bellhop").stdout.split() if not installed.path(line).is_dir()}
    assert files - expected == {"/usr/share/doc/bellhop/changelog.Debian", "/usr/share/lintian/overrides/bellhop"}
    assert expected - files == set()


def test_the_program_runs_with_what_the_package_depends_on(installed):
    """The two libraries that are loaded late, too."""
    said = installed.run("bellhop", "--version").stdout
    assert said.startswith(f"bellhop {VERSION}\n")
    assert re.search(r"^commit: [0-9a-f]{12}(-dirty)?$", said, flags=re.M)
    assert re.search(r"^loaded when needed: libcurl [\d.]+, libmicrohttpd [\d.]+$", said, flags=re.M)


def test_the_user_is_there_and_nothing_is_enabled(installed):
    assert re.fullmatch(r"bellhop:x:\d+:\d+:[^:]*:/var/lib/bellhop:/usr/sbin/nologin\n", installed.run("getent", "passwd", "bellhop").stdout)
    assert installed.run("id", "-Gn", "bellhop").stdout == "bellhop\n"
    assert installed.run("systemctl", "is-enabled", *UNITS, check=False).stdout.split() == ["disabled", "disabled"]
    assert f"now write your broker's address into {CONFIG}, then: systemctl enable --now bellhop" in installed.installation


def test_the_units_are_good(installed):
    done = installed.run("systemd-analyze", "verify", "--man=no", *(f"/lib/systemd/system/{unit}" for unit in UNITS))
    assert done.stdout == ""


def test_the_man_pages_render_and_are_where_the_units_say(installed):
    for unit in UNITS:
        text = installed.path(f"/lib/systemd/system/{unit}").read_text()
        for name, section in re.findall(r"man:([\w.]+)\((\d)\)", text):
            page = installed.path(f"/usr/share/man/man{section}/{name}.{section}.gz")
            done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", page], capture_output=True, text=True)
            assert (done.returncode, done.stderr) == (0, "")
            assert "/etc/bellhop/bellhop.yaml" in done.stdout


def test_the_completions_are_where_the_shells_look(installed):
    for path in ("/usr/share/bash-completion/completions/bellhop", "/usr/share/zsh/vendor-completions/_bellhop",
                 "/usr/share/fish/vendor_completions.d/bellhop.fish"):
        assert "log-level" in installed.path(path).read_text()


def test_it_does_not_start_before_its_file_is_edited(installed):
    """And says so in one line; the exit code keeps systemd from trying again."""
    done = installed.run(*AS_BELLHOP, "bellhop", "run", "--config", CONFIG, check=False)
    assert done.returncode == 2
    assert re.fullmatch(rf"{CONFIG}:\d+:\d+: broker\.url: has still to be edited: .*\n", done.stdout)
    assert "\nRestartPreventExitStatus=2\n" in installed.path("/lib/systemd/system/bellhop.service").read_text()


def make_folders(debian):
    """Those that systemd makes before the service starts."""
    service = debian.path("/lib/systemd/system/bellhop.service").read_text()
    for setting, above in (("StateDirectory", "/var/lib"), ("RuntimeDirectory", "/run")):
        names = re.search(rf"^{setting}=(.*)$", service, flags=re.M)[1].split()
        mode = re.search(rf"^{setting}Mode=(.*)$", service, flags=re.M)[1]
        for name in names:
            debian.run("install", "-d", "-o", "bellhop", "-g", "bellhop", "-m", mode, f"{above}/{name}")


def test_a_large_message_goes_through_it_and_an_upgrade_and_a_purge_keep_what_is_the_operators(installed, package, rabbit, name):
    edit(installed, rabbit.url)
    make_folders(installed)
    broker = amqp.connect(rabbit.address)
    queue = name("orders")
    held = declare(broker, queue, durable=True)
    body = pattern(2 * MIB)
    group = int(installed.run("id", "-g", "bellhop").stdout)
    daemon = subprocess.Popen(installed.command(*AS_BELLHOP, "/usr/bin/bellhop", "run", "--config", CONFIG), stderr=subprocess.PIPE, text=True)
    try:
        socket = installed.path("/run/bellhop/bellhop.sock")
        wait_until(socket.exists, what="bellhop's socket")
        assert installed.facts("/run/bellhop/bellhop.sock") == "bellhop:bellhop 660"

        def consume():
            client = amqp.connect(str(socket))
            channel = client.channel()
            channel.call("basic.consume", queue=queue)
            assert channel.deliver().body == body
            client.close()  # without an ack: the message waits on

        publish = installed.path("/usr/share/doc/bellhop/deploy/publish.py")
        done = subprocess.run(["/usr/bin/python3", "-B", publish, socket, queue, "-"], input=body, user=SERVICE, group=SERVICE, extra_groups=[group],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert (done.returncode, done.stdout.decode()) == (0, f"confirmed: {len(body)} bytes in queue {queue}\n")
        as_user(consume, SERVICE, SERVICE, [group])
        claim = held.get_wait(queue, no_ack=False)
        payload = f"{STATE}/claims/{key_of(claim)}"
        assert installed.facts(payload) == "bellhop:bellhop 640"
        assert installed.run("bellhop", "status").stdout
    finally:
        daemon.send_signal(signal.SIGTERM)
        said = daemon.communicate(timeout=60)[1]
    assert daemon.returncode == 0, said
    held.call("queue.delete", queue=queue)
    broker.close()

    # The configuration that the package brings is the one it had: nobody is asked.
    text = installed.path(CONFIG).read_text()
    installed.apt("--reinstall", installed.put(package))
    assert (installed.path(CONFIG).read_text(), installed.facts(CONFIG)) == (text, "root:bellhop 640")

    # The message still waits, and needs its payload.
    said = installed.run("apt-get", "purge", "-y", "-q", "bellhop").stdout
    assert f"{STATE} is not empty: it stays, and so do the user and the group bellhop" in said
    assert installed.path(payload).read_bytes() == body
    assert installed.facts(payload) == "bellhop:bellhop 640"
    assert not installed.path("/etc/bellhop").exists() and not installed.path("/run/bellhop").exists()


def depends(package):
    return subprocess.run(["dpkg-deb", "-f", package, "Depends"], capture_output=True, text=True, check=True).stdout.strip()


def test_it_is_upgraded_removed_and_purged_without_a_trace(package, former):
    with DebianRoot() as debian:
        debian.run("apt-get", "satisfy", "-y", "-q", "--no-install-recommends", depends(package))
        log, active = debian.path("/root/systemctl.log"), debian.path("/root/active")
        log.write_text("")
        debian.path("/usr/local/bin/systemctl").write_text(SYSTEMCTL)
        debian.path("/usr/local/bin/systemctl").chmod(0o755)
        debian.path("/etc/apt/apt.conf.d/path").write_text('DPkg::Path "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";\n')
        debian.path("/run/systemd/system").mkdir(parents=True, exist_ok=True)
        before = debian.snapshot(NOT_OURS)

        def asked():
            """What systemd was asked to do, and forgets it."""
            lines = [line for line in log.read_text().splitlines() if re.search(r"(^| )(start|stop|restart|try-restart|enable|disable) ", line)]
            log.write_text("")
            return lines

        # The former version, edited. It is not enabled, so nothing starts, now or later.
        debian.apt(debian.put(former))
        assert asked() == []
        edit(debian, "amqp://app:secret@rabbitmq.internal")
        edited = debian.path(CONFIG).read_text()
        debian.apt(*KEEP, debian.put(package))
        assert asked() == []
        assert debian.run("dpkg-query", "-W", "-f", "${Version}", "bellhop").stdout == f"{VERSION}-1"
        assert not debian.path("/usr/share/doc/bellhop/former").exists()

        # The operator's file stays, with its owner and mode; the new one lies beside it.
        assert (debian.path(CONFIG).read_text(), debian.facts(CONFIG)) == (edited, "root:bellhop 640")
        assert "EDIT-ME" in debian.path(f"{CONFIG}.dpkg-dist").read_text()
        assert debian.run("systemctl", "is-enabled", *UNITS, check=False).stdout.split() == ["disabled", "disabled"]

        # Enabled, back to the former version and up again: the service is started anew once, by the new files; the socket stays open.
        debian.run("/usr/bin/systemctl", "--root=/", "enable", *UNITS)
        active.write_text("")
        debian.apt("--allow-downgrades", *KEEP, debian.put(former))
        asked()
        debian.apt(*KEEP, debian.put(package))
        assert asked() == ["--quiet --system restart bellhop.service", "--quiet --system start bellhop.socket"]
        assert debian.run("systemctl", "is-enabled", *UNITS, check=False).stdout.split() == ["enabled", "enabled"]

        # A store that holds no payload has bellhop's own files.
        make_folders(debian)
        debian.run(*AS_BELLHOP, "touch", f"{STATE}/claims/.bellhop-store", f"{STATE}/claims/.bellhop-sweep", "/run/bellhop/bellhop.sock")
        log.write_text("")
        debian.run("apt-get", "remove", "-y", "-q", "bellhop")
        assert asked() == ["stop bellhop.socket", "stop bellhop.service"]
        assert debian.path(CONFIG).read_text() == edited
        debian.run("apt-get", "purge", "-y", "-q", "bellhop")
        after = debian.snapshot(NOT_OURS)
    assert {path: (before.get(path), after.get(path)) for path in {*before, *after} if before.get(path) != after.get(path)} == {}


def test_systemd_starts_it_when_its_file_is_edited_and_restarts_it_at_an_upgrade(package, former, rabbit):
    with DebianRoot() as debian:
        debian.apt(debian.put(former))
        new = debian.put(package)
        with debian.boot() as host:
            assert host.run("systemctl", "start", "bellhop", check=False).returncode != 0
            assert "broker.url: has still to be edited" in host.run("journalctl", "-u", "bellhop").stdout
            assert "Active: failed" in host.run("systemctl", "status", "bellhop", check=False).stdout

            edit(debian, rabbit.url)
            host.run("systemctl", "enable", "--now", "bellhop")
            assert "Active: active (running)" in host.run("systemctl", "status", "bellhop").stdout
            client = amqp.connect(str(host.path("/run/bellhop/bellhop.sock")))
            host.run("systemctl", "reload", "bellhop")

            # A client in an upgrade: it is told, and the new bellhop is there when apt returns.
            assert "bellhop.socket is a disabled" in host.run("apt-get", "install", "-y", "-q", *KEEP, new).stdout
            client.expect_close(320)
            assert host.run("systemctl", "is-active", "bellhop").stdout == "active\n"
            amqp.connect(str(host.path("/run/bellhop/bellhop.sock"))).close()

            # The socket, as deploy/README.md says; here a client starts bellhop. It is open over a restart and an upgrade.
            host.run("systemctl", "stop", "bellhop")
            host.run("systemctl", "enable", "--now", "bellhop.socket")
            waiting = amqp.connect(str(host.path("/run/bellhop/bellhop.sock")))  # starts bellhop
            assert host.run("systemctl", "is-active", *UNITS).stdout.split() == ["active", "active"]
            began = host.run("systemctl", "show", "-p", "ActiveEnterTimestampMonotonic", "bellhop.socket").stdout
            host.run("apt-get", "install", "-y", "-q", "--reinstall", new)
            waiting.expect_close(320)
            assert host.run("systemctl", "is-active", *UNITS).stdout.split() == ["active", "active"]
            assert host.run("systemctl", "show", "-p", "ActiveEnterTimestampMonotonic", "bellhop.socket").stdout == began

            host.run("apt-get", "remove", "-y", "-q", "bellhop")
            assert host.run("systemctl", "is-active", *UNITS, check=False).stdout.split() == ["inactive", "inactive"]
            host.run("apt-get", "purge", "-y", "-q", "bellhop")
            places = ["/etc", "/run", "/usr", "/var/lib", "/var/cache", "/var/tmp"]
            assert host.run("find", *places, "-xdev", "-name", "*bellhop*").stdout == ""
            assert host.run("getent", "passwd", "bellhop", check=False).stdout == ""
