"""Real containers for tests, by podman and crun, as root.

    with Engine() as engine:
        engine.run(["deploy/image", ...])                     a command that sees the engine's images
        container = engine.start("image", ["-v", "run:/run"], command=["run"])
        container.wait_log("listening"); container.exec("/usr/bin/bellhop", "health")
        engine.volume("run")                                  a volume's folder, as this process sees it

All its state is in one folder, and it lives in mount and process namespaces of its own: with them every mount and every process of it
is gone, also when the test is killed.
"""

import contextlib
import json
import os
import pathlib
import re
import resource
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
import traceback

from .rabbitmq import wait_until

STORAGE = """[storage]
driver = "vfs"
graphroot = "{folder}/storage"
runroot = "{folder}/runroot"
"""
# cgroups stay the host's, and so do the limits, which not every root may raise.
SETTINGS = """[containers]
cgroups = "disabled"
netns = "{network}"
log_driver = "k8s-file"
default_ulimits = ["nofile={nofile}", "nproc={nproc}"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
lock_type = "file"
runtime = "crun"
tmp_dir = "{folder}/libpod"
[network]
network_backend = "netavark"
network_config_dir = "{folder}/networks"
"""
# The first process of the namespaces: it ends when its standard input does, and all others with it. What engines leave in /run is no
# other's. crun refuses hosts that have both kinds of cgroups. A network namespace has a /sys of its own.
FIRST = {False: "if mountpoint -q /sys/fs/cgroup/unified; then umount /sys/fs/cgroup/unified; fi",
         True: "ip link set lo up && mount -t sysfs sysfs /sys && mount -t tmpfs tmpfs /sys/fs/cgroup"}
START = "set -e; {first}; mount -t tmpfs tmpfs /run; echo ready; exec cat"


def _limit(which):
    return ":".join("-1" if value == resource.RLIM_INFINITY else str(value) for value in [resource.getrlimit(which)[1]] * 2)


class Engine:
    """With `own_network` its containers have networks and names of their own, and reach nothing else; without, they are on the host's."""

    def __init__(self, own_network=False):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="bellhop-engine-"))
        self.folder.chmod(0o711)  # a volume's own mode says who may use it
        (self.folder / "tmp").mkdir()
        (self.folder / "storage.conf").write_text(STORAGE.format(folder=self.folder))
        (self.folder / "networks").mkdir()
        (self.folder / "containers.conf").write_text(SETTINGS.format(
            folder=self.folder, network="private" if own_network else "host", nofile=_limit(resource.RLIMIT_NOFILE),
            nproc=_limit(resource.RLIMIT_NPROC)))
        self.env = {**os.environ, "CONTAINERS_STORAGE_CONF": str(self.folder / "storage.conf"), "CONTAINERS_CONF": str(self.folder / "containers.conf"),
                    "BUILDAH_ISOLATION": "chroot", "TMPDIR": str(self.folder / "tmp"), "DISABLE_HC_SYSTEMD": "true"}
        self.process = subprocess.Popen(["unshare", "--mount", "--propagation=private", "--pid", "--fork", "--kill-child", "--mount-proc",
                                         *(["--net"] if own_network else []), "sh", "-c", START.format(first=FIRST[own_network])], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        self.inside = ["nsenter", f"--target={children[0]}", "--mount", "--pid", *(["--net"] if own_network else []), "--"]

    def run(self, command, check=True, timeout=120):
        done = subprocess.run([*self.inside, *map(str, command)], env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout)
        assert not check or done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout[-8000:]}\n{done.stderr[-8000:]}"
        return done

    def podman(self, *arguments, **options):
        return self.run(["podman", *arguments], **options)

    def start(self, image, options=(), command=()):
        """A container that runs without privileges, with a root that cannot be written to, and nothing else that `options` does not say."""
        started = self.podman("run", "--detach", "--read-only", "--read-only-tmpfs=false", "--cap-drop=all",
                              "--security-opt=no-new-privileges", *options, image, *command)
        return Container(self, started.stdout.strip())

    def volume(self, name):
        path = self.folder / "storage" / "volumes" / name / "_data"
        for parent in path.relative_to(self.folder).parents:
            (self.folder / parent).chmod(0o711)
        return path

    def close(self):
        """All of it is gone: containers, images, mounts."""
        with contextlib.suppress(AssertionError):
            self.podman("rm", "--all", "--force", "--time=0")
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()
        shutil.rmtree(self.folder)
        assert str(self.folder) not in pathlib.Path("/proc/mounts").read_text()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Container:
    def __init__(self, engine, name):
        self.engine, self.name = engine, name

    @property
    def log(self):
        done = self.engine.podman("logs", self.name)
        return done.stdout + done.stderr

    @property
    def state(self):
        return json.loads(self.engine.podman("inspect", "--format={{json .State}}", self.name).stdout)

    def wait_log(self, pattern, timeout=30):
        def found():
            log = self.log
            match = re.search(pattern, log)
            assert match or self.state["Running"], f"the container ended without logging {pattern!r}:\n{log}"
            return match
        return wait_until(found, timeout, f"{pattern!r} in the container's log")

    def exec(self, *command):
        return self.engine.podman("exec", self.name, *command, check=False)

    def process_status(self):
        """/proc/PID/status of its first process, as a dict."""
        text = self.engine.run(["cat", f"/proc/{self.state['Pid']}/status"]).stdout
        return {key: value.strip() for key, _, value in (line.partition(":") for line in text.splitlines())}

    def stop(self):
        """SIGTERM, and after 60 s SIGKILL; the exit code."""
        self.engine.podman("stop", "--time=60", self.name)
        return self.state["ExitCode"]


def as_user(function, uid, gid, groups=()):
    """Calls it in a process of that user, who is in these other groups; what it raises there is raised here, as text."""
    receiver, sender = os.pipe()
    child = os.fork()
    if child == 0:
        said = b""
        try:
            os.setgroups(list(groups))
            os.setresgid(gid, gid, gid)
            os.setresuid(uid, uid, uid)
            function()
        except BaseException:
            said = traceback.format_exc().encode()[-60000:]
        os.write(sender, said)
        os._exit(1 if said else 0)
    os.close(sender)
    with os.fdopen(receiver, "rb") as pipe:
        said = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    assert status == 0, said


class NameServer:
    """Answers DNS for one name, with 127.0.0.1; on a loopback address of its own, because resolvers ask at port 53 only. As root."""

    def __init__(self, name):
        self.name = name
        self.asked = []
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for last in range(2, 250):
            self.address = f"127.53.{os.getpid() % 250}.{last}"
            with contextlib.suppress(OSError):
                self.socket.bind((self.address, 53))
                break
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self):
        while True:
            query, peer = self.socket.recvfrom(4096)
            if not query:
                return
            labels, at = [], 12
            while query[at]:
                labels.append(query[at + 1:at + 1 + query[at]].decode())
                at += 1 + query[at]
            kind = struct.unpack("!H", query[at + 1:at + 3])[0]
            question = query[12:at + 5]
            name = ".".join(labels)
            self.asked.append(name)
            has_address = name == self.name and kind == 1
            answer = b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 60, 4) + bytes([127, 0, 0, 1]) if has_address else b""
            code = 0 if name == self.name else 3
            header = query[:2] + struct.pack("!HHHHH", 0x8180 | code, 1, 1 if has_address else 0, 0, 0)
            self.socket.sendto(header + question + answer, peer)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ender:
            ender.sendto(b"", (self.address, 53))
        self.thread.join(5)
        self.socket.close()
