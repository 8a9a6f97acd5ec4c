"""Scratch files: what is too large for memory on its way in or out, and what happens when there is no room for it."""

import os
import pathlib
import re
import stat
import subprocess
import threading
import time

import pytest

from support import amqp
from support.claims import Consumer, Side, body_of
from support.publishing import publisher
from support.rabbitmq import wait_until
from support.s3_proxy import Hang, Reply, ResetDown, S3Proxy

MIB = 1 << 20


def scratch_files(daemon, scratch):
    """As links in /proc, by which they can be opened."""
    links = pathlib.Path(f"/proc/{daemon.pid}/fd").iterdir()
    return [link for link in links if str(scratch) in os.readlink(link) and stat.S_ISREG(link.stat().st_mode)]


def is_never_completed(daemon, consumer, why):
    """The delivery under way: the connection ends inside of it, without a word, so that the broker keeps the message."""
    with pytest.raises(amqp.SocketClosed):
        consumer.deliver(timeout=60)
    daemon.wait_log(f"code=541 .*{why}")


def test_scratch_files_have_no_names_and_are_gone_when_they_are_not_needed(bellhop, broker, name, plain_s3rver, tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir(mode=0o700)
    daemon = bellhop({"stores": {"archive": plain_s3rver.store()}}, env={"TMPDIR": str(scratch)})
    side = Side(broker, name())
    up = publisher(daemon)
    payload = body_of(20 * MIB)
    up.channel.publish("", side.queue, payload)
    up.channel.expect("basic.ack", delivery_tag=1)
    consumer = Consumer(daemon, side.queue)
    assert consumer.deliver().body == payload
    assert list(scratch.iterdir()) == []
    wait_until(lambda: scratch_files(daemon, scratch) == [], what="no scratch file is open")


@pytest.fixture
def small_disk(tmp_path):
    """A folder with room for 8 MiB."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def published(bellhop, broker, name, s3, *bodies):
    """The bodies in a queue and their objects in the store, by a bellhop that has room."""
    side = Side(broker, name())
    daemon = bellhop({"stores": {"archive": s3.store(probe=False)}})
    up = publisher(daemon)
    for body in bodies:
        up.channel.publish("", side.queue, body)
    up.channel.confirms(len(bodies), timeout=60)
    up.client.abort()
    return side


def test_an_upload_that_finds_no_room_is_a_nack_and_the_next_one_is_not(bellhop, broker, name, plain_s3rver, small_disk):
    daemon = bellhop({"stores": {"archive": plain_s3rver.store(probe=False)}}, env={"TMPDIR": str(small_disk)})
    side = Side(broker, name())
    up = publisher(daemon)
    for number, (size, answer) in enumerate([(20 * MIB, "basic.nack"), (5 * MIB, "basic.ack"), (90 * MIB, "basic.nack"), (MIB, "basic.ack")], 1):
        up.channel.publish("", side.queue, body_of(size))
        up.channel.expect(answer, delivery_tag=number, timeout=60)
    assert "No space left on device" in daemon.log
    assert side.count() == 2


@pytest.mark.parametrize("place", ["nowhere", "small"])
def test_a_download_that_finds_no_room_comes_all_the_same(bellhop, broker, name, s3, small_disk, place):
    bodies = [body_of(size, size) for size in (20 * MIB, 3 * MIB, 100_000, 12 * MIB + 1)]
    side = published(bellhop, broker, name, s3, *bodies)
    with S3Proxy(s3.address) as proxy:
        daemon = bellhop({"stores": {"archive": s3.store(endpoint=proxy.endpoint, probe=False)}},
                         env={"TMPDIR": str(small_disk if place == "small" else small_disk / "nowhere")})
        faults = iter([None, ResetDown(2 * MIB), None, ResetDown(1000), None, ResetDown(100_000)])
        proxy.rule = lambda request: next(faults, None)
        consumer = Consumer(daemon, side.queue)
        for body in bodies:
            assert consumer.deliver(timeout=60).body == body
        assert [r for r in proxy.seen("GET") if r.headers.get("range", "").startswith("bytes=0-")]
        daemon.assert_memory_below(64 << 10, "VmHWM")


def test_what_was_read_again_is_the_object_that_was_verified(bellhop, broker, name, ceph, tmp_path):
    # s3rver does not know If-Match.
    body = body_of(20 * MIB)
    side = published(bellhop, broker, name, ceph, body)
    key = side.channel.get(side.queue).body[3:].decode()
    side.channel.send("basic.recover", requeue=True)
    with S3Proxy(ceph.address) as proxy:
        def rule(request):
            if request.headers.get("range", "").startswith("bytes=0-"):
                ceph.put(key, body_of(20 * MIB, 1))  # another object of the same size, under the same name
        proxy.rule = rule
        daemon = bellhop({"stores": {"archive": ceph.store(endpoint=proxy.endpoint, probe=False)}}, env={"TMPDIR": str(tmp_path / "nowhere")})
        is_never_completed(daemon, Consumer(daemon, side.queue), "412 PreconditionFailed")


@pytest.mark.parametrize("at", [0, 2 * MIB - 1], ids=["first byte", "last byte"])
def test_a_service_that_serves_other_bytes_the_second_time_completes_nothing(bellhop, broker, name, plain_s3rver, tmp_path, at):
    body = body_of(2 * MIB)
    damaged = body[:at] + bytes([body[at] ^ 1]) + body[at + 1:]
    side = published(bellhop, broker, name, plain_s3rver, body)
    with S3Proxy(plain_s3rver.address) as proxy:
        def rule(request):
            if wanted := re.fullmatch(r"bytes=(\d+)-(\d+)", request.headers.get("range", "")):
                first, last = map(int, wanted.groups())
                return Reply(206, {"content-range": f"bytes {first}-{last}/{len(body)}"}, damaged[first:last + 1])
        proxy.rule = rule
        daemon = bellhop({"stores": {"archive": plain_s3rver.store(endpoint=proxy.endpoint, probe=False)}},
                         env={"TMPDIR": str(tmp_path / "nowhere")})
        is_never_completed(daemon, Consumer(daemon, side.queue), "damaged: what was read again has the XXH3-128")
        damaged = body
        assert Consumer(daemon, side.queue).deliver(timeout=60).body == body


def test_a_scratch_file_that_lost_what_it_had_completes_nothing(bellhop, broker, name, plain_s3rver, tmp_path):
    body = body_of(20 * MIB)
    side = published(bellhop, broker, name, plain_s3rver, body)
    daemon = bellhop({"stores": {"archive": plain_s3rver.store(probe=False)}}, env={"TMPDIR": str(tmp_path)})
    consumer = Consumer(daemon, side.queue)  # which reads nothing yet, so that the last bytes stay where they are

    def whole():
        return [link for link in scratch_files(daemon, tmp_path) if link.stat().st_size == len(body)]
    [link] = wait_until(whole, what="the payload in a scratch file")
    with open(link, "r+b") as file:
        file.seek(len(body) - 1)
        file.write(bytes([body[-1] ^ 1]))
    is_never_completed(daemon, consumer, "its scratch file is damaged")


def test_a_service_that_is_slower_than_the_client_stops_the_client_and_not_the_disk(bellhop, broker, name, s3, tmp_path):
    with S3Proxy(s3.address) as proxy:
        proxy.rule = lambda request: Hang() if "partNumber=" in request.target else None
        daemon = bellhop({"stores": {"archive": s3.store(endpoint=proxy.endpoint, probe=False)}}, env={"TMPDIR": str(tmp_path)})
        side = Side(broker, name())
        up, other = publisher(daemon), publisher(daemon)
        body = body_of(300 * MIB)
        sent = []

        def send():
            for frame in up.channel.publish_frames("", side.queue, body):
                up.client.send_raw(frame, timeout=120)
                sent.append(len(frame))
        sender = threading.Thread(target=send)
        sender.start()
        wait_until(lambda: len(proxy.seen("PUT", "partNumber=")) == 4, what="four parts under way")
        # It stands still when two looks, far enough apart, see the same.
        looks = [None, 0]

        def stands_still():
            looks.append(sum(sent))
            return looks[-1] > 80 * MIB and looks[-1] == looks[-2] == looks[-6 if len(looks) > 6 else 0]
        wait_until(lambda: (time.sleep(0.2), stands_still())[1], what="the client is not read")
        # Five parts in the scratch file, the budget for bodies, and what sockets hold.
        assert sum(sent) < (80 + 32 + 16) * MIB
        files = [os.stat(f"/proc/{daemon.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{daemon.pid}/fd")
                 if str(tmp_path) in os.readlink(f"/proc/{daemon.pid}/fd/{fd}") and "deleted" in os.readlink(f"/proc/{daemon.pid}/fd/{fd}")]
        assert len(files) == 1 and files[0].st_blocks * 512 < (80 + 32 + 16) * MIB
        # Meanwhile others are served.
        other.channel.publish("", side.queue, b"small")
        other.channel.expect("basic.ack", delivery_tag=1)
        proxy.rule = None
        proxy.hang_over()
        sender.join()
        up.channel.expect("basic.ack", delivery_tag=1, timeout=60)
        consumer = Consumer(daemon, side.queue)
        assert consumer.deliver().body == b"small"
        assert consumer.deliver(timeout=60).body == body
        daemon.assert_memory_below(64 << 10, "VmHWM")
