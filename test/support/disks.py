"""Disks that a test fills, takes away, or lets fail.

    with Mount.tmpfs(folder, "8m"): ...         a small disk
    mount = Mount.bind(source, folder)          the same folder in two places
    mount.undo(); mount.redo()
    disk = FailingDisk(tmp_path); daemon = bellhop(env=disk.env)
    with disk.failing("linkat", errno.ENOSPC): ...
"""

import contextlib
import os
import pathlib
import subprocess

import pytest

from .gate import preloaded

SOURCE = pathlib.Path(__file__).with_name("failing_disk.c")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")


class Mount:
    def __init__(self, folder, *arguments):
        self.folder, self.arguments = pathlib.Path(folder), arguments
        self.folder.mkdir(exist_ok=True)
        self.mounted = False
        self.redo()

    @classmethod
    def tmpfs(cls, folder, size):
        return cls(folder, "-t", "tmpfs", "-o", f"size={size}", "tmpfs")

    @classmethod
    def bind(cls, source, folder):
        return cls(folder, "--bind", str(source))

    def redo(self):
        subprocess.run(["mount", *self.arguments, str(self.folder)], check=True)
        self.mounted = True

    def undo(self):
        """Lazily: what is open stays open."""
        if self.mounted:
            subprocess.run(["umount", "-l", str(self.folder)], check=True)
        self.mounted = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.undo()


class FailingDisk:
    """Calls of the daemon that fail: fsync (of a file), fsync-directory, O_TMPFILE, linkat, renameat2 (with flags), fchmod, flock (of a file), close (of a
    file that is written), pread (of a file with a name), pread-unnamed."""

    def __init__(self, folder):
        self.path = pathlib.Path(folder) / "disk-fault"
        self.env = {**preloaded(SOURCE, folder), "BELLHOP_TEST_DISK_FAULT": str(self.path)}

    @contextlib.contextmanager
    def failing(self, call, error=None):
        """One call and its errno, or several: {call: errno}."""
        faults = call if error is None else {call: error}
        new = self.path.with_suffix(".new")
        new.write_text("".join(f"{each} {number}\n" for each, number in faults.items()))
        new.rename(self.path)
        try:
            yield
        finally:
            self.path.unlink()
