"""A filesystem store whose disk is full, or fails: a nack of exactly that message, nothing left behind, and all is well when there is room."""

import errno
import os

import pytest

from support import amqp
from support.claims import Consumer, Side, body_of, claim, put_object
from support.disks import FailingDisk, Mount, needs_root
from support.publishing import publisher

KIB, MIB = 1 << 10, 1 << 20


@pytest.fixture
def small(bellhop, tmp_path):
    """A daemon whose store is a disk of 8 MiB."""
    with Mount.tmpfs(tmp_path / "claims", "8m") as mount:
        daemon = bellhop({"stores": {"claims": {"type": "filesystem", "path": str(mount.folder)}}})
        daemon.store_path = mount.folder
        yield daemon


@needs_root
@pytest.mark.parametrize("has_swept", [False, True], ids=["first sweep", "swept before"])
@pytest.mark.parametrize("lacks", ["room", "names"])
def test_retention_makes_room_on_a_disk_that_is_full(bellhop, tmp_path, lacks, has_swept):
    old = "0f8fad5b-d9cb-469f-a165-70867728950e"
    size = "size=64k" if lacks == "room" else "size=64k,nr_inodes=5"
    with Mount(tmp_path / "claims", "-t", "tmpfs", "-o", size, "tmpfs") as mount:
        (mount.folder / ".bellhop-store").touch()
        if has_swept:
            (mount.folder / ".bellhop-sweep").touch()
        (mount.folder / old).write_bytes(b"payload")
        with pytest.raises(OSError, match="No space"):
            number = 0
            while True:
                number += 1
                (mount.folder / f"filler-{number}").write_bytes(bytes(64 * KIB) if lacks == "room" else b"")
        os.utime(mount.folder / old, (1, 1))
        daemon = bellhop({"stores": {"claims": {"type": "filesystem", "path": str(mount.folder), "retention": "1h"}}})
        daemon.wait_log("retention store=claims removed=1 ")
        assert not (mount.folder / old).exists()


@pytest.mark.parametrize("faults", [{"flock": errno.ENOLCK}, {"flock": errno.ENOSYS}, {"flock": errno.EOPNOTSUPP}, {"fchmod": errno.EPERM}],
                         ids=lambda faults: "-".join(f"{call}-{errno.errorcode[error]}" for call, error in faults.items()))
def test_retention_needs_no_more_of_a_mount_than_payloads_do(bellhop, tmp_path, faults):
    old = tmp_path / "claims" / "0f8fad5b-d9cb-469f-a165-70867728950e"
    old.parent.mkdir()
    old.touch()
    os.utime(old, (1, 1))
    disk = FailingDisk(tmp_path)
    with disk.failing(faults):
        daemon = bellhop({"stores": {"claims": {"type": "filesystem", "path": str(old.parent), "retention": "1h"}}}, env=disk.env)
        daemon.wait_log("retention store=claims removed=1 ")
    assert not old.exists()


def free_mib(daemon):
    status = os.statvfs(daemon.store_path)
    return status.f_bavail * status.f_frsize / MIB


@needs_root
def test_a_body_that_does_not_fit_is_nacked_alone_and_gives_its_space_back(small, broker, name):
    side = Side(broker, name())
    up = publisher(small)
    bodies = [body_of(size, size) for size in (2 * MIB, 20 * MIB, 100, 3 * MIB, 9 * MIB, 70 * KIB)]
    for number, body in enumerate(bodies, 1):
        up.channel.publish("", side.queue, body)
        up.channel.expect("basic.ack" if len(body) < 8 * MIB else "basic.nack", delivery_tag=number, multiple=False, timeout=30)
    assert small.log.count("No space left on device") == 1  # the same trouble is told once
    assert len(small.objects()) == 3 and small.debris() == []
    assert free_mib(small) > 2.5
    assert Consumer(small, side.queue).bodies(4) == [body for body in bodies if len(body) < 8 * MIB]


@needs_root
def test_a_disk_that_somebody_else_fills_and_empties(small, broker, name):
    side = Side(broker, name())
    up = publisher(small)
    filler = small.store_path / ".filler"
    for number in range(1, 7, 2):
        with open(filler, "wb") as file, pytest.raises(OSError, match="No space"):
            while True:
                os.write(file.fileno(), bytes(64 * KIB))
        up.channel.publish("", side.queue, body_of(1 * MIB, number))
        up.channel.expect("basic.nack", delivery_tag=number)
        filler.unlink()
        up.channel.publish("", side.queue, body_of(1 * MIB, number))
        up.channel.expect("basic.ack", delivery_tag=number + 1)
    assert len(small.objects()) == 3 and small.debris() == []
    assert Consumer(small, side.queue).bodies(3) == [body_of(1 * MIB, number) for number in (1, 3, 5)]


@needs_root
def test_many_at_once_that_do_not_all_fit_have_one_outcome_each(small, broker, name):
    side = Side(broker, name())
    client = amqp.connect(small.socket)
    channels = [client.channel() for _ in range(8)]
    streams = []
    for channel in channels:
        channel.call("confirm.select")
        streams.append(channel.publish_frames("", side.queue, body_of(3 * MIB, channel.number), message_id=str(channel.number)))
    for together in zip(*streams):
        client.send_raw(b"".join(together))
    outcomes = {channel.number: channel.confirms(1, timeout=60)[1] for channel in channels}
    stored = [number for number, outcome in outcomes.items() if outcome == "ack"]
    assert len(stored) <= 2
    assert len(small.objects()) == len(stored) and small.debris() == []
    assert free_mib(small) > 7.9 - 3 * len(stored)
    channels[0].publish("", side.queue, body_of(1 * MIB), message_id="0")
    channels[0].expect("basic.ack", delivery_tag=2)
    consumer = Consumer(small, side.queue)
    got = {int(d.properties["message_id"]): d.body for d in (consumer.deliver() for _ in range(len(stored) + 1))}
    assert got == {0: body_of(1 * MIB), **{number: body_of(3 * MIB, number) for number in stored}}


@needs_root
def test_without_confirms_the_channel_is_closed_and_the_session_goes_on(small, broker, name):
    side = Side(broker, name())
    up = publisher(small, confirm=False)
    up.channel.publish("", side.queue, body_of(20 * MIB))
    assert "No space left on device" in up.channel.expect_close(541, timeout=30).reply_text
    channel = up.client.channel(up.channel.number)
    channel.call("confirm.select")
    channel.publish("", side.queue, body_of(2 * MIB))
    channel.expect("basic.ack", delivery_tag=1)
    side.wait_count(1)


@pytest.mark.parametrize("call, error", [("fsync", errno.ENOSPC), ("fsync", errno.EIO), ("linkat", errno.EDQUOT), ("fsync-directory", errno.EIO)],
                         ids=["fsync-ENOSPC", "fsync-EIO", "linkat-EDQUOT", "directory-EIO"])
def test_a_disk_that_fails_at_the_last_step_leaves_nothing_behind(bellhop, broker, name, tmp_path, call, error):
    disk = FailingDisk(tmp_path)
    daemon = bellhop(env=disk.env)
    side = Side(broker, name())
    up = publisher(daemon)
    with disk.failing(call, error):
        for number in (1, 3):
            up.channel.publish("", side.queue, body_of(3 * MIB))
            up.channel.publish("", side.queue, b"small")
            up.channel.expect("basic.nack", delivery_tag=number, multiple=False)
            up.channel.expect("basic.ack", delivery_tag=number + 1)
        assert daemon.log.count(os.strerror(error)) == 1  # the same trouble is told once
        assert daemon.objects() == [] and daemon.debris() == []
    up.channel.publish("", side.queue, body_of(3 * MIB))
    up.channel.expect("basic.ack", delivery_tag=5)
    assert len(daemon.objects()) == 1
    assert Consumer(daemon, side.queue).bodies(3) == [b"small", b"small", body_of(3 * MIB)]


@pytest.mark.parametrize("size", [100_000, 3 * MIB])
def test_a_network_mount_that_tells_at_the_close_that_it_is_full(bellhop, broker, name, tmp_path, size):
    # Without fsync there is no other moment at which it could tell.
    disk = FailingDisk(tmp_path)
    store = tmp_path / "claims"
    store.mkdir()
    daemon = bellhop({"stores": {"claims": {"type": "filesystem", "path": str(store), "fsync": False}}}, env=disk.env)
    daemon.store_path = store
    side = Side(broker, name())
    up = publisher(daemon)
    with disk.failing("close", errno.ENOSPC):
        up.channel.publish("", side.queue, body_of(size))
        up.channel.expect("basic.nack", delivery_tag=1)
    daemon.wait_log("cannot close .*No space left on device")
    assert daemon.objects() == [] and daemon.debris() == []
    up.channel.publish("", side.queue, body_of(size))
    up.channel.expect("basic.ack", delivery_tag=2)
    assert Consumer(daemon, side.queue).deliver().body == body_of(size)


@pytest.mark.parametrize("error", [errno.EIO, errno.ESTALE], ids=["EIO", "ESTALE"])
def test_an_object_that_cannot_be_read_for_now_is_held_and_not_parked(bellhop, broker, name, tmp_path, error):
    disk = FailingDisk(tmp_path)
    daemon = bellhop(env=disk.env)
    side = Side(broker, name())
    side.send(claim(put_object(daemon, body_of(3 * MIB))), b"behind")
    with disk.failing("pread", error):
        consumer = Consumer(daemon, side.queue)
        assert os.strerror(error) in daemon.wait_log(r"delivery held.*").group(0)
    assert consumer.bodies(2) == [body_of(3 * MIB), b"behind"]
    assert not side.exists(side.parked)
