"""Runs one command as a container runtime does: with its own mounts, root folder, user and groups. pod.py calls it, in a mount namespace of its own:

    unshare --mount --propagation private python3 container.py '{"root": ..., "mounts": [[source, target, read_only], ...], "read_only_root": true,
        "uid": 10001, "gid": 10001, "groups": [10001], "folder": "/", "command": [...], "environment": {...}}'

Without "mounts" it joins what is mounted already (nsenter --mount)."""

import ctypes
import json
import os
import signal
import subprocess
import sys

PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS = 1, 38


def mount(*arguments):
    subprocess.run(["mount", *arguments], check=True)


def make_place(source, target):
    """As a runtime does: a volume in a volume gets its mount point there."""
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    elif not os.path.exists(target):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        open(target, "w").close()


def main():
    wanted = json.loads(sys.argv[1])
    root = wanted["root"]
    if "mounts" in wanted:
        mount("--bind", root, root)
        for source, target, read_only in wanted["mounts"]:
            make_place(source, root + target)
            mount("--rbind", source, root + target)
            if read_only:
                mount("-o", "remount,bind,ro", root + target)
        if wanted["read_only_root"]:
            mount("-o", "remount,bind,ro", root)
    os.chroot(root)
    os.chdir(wanted["folder"])
    os.setgroups(wanted["groups"])
    os.setgid(wanted["gid"])
    os.setuid(wanted["uid"])
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # a test that is killed takes its containers with it
    os.execve(wanted["command"][0], wanted["command"], wanted["environment"])


main()
