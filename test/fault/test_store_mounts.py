"""A filesystem store on a mount that lacks what a local disk has: it keeps payloads all the same, and says at its start what it cannot do."""

import errno
import os

import pytest

from support.claims import Consumer, Side, body_of
from support.disks import FailingDisk, Mount, needs_root
from support.publishing import publisher

MIB = 1 << 20
NO_DIRECTORY_FSYNC = "cannot fsync a directory"
NO_UNNAMED = "bellhop writes under an unfinished name, and renames"
NO_MODE = "cannot set a file's mode"


def keeps_payloads(daemon, broker, name):
    """Publishes and fetches small and large payloads, some at the same time; their objects are there, and nothing else."""
    side = Side(broker, name())
    up = publisher(daemon)
    bodies = [body_of(size, number) for number, size in enumerate([100_000, 3 * MIB, 70_000, 5 * MIB, 100_000, 100_000])]
    for body in bodies:
        up.channel.publish("", side.queue, body)
    assert set(up.channel.confirms(len(bodies)).values()) == {"ack"}
    assert len(daemon.objects()) == len(bodies) and daemon.debris() == []
    assert Consumer(daemon, side.queue).bodies(len(bodies)) == bodies


def said(daemon):
    """Which of its inabilities the daemon has told, each of which it tells once."""
    told = [what for what in (NO_DIRECTORY_FSYNC, NO_UNNAMED, NO_MODE) if what in daemon.log]
    assert all(daemon.log.count(what) == 1 for what in told), daemon.log
    return told


@pytest.mark.parametrize("error", ["ENOTSUP", "ENOENT", "EINVAL", "ENOSYS", "EBADF", "EPERM", "EISDIR"])
def test_a_directory_that_cannot_be_synced(bellhop, broker, name, tmp_path, error):
    disk = FailingDisk(tmp_path)
    with disk.failing("fsync-directory", getattr(errno, error)):
        daemon = bellhop(env=disk.env)
        keeps_payloads(daemon, broker, name)
        assert said(daemon) == [NO_DIRECTORY_FSYNC]
        assert os.strerror(getattr(errno, error)) in daemon.log


@pytest.mark.parametrize("faults", [{"O_TMPFILE": errno.EOPNOTSUPP}, {"O_TMPFILE": errno.EISDIR}, {"O_TMPFILE": errno.ENOENT},
                                    {"linkat": errno.EPERM}, {"linkat": errno.EOPNOTSUPP}, {"linkat": errno.ENOENT}, {"linkat": errno.EXDEV}],
                         ids=lambda faults: "-".join(f"{call}-{errno.errorcode[error]}" for call, error in faults.items()))
def test_a_mount_without_files_that_have_no_name(bellhop, broker, name, tmp_path, faults):
    disk = FailingDisk(tmp_path)
    with disk.failing(faults):
        daemon = bellhop(env=disk.env)
        keeps_payloads(daemon, broker, name)
        assert said(daemon) == [NO_UNNAMED]


def test_a_mount_that_can_do_no_more_than_write_and_rename(bellhop, broker, name, tmp_path):
    disk = FailingDisk(tmp_path)
    with disk.failing({"O_TMPFILE": errno.EOPNOTSUPP, "linkat": errno.EPERM, "renameat2": errno.EINVAL, "fchmod": errno.EPERM,
                       "fsync-directory": errno.ENOTSUP}):
        daemon = bellhop(env=disk.env)
        keeps_payloads(daemon, broker, name)
        assert said(daemon) == [NO_DIRECTORY_FSYNC, NO_UNNAMED, NO_MODE]


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC], ids=["EIO", "ENOSPC"])
def test_a_disk_in_trouble_at_the_start_is_not_taken_for_one_that_cannot(bellhop, broker, name, tmp_path, error):
    disk = FailingDisk(tmp_path)
    with disk.failing("fsync-directory", error):
        daemon = bellhop(env=disk.env)
        up = publisher(daemon)
        up.channel.publish("", name(), body_of(100_000))
        up.channel.expect("basic.nack", delivery_tag=1)
        assert daemon.objects() == [] and daemon.debris() == []
    keeps_payloads(daemon, broker, name)
    assert said(daemon) == []


@needs_root
def test_what_a_mount_can_do_is_found_out_when_it_comes(bellhop, broker, name, tmp_path):
    # The bare mount point is there at the start, read-only as it should be, so that nothing could be tried.
    folder = tmp_path / "claims"
    folder.mkdir()
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / ".bellhop-store").touch()
    disk = FailingDisk(tmp_path)
    with Mount(folder, "-t", "tmpfs", "-o", "ro", "tmpfs"), disk.failing({"O_TMPFILE": errno.EOPNOTSUPP, "fsync-directory": errno.ENOTSUP}):
        daemon = bellhop({"stores": {"claims": {"type": "filesystem", "path": str(folder)}}}, env=disk.env)
        daemon.store_path = folder
        assert said(daemon) == []
        with Mount.tmpfs(folder, "64m"):
            (folder / ".bellhop-store").touch()
            keeps_payloads(daemon, broker, name)
            assert said(daemon) == [NO_DIRECTORY_FSYNC, NO_UNNAMED]
