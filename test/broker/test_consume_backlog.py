"""A consumer without a prefetch whose deliveries are held: what comes behind waits in scratch files, and the broker's connection is read."""

import contextlib
import pathlib
import uuid

import pytest

from support import amqp
from support.claims import Consumer, Marker, Side, body_of, claim, put_object
from support.disks import FailingDisk, Mount, needs_root
from support.rabbitmq import wait_until

MIB = 1 << 20
SIZE, COUNT = 60_000, 1500  # 90 MB: RabbitMQ resets a connection that takes no more for half a minute


class Backlog:
    """A queue that begins with a claim that cannot be redeemed for now; a client that consumes all of it, and has one channel more."""

    def __init__(self, daemon, broker, name, count=COUNT):
        self.daemon, self.side, self.count = daemon, Side(broker, name("deep")), count
        self.marker, self.key = Marker(daemon), str(uuid.uuid4())
        self.marker.remove()
        self.side.send(claim(self.key))
        for first in range(0, count, 100):
            self.side.send(*[self.body(n) for n in range(first, min(first + 100, count))])
        self.consumer = Consumer(daemon, self.side.queue)
        self.channel = self.consumer.client.channel()

    @staticmethod
    def body(number):
        return b"small %d" % number if number % 10 == 3 else body_of(SIZE + number, number)

    def all_came(self):
        wait_until(lambda: self.side.count() == 0, 60, "all of the queue to be sent to bellhop")
        self.channel.declare("", exclusive=True)  # the broker's leg is read

    def give_back_the_store(self):
        put_object(self.daemon, b"late", self.key)
        self.marker.restore()

    def expect_all(self):
        assert self.consumer.deliver(timeout=30).body == b"late"
        for number in range(self.count):
            delivery = self.consumer.deliver(timeout=30)
            assert delivery.body == self.body(number), number
            if number % 100 == 0:
                self.consumer.ack(delivery.delivery_tag, multiple=True)
        self.consumer.ack(0, multiple=True)
        self.channel.declare("", exclusive=True)
        self.side.wait_count(0)


def scratch_files(daemon):
    """Open files without a name."""
    def is_one(link):
        try:
            return str(link.readlink()).endswith("(deleted)")
        except OSError:
            return False
    return [link for link in pathlib.Path(f"/proc/{daemon.pid}/fd").iterdir() if is_one(link)]


def test_a_backlog_far_above_memory_is_taken_off_the_broker_and_delivered_in_order(bellhop, broker, name):
    daemon = bellhop()
    backlog = Backlog(daemon, broker, name)
    backlog.all_came()
    daemon.assert_memory_below(64 * 1024, "VmHWM")
    assert len(scratch_files(daemon)) >= 4
    backlog.give_back_the_store()
    backlog.expect_all()
    daemon.assert_memory_below(64 * 1024, "VmHWM")
    wait_until(lambda: scratch_files(daemon) == [], what="no scratch file is open")


def test_a_client_that_does_not_read_gets_it_at_its_own_pace(bellhop, broker, name):
    daemon = bellhop()
    backlog = Backlog(daemon, broker, name)
    backlog.all_came()
    backlog.give_back_the_store()
    assert backlog.consumer.deliver(timeout=30).body == b"late"
    other = amqp.connect(daemon.socket).channel()  # another session, meanwhile
    for _ in range(100):
        other.publish("", name("nobody"), b"x", mandatory=True)
        other.expect("basic.return")
    daemon.assert_memory_below(64 * 1024, "VmHWM")
    assert len(scratch_files(daemon)) >= 4
    for number in range(COUNT):
        assert backlog.consumer.deliver(timeout=30).body == backlog.body(number)
    backlog.consumer.client.abort()


@pytest.mark.parametrize("how", ["cancel", "recover", "close", "abort"])
def test_who_goes_away_leaves_all_of_it_to_the_queue(bellhop, broker, name, how):
    daemon = bellhop()
    backlog = Backlog(daemon, broker, name, count=500)
    backlog.all_came()
    assert scratch_files(daemon) != []
    channel = backlog.consumer.channel
    if how == "cancel":
        channel.call("basic.cancel", consumer_tag=backlog.consumer.tag)
    elif how == "recover":
        channel.call("basic.recover", requeue=True)  # comes again, and again to the same consumer
        channel.client.inbox.clear()  # the one that was arriving was handed over before the recover-ok
        wait_until(lambda: backlog.side.count() == 0, what="all of it to be sent again")
        backlog.give_back_the_store()
        return backlog.expect_all()
    elif how == "close":
        channel.close()
    else:
        backlog.consumer.client.abort()
    backlog.side.wait_count(501)
    wait_until(lambda: scratch_files(daemon) == [], what="no scratch file is open")
    backlog.give_back_the_store()
    again = Consumer(daemon, backlog.side.queue)
    assert again.bodies(501) == [b"late", *map(backlog.body, range(500))]
    again.client.abort()


@needs_root
def test_a_scratch_disk_without_room_stops_the_reading_and_loses_nothing(bellhop, broker, name, tmp_path):
    with Mount.tmpfs(tmp_path / "scratch", "8m") as small:
        daemon = bellhop(env={"TMPDIR": str(small.folder)})
        backlog = Backlog(daemon, broker, name)
        daemon.wait_log("held deliveries stay in memory session=.*No space left on device")
        assert backlog.side.count() > 100
        daemon.assert_memory_below(64 * 1024, "VmHWM")
        backlog.give_back_the_store()
        backlog.expect_all()


@contextlib.contextmanager
def overwritten(daemon):
    """As by a disk that took what it was given and lost it later."""
    for link in scratch_files(daemon):
        with open(link, "r+b") as file:
            file.write(bytes(link.stat().st_size))
    yield


@pytest.mark.parametrize("how, words", [("unreadable", "Input/output error"), ("lost", "a scratch file has other bytes than were written to it")])
def test_a_scratch_file_that_cannot_be_read_closes_the_channel_and_the_broker_has_it_all_again(bellhop, broker, name, tmp_path, how, words):
    disk = FailingDisk(tmp_path)
    daemon = bellhop(env=disk.env)
    backlog = Backlog(daemon, broker, name, count=500)
    backlog.all_came()
    with disk.failing("pread-unnamed", 5) if how == "unreadable" else overwritten(daemon):
        backlog.give_back_the_store()
        with pytest.raises(amqp.ChannelClosed, match=words) as closed:
            for number in range(501):
                assert backlog.consumer.deliver(timeout=30).body == (b"late" if number == 0 else backlog.body(number - 1))
        assert closed.value.code == 541
    backlog.side.wait_count(501)
    again = Consumer(daemon, backlog.side.queue)
    assert again.bodies(501) == [b"late", *map(backlog.body, range(500))]
    again.ack(0, multiple=True)
    again.client.close()
