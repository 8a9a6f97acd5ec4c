"""A store's directory that is unmounted and mounted again while bellhop runs, and one that is mounted in two places."""

import pytest

from support.claims import Consumer, Side, body_of
from support.disks import Mount, needs_root
from support.publishing import publisher

pytestmark = needs_root
MIB = 1 << 20


@pytest.fixture
def share(tmp_path):
    """What is mounted: a folder elsewhere."""
    folder = tmp_path / "share"
    folder.mkdir()
    return folder


def store_at(folder, name="claims"):
    return {"stores": {name: {"type": "filesystem", "path": str(folder)}}}


@pytest.fixture
def mounted(share, tmp_path, bellhop):
    with Mount.bind(share, tmp_path / "claims") as mount:
        mount.daemon = bellhop(store_at(mount.folder))
        mount.daemon.store_path = share
        yield mount


def test_while_it_is_gone_deliveries_wait_publishes_are_nacked_and_the_bare_folder_stays_empty(mounted, broker, name):
    daemon, side = mounted.daemon, Side(broker, name())
    up = publisher(daemon)
    bodies = [body_of(5 * MIB), b"small", body_of(70_000)]
    for body in bodies:
        up.channel.publish("", side.queue, body)
    up.channel.confirms(3)
    mounted.undo()
    consumer = Consumer(daemon, side.queue)
    assert "is it mounted" in daemon.wait_log(r"delivery held.*").group(0)
    for number in (4, 6):
        up.channel.publish("", side.queue, body_of(2 * MIB))
        up.channel.publish("", side.queue, b"small")
        up.channel.expect("basic.nack", delivery_tag=number, multiple=False)
        up.channel.expect("basic.ack", delivery_tag=number + 1)
    consumer.channel.expect_nothing(0.2)
    assert list(mounted.folder.iterdir()) == []
    mounted.redo()
    assert consumer.bodies(5) == [*bodies, b"small", b"small"]
    up.channel.publish("", side.queue, body_of(2 * MIB))
    up.channel.expect("basic.ack", delivery_tag=8)
    assert consumer.deliver().body == body_of(2 * MIB)
    assert not side.exists(side.parked)
    assert len(daemon.objects()) == 3 and daemon.debris() == []


def test_a_body_that_is_under_way_when_it_goes_is_nacked_and_when_it_is_back_the_next_one_is_not(mounted, broker, name):
    daemon, side = mounted.daemon, Side(broker, name())
    up = publisher(daemon)
    frames = up.channel.publish_frames("", side.queue, body_of(5 * MIB))
    for again in (False, True):
        up.client.send_raw(b"".join(frames[:-2]))
        up.client.channel()  # bellhop has read so far
        mounted.undo()
        if again:
            mounted.redo()  # the same folder: nothing was lost
        up.client.send_raw(b"".join(frames[-2:]))
        up.channel.expect("basic.ack" if again else "basic.nack", delivery_tag=2 if again else 1)
        assert again or list(mounted.folder.iterdir()) == []
        if not again:
            mounted.redo()
    assert len(daemon.objects()) == 1 and daemon.debris() == []
    assert Consumer(daemon, side.queue).deliver().body == body_of(5 * MIB)


def test_a_delivery_that_has_begun_is_finished(mounted, broker, name):
    daemon, side = mounted.daemon, Side(broker, name())
    up = publisher(daemon)
    up.channel.publish("", side.queue, body_of(30 * MIB))
    up.channel.expect("basic.ack")
    consumer = Consumer(daemon, side.queue)
    consumer.client.read_frame()
    mounted.undo()
    consumer.client.assembler._open = None
    have = b""
    while len(have) < 30 * MIB:
        frame = consumer.client.read_frame()
        have += frame.payload if frame.type == 3 else b""
    assert have == body_of(30 * MIB)


def test_another_disk_in_its_place_is_not_taken_for_it(mounted, broker, name, tmp_path):
    daemon, side = mounted.daemon, Side(broker, name())
    up = publisher(daemon)
    up.channel.publish("", side.queue, body_of(1 * MIB))
    up.channel.expect("basic.ack")
    mounted.undo()
    with Mount.tmpfs(mounted.folder, "4m"):
        consumer = Consumer(daemon, side.queue)
        daemon.wait_log("delivery held")
        up.channel.publish("", side.queue, body_of(1 * MIB, 1))
        up.channel.expect("basic.nack", delivery_tag=2)
        assert list(mounted.folder.iterdir()) == []
    mounted.redo()
    assert consumer.deliver().body == body_of(1 * MIB)


def test_two_bellhops_that_mount_one_store_at_different_places_and_name_it_differently(share, bellhop, broker, name, tmp_path):
    with Mount.bind(share, tmp_path / "here") as here, Mount.bind(share, tmp_path / "there") as there:
        publishes, consumes = bellhop(store_at(here.folder, "claims")), bellhop(store_at(there.folder, "archive"))
        side = Side(broker, name())
        up, consumer = publisher(publishes), Consumer(consumes, side.queue)
        bodies = [body_of(size, size) for size in (0, 100, 65535, 65536, 131072 - 8, 131072, 1 * MIB + 1, 20 * MIB + 3)]
        for body in bodies:
            up.channel.publish("", side.queue, body)
        for body in bodies:
            assert consumer.deliver().body == body
        assert set(up.channel.confirms(len(bodies)).values()) == {"ack"}
        consumer.ack(0, multiple=True)
        # And the other way round.
        back, reader = publisher(consumes), Consumer(publishes, side.queue)
        consumer.client.close()
        back.channel.publish("", side.queue, body_of(3 * MIB))
        assert reader.deliver().body == body_of(3 * MIB)
