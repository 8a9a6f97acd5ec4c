"""Nothing that an S3 service answers ends bellhop, keeps a request for ever, or takes memory without bound."""

import hashlib

import pytest

from support.claims import Consumer, Side, body_of
from support.publishing import publisher
from support.s3_proxy import Endless, EndlessHead, Reply

MIB = 1 << 20
BODY = body_of(100_000)
ETAG = {"ETag": f'"{hashlib.md5(BODY).hexdigest()}"'}
GZIP = {"content-encoding": "gzip", **ETAG}

ANSWERS = {
    "header fields without end": EndlessHead(),
    "a body without end": Endless(200),
    "an error without end": Endless(500),
    "a refusal without end": Endless(403),
    "a redirect to itself": Reply(307, {"location": "/claims/again"}),
    "a redirect to a page": Reply(302, {"location": "http://127.0.0.1:1/"}, b"<html>moved</html>"),
    "a length that is longer": Reply(200, {"content-length": str(1 << 60), **ETAG}, BODY, sized=False),
    "half of what its length says": Reply(200, {"content-length": "200000", **ETAG}, BODY, sized=False),
    "a length that is no number": Reply(200, {"content-length": "99999999999999999999999", **ETAG}, BODY, sized=False),
    "a length below zero": Reply(200, {"content-length": "-1", **ETAG}, BODY, sized=False),
    "two lengths": Reply(200, {"content-length": "5\r\ncontent-length: 100000", **ETAG}, BODY, sized=False),
    "no HTTP": Reply(200, {"\0\0\0": "\0"}, b"\0" * 1000, sized=False),
    "an encoding": Reply(200, GZIP, b"\x1f\x8b\x08\x00" + b"\0" * 100),
    "chunks that are none": Reply(200, {"transfer-encoding": "chunked", **ETAG}, b"zz\r\n" * 1000, sized=False),
    "XML that is nested": Reply(400, {}, b"<Error>" * 140_000),
    "XML of ampersands": Reply(400, {}, b"<Error><Code>" + b"&" * 900_000 + b"</Code></Error>"),
    "XML of entities": Reply(400, {}, b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]><Error><Code>&b;</Code></Error>'),
    "XML that is cut": Reply(400, {}, b"<Error><Code>No"),
    "nothing but a status": Reply(200, {}, b"", sized=False),
}


@pytest.fixture
def daemon(bellhop, plain_s3rver, proxy, name):
    return bellhop({"stores": {"archive": plain_s3rver.store(endpoint=proxy.endpoint, prefix=name("hostile") + "/", probe=False, retries=1,
                                                             timeout="3s")}})


@pytest.mark.parametrize("what", ANSWERS)
def test_an_upload_that_is_answered_so_is_nacked_and_the_next_is_not(daemon, broker, name, proxy, what):
    side = Side(broker, name())
    up = publisher(daemon)
    proxy.rule = lambda request: ANSWERS[what]
    up.channel.publish("", side.queue, BODY)
    up.channel.expect("basic.nack", delivery_tag=1, timeout=60)
    proxy.rule = None
    up.channel.publish("", side.queue, BODY)
    up.channel.expect("basic.ack", delivery_tag=2, timeout=60)
    daemon.assert_memory_below(48 << 10, "VmHWM")


@pytest.mark.parametrize("what", ANSWERS)
def test_a_download_that_is_answered_so_is_held_and_comes_later(daemon, broker, name, proxy, what):
    side = Side(broker, name())
    up = publisher(daemon)
    up.channel.publish("", side.queue, BODY)
    up.channel.expect("basic.ack", delivery_tag=1, timeout=60)
    proxy.rule = lambda request: ANSWERS[what] if request.method == "GET" else None
    consumer = Consumer(daemon, side.queue)
    # Where a whole object could be read out of it, it is the object.
    if what not in ("a length that is no number", "a length below zero", "two lengths"):
        daemon.wait_log("delivery held", timeout=60)
    proxy.rule = None
    assert consumer.deliver(timeout=60).body == BODY
    daemon.assert_memory_below(48 << 10, "VmHWM")


def test_sixty_four_of_them_at_one_time_are_bounded_together(daemon, broker, name, proxy):
    side = Side(broker, name())
    up = publisher(daemon)
    proxy.rule = lambda request: Endless(500)
    for number in range(64):
        up.channel.publish("", side.queue, body_of(70_000, number))
    settled = 0
    while settled < 64:
        event = up.channel.wait_for(("basic.ack", "basic.nack"), timeout=60)
        assert event.name == "basic.nack"
        settled = event.delivery_tag if event.multiple else settled + 1
    daemon.assert_memory_below(64 << 10, "VmHWM")
