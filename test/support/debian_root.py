"""A fresh Debian 12 in a folder of its own, entered by chroot, as root.

    with DebianRoot() as debian:
        debian.run("apt-get", "install", "-y", "/x.deb")
        (debian.folder / "etc" / "passwd").read_text()

debootstrap makes it once, in build/debian-12; each root is a copy. What runs in it has a /proc of its own and the host's network.
"""

import hashlib
import os
import pathlib
import shutil
import stat
import subprocess
import tempfile

from .documents import ROOT

ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8",
               "DEBIAN_FRONTEND": "noninteractive"}
# Mounts go with the process that sees them.
ENTER = ["unshare", "--mount", "--propagation", "private", "sh", "-c", 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"']


def _base():
    base = ROOT / "build" / "debian-12"
    if not base.is_dir():
        partial = base.with_name("debian-12.partial")
        shutil.rmtree(partial, ignore_errors=True)
        subprocess.run(["debootstrap", "--variant=minbase", "bookworm", partial], check=True, stdout=subprocess.DEVNULL)
        partial.rename(base)
    return base


class DebianRoot:
    def __init__(self):
        # A Unix socket's path has little room.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="bellhop-root-", dir="/tmp"))
        self.folder.chmod(0o755)
        subprocess.run(["cp", "-a", "--reflink=auto", f"{_base()}/.", self.folder], check=True)
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

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)
