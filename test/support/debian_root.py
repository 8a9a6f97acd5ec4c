"""A fresh Debian 12 in a folder of its own, entered by chroot, as root.

    with DebianRoot() as debian:
        debian.apt(debian.put("x.deb"))
        debian.path("/etc/passwd").read_text()
        with debian.boot() as host:
            host.run("systemctl", "start", "x")

debootstrap makes it once, in build/debian-12; each root is a copy. What runs in it has a /proc of its own and the host's network.
With boot() systemd is its first process.
"""

import fcntl
import hashlib
import os
import pathlib
import shutil
import stat
import subprocess
import tempfile

from .documents import ROOT
from .rabbitmq import wait_until

ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8",
               "DEBIAN_FRONTEND": "noninteractive"}
# Mounts go with the process that sees them.
ENTER = ["unshare", "--mount", "--propagation", "private", "sh", "-c", 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"']


def base():
    """The folder that debootstrap made; nobody changes it."""
    folder = ROOT / "build" / "debian-12"
    with open(folder.with_name("debian-12.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            partial = folder.with_name("debian-12.partial")
            shutil.rmtree(partial, ignore_errors=True)
            subprocess.run(["debootstrap", "--variant=minbase", "bookworm", partial], check=True, stdout=subprocess.DEVNULL)
            partial.rename(folder)
    return folder


class DebianRoot:
    def __init__(self):
        # A Unix socket's path has little room.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="bellhop-root-", dir="/tmp"))
        self.folder.chmod(0o755)
        subprocess.run(["cp", "-a", "--reflink=auto", f"{base()}/.", self.folder], check=True)
        for name in ("resolv.conf", "hosts"):
            shutil.copy(f"/etc/{name}", self.folder / "etc" / name)
        self.run("apt-get", "update", "-q")

    def command(self, *words):
        return [*ENTER, str(self.folder), *map(str, words)]

    def run(self, *words, check=True, timeout=600, **env):
        """Runs a command to its end; nobody answers its questions. A CompletedProcess whose stdout has stderr as well."""
        done = subprocess.run(self.command(*words), env={**ENVIRONMENT, **env}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=timeout)
        assert not check or done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout[-4000:]}"
        return done

    def apt(self, *words, check=True):
        return self.run("apt-get", "install", "-y", "-q", "--no-install-recommends", *words, check=check)

    def put(self, file):
        """Copies a file into the root; its path there."""
        shutil.copy(file, self.folder / "root")
        return f"/root/{pathlib.Path(file).name}"

    def path(self, name):
        return self.folder / str(name).lstrip("/")

    def facts(self, name):
        """A file's owner, group and mode, as in "root:bellhop 640"."""
        return self.run("stat", "-c", "%U:%G %a", name).stdout.strip()

    def snapshot(self, without=()):
        """{path: what it is, whose, and what is in it} of all but the folders and files `without`."""
        found = {}
        for here, folders, files in os.walk(self.folder):
            inside = pathlib.Path("/") / pathlib.Path(here).relative_to(self.folder)
            folders[:] = [name for name in folders if str(inside / name) not in without]
            for name in folders + [name for name in files if str(inside / name) not in without]:
                path = pathlib.Path(here) / name
                status = path.lstat()
                content = os.readlink(path) if path.is_symlink() else ""
                if stat.S_ISREG(status.st_mode):
                    content = hashlib.sha1(path.read_bytes()).hexdigest()
                found[str(inside / name)] = (oct(status.st_mode), status.st_uid, status.st_gid, content)
        return found

    def boot(self):
        return BootedRoot(self)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)


# $0 is the root, which becomes / in namespaces of its own: all of it is gone with its first process.
BOOT = """set -e
mount --bind "$0" "$0"
mount -t proc proc "$0/proc"
mount --bind "$0/proc/sys" "$0/proc/sys"
mount -o remount,bind,ro "$0/proc/sys"
mount -t sysfs -o ro sysfs "$0/sys"
mount -t cgroup2 cgroup2 "$0/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$0/run"
mount -t tmpfs -o mode=755 tmpfs "$0/dev"
for name in null zero full random urandom tty; do
  touch "$0/dev/$name"
  mount --bind "/dev/$name" "$0/dev/$name"
done
mkdir "$0/dev/pts" "$0/dev/shm"
ln -s /proc/self/fd "$0/dev/fd"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$0/dev/pts"
ln -s pts/ptmx "$0/dev/ptmx"
cd "$0"
pivot_root . mnt
umount -l /mnt
exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --system --unit=multi-user.target
"""


class BootedRoot:
    """systemd in a DebianRoot. Its processes are in a cgroup of their own, and see no other."""

    def __init__(self, debian):
        mounts = (line.split() for line in pathlib.Path("/proc/mounts").read_text().splitlines())
        above = next(pathlib.Path(where) for _, where, kind, *_ in mounts if kind == "cgroup2")
        self.cgroup = pathlib.Path(tempfile.mkdtemp(prefix="bellhop-test-", dir=above))
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig=KILL", "sh", "-c", f'echo $$ >{self.cgroup}/cgroup.procs; exec "$@"', "sh", "unshare", "--cgroup", "--mount",
             "--uts", "--ipc", "--pid", "--fork", "--kill-child", "--propagation=private", "sh", "-c", BOOT, debian.folder],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_until(lambda: self.run("systemctl", "is-system-running", check=False).stdout in ("running\n", "degraded\n"), 60, "systemd in the root")
        except BaseException:
            self.end()
            raise

    @property
    def first(self):
        """systemd's process, as the host counts."""
        return (pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split() or ["none"])[0]

    def run(self, *words, check=True, timeout=120):
        done = subprocess.run(["nsenter", f"--target={self.first}", "--all", *map(str, words)], env=ENVIRONMENT, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout)
        assert not check or done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout[-4000:]}"
        return done

    def path(self, name):
        """A file in there, as this process finds it; also below /run, which others do not see."""
        return pathlib.Path(f"/proc/{self.first}/root{name}")

    def end(self):
        self.process.kill()
        self.process.wait()
        wait_until(lambda: not any(path.read_text() for path in self.cgroup.rglob("cgroup.procs")), what="the end of the root's processes")
        for folder in sorted((path for path in self.cgroup.rglob("*") if path.is_dir()), reverse=True):
            folder.rmdir()
        self.cgroup.rmdir()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()
