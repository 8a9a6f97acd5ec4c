"""SIGTERM while an S3 service stands still: bellhop is gone at drain_timeout, and its log names what stays behind."""

import signal
import threading
import time

import pytest

from support.claims import Side, body_of
from support.publishing import publisher
from support.rabbitmq import TIME_FACTOR, wait_until
from support.s3_proxy import Hang

MIB = 1 << 20


@pytest.fixture
def daemon(bellhop, plain_s3rver, proxy):
    return bellhop({"stores": {"archive": plain_s3rver.store(endpoint=proxy.endpoint, probe=False)}, "limits": {"drain_timeout": "3s"}},
                   expect_exit=None)


def key_of(request):
    return request.target.split("/claims/")[1].split("?")[0]


def ends_in_time(daemon):
    began = time.monotonic()
    daemon.process.send_signal(signal.SIGTERM)
    daemon.process.wait(60)
    assert time.monotonic() - began < 3 + 2 * TIME_FACTOR, daemon.log[-2000:]


def test_a_service_that_stands_still_does_not_hold_up_the_end(daemon, broker, name, proxy):
    proxy.rule = lambda request: None if "uploads=" in request.target else Hang()
    side = Side(broker, name())
    up = publisher(daemon)
    up.channel.publish("", side.queue, body_of(100_000))
    up.channel.publish("", side.queue, body_of(70 * MIB))
    wait_until(lambda: proxy.seen("PUT", "partNumber="), what="a part under way")
    ends_in_time(daemon)
    [whole] = [r for r in proxy.seen("PUT") if "partNumber=" not in r.target]
    part = proxy.seen("PUT", "partNumber=")[0]
    daemon.wait_log(f"claim is left behind.* key={key_of(whole)} store=archive")
    upload = part.target.split("uploadId=")[1].split("&")[0]
    daemon.wait_log(f"claim is left behind.* key=.{key_of(part)} .multipart upload {upload}.* store=archive")


def test_an_undo_that_does_not_end_does_not_either(daemon, broker, name, proxy):
    proxy.rule = lambda request: Hang() if request.method == "DELETE" else None
    up = publisher(daemon)
    up.channel.publish("", name("nowhere"), body_of(100_000), mandatory=True)
    up.channel.wait_for("basic.return")
    wait_until(lambda: proxy.seen("DELETE"), what="the object being removed")
    ends_in_time(daemon)
    daemon.wait_log(f"claim is left behind.* key={key_of(proxy.seen('DELETE')[0])} store=archive")


def test_an_end_in_order_leaves_nothing_behind(daemon, broker, name, proxy):
    up = publisher(daemon)
    up.channel.publish("", name("nowhere"), body_of(100_000), mandatory=True)
    up.channel.wait_for("basic.ack")
    ends_in_time(daemon)
    assert "left behind" not in daemon.log and daemon.process.returncode == 0


def test_the_undo_of_an_upload_that_begins_at_the_very_end_is_waited_for(bellhop, broker, name, plain_s3rver, proxy):
    daemon = bellhop({"stores": {"archive": plain_s3rver.store(endpoint=proxy.endpoint, probe=False)}})
    answered = threading.Event()
    proxy.rule = lambda request: answered.wait(60) and None if request.target.endswith("?uploads=") else None
    up = publisher(daemon)
    frames = up.channel.publish_frames("", name("nowhere"), body_of(70 * MIB))
    up.client.send_raw(b"".join(frames[:5]))
    wait_until(lambda: proxy.seen("POST", "?uploads="), what="the upload begins")
    up.client.abort()
    daemon.process.send_signal(signal.SIGTERM)
    daemon.wait_log("session closed session=1")
    answered.set()
    daemon.process.wait(60)
    assert proxy.seen("DELETE", "uploadId="), "nobody ended the upload"
    assert "left behind" not in daemon.log
