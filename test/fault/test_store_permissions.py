"""A store's directory whose permissions change while bellhop runs as an ordinary user."""

import os
import shutil

import pytest

from support.bellhop import Bellhop, binary
from support.certificates import shared_authority
from support.claims import Consumer, Side, body_of
from support.publishing import publisher
from support.rabbitmq import TLS

MIB = 1 << 20
NOBODY = 65534
# The parent's death is noticed by the process that became somebody else, too.
AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--pdeathsig=KILL"]


@pytest.fixture
def daemon(rabbit, monkeypatch, request):
    """A daemon without root's right to everything, in a folder of its own user's."""
    is_root = os.geteuid() == 0
    daemon = Bellhop({"broker": {"url": rabbit.url}}, start=False, wrapper=AS_NOBODY if is_root else ())
    if is_root:
        if TLS:
            ca = str(shared_authority().ca)
            daemon.config_path.write_text(daemon.config_path.read_text().replace(ca, shutil.copy(ca, str(daemon.folder / "ca.pem"))))
        # The build may be in a folder that is root's alone.
        monkeypatch.setenv("BELLHOP_BIN", str(shutil.copy(binary(), daemon.folder / "bellhop")))
        for each in (daemon.folder, *daemon.folder.iterdir()):
            os.chown(each, NOBODY, NOBODY)
    daemon.start()
    yield daemon
    daemon.store_path.chmod(0o755)
    if getattr(request.node, "failed", False):
        print(daemon.log[-8000:])
    daemon.stop()


def lock_by_mode(folder, mode):
    folder.chmod(mode)


def lock_by_owner(folder, mode):
    os.chown(folder, 0, 0)
    folder.chmod(mode)


def unlock(folder):
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
    folder.chmod(0o755)


@pytest.fixture(params=[lock_by_mode, lock_by_owner], ids=["mode", "owner"])
def lock(request):
    if request.param is lock_by_owner and os.geteuid() != 0:
        pytest.skip("only root may give a folder away")
    return request.param


def test_a_folder_that_may_only_be_read_takes_no_objects_and_still_gives_them(daemon, broker, name, lock):
    side = Side(broker, name())
    up = publisher(daemon)
    up.channel.publish("", side.queue, body_of(3 * MIB))
    up.channel.expect("basic.ack", delivery_tag=1)
    frames = up.channel.publish_frames("", side.queue, body_of(5 * MIB))
    up.client.send_raw(b"".join(frames[:-1]))
    up.client.channel()  # bellhop has read so far: this upload began while it was allowed
    lock(daemon.store_path, 0o555)
    up.client.send_raw(frames[-1])
    up.channel.expect("basic.nack", delivery_tag=2, multiple=False)
    up.channel.publish("", side.queue, body_of(3 * MIB))
    up.channel.publish("", side.queue, b"small")
    up.channel.expect("basic.nack", delivery_tag=3, multiple=False)
    up.channel.expect("basic.ack", delivery_tag=4)
    assert daemon.log.count("Permission denied") == 1  # the same trouble is told once
    consumer = Consumer(daemon, side.queue)
    assert consumer.bodies(2) == [body_of(3 * MIB), b"small"]
    unlock(daemon.store_path)
    assert len(daemon.objects()) == 1 and daemon.debris() == []
    up.channel.publish("", side.queue, body_of(4 * MIB))
    up.channel.expect("basic.ack", delivery_tag=5)
    assert consumer.deliver().body == body_of(4 * MIB)


def test_a_folder_that_may_not_be_entered_holds_deliveries_until_it_may(daemon, broker, name, lock):
    side = Side(broker, name())
    up = publisher(daemon)
    bodies = [body_of(3 * MIB), b"small", body_of(100_000)]
    for body in bodies:
        up.channel.publish("", side.queue, body)
    up.channel.confirms(3)
    lock(daemon.store_path, 0o000)
    consumer = Consumer(daemon, side.queue)
    line = daemon.wait_log(r"delivery held.*").group(0)
    assert "Permission denied" in line and "mode 0000" in line and f"bellhop runs as uid {os.geteuid() or NOBODY}" in line
    up.channel.publish("", side.queue, body_of(3 * MIB))
    up.channel.expect("basic.nack", delivery_tag=4)
    consumer.channel.expect_nothing(0.2)
    unlock(daemon.store_path)
    assert consumer.bodies(3) == bodies
    assert not side.exists(side.parked)
    up.channel.publish("", side.queue, body_of(3 * MIB, 1))
    up.channel.expect("basic.ack", delivery_tag=5)
    assert consumer.deliver().body == body_of(3 * MIB, 1)
