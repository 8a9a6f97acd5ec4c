"""An S3 service, or what stands before it, says 200 and has nothing: what does not show that a request was carried out is no success.
bellhop looks whether the object is there, asks again, and nacks in the end; and what it reads is whole, or is read again."""

import email.utils
import hashlib
import time

import pytest

from support.claims import Consumer, body_of
from support.rabbitmq import wait_until
from support.s3_proxy import INTERNAL, Reply
from support.s3_setting import S3Setting

MIB = 1 << 20
SMALL, IN_PARTS = body_of(100_000), body_of(66 * MIB)
PAGE = b"<html><body>Please log in</body></html>"
ERROR = INTERNAL.bytes().split(b"\r\n\r\n", 1)[1]


def etag_of(body):
    return {"ETag": f'"{hashlib.md5(body).hexdigest()}"'}


class Setting(S3Setting):
    def publish(self, body):
        """Whether it was confirmed. What is confirmed is there; what is not is not."""
        self.send(body)
        acked = self.up.channel.wait_for(("basic.ack", "basic.nack"), timeout=60).name == "basic.ack"
        self.proxy.rule = None
        wait_until(lambda: self.objects() == ([body] if acked else []), what="the object there" if acked else "no object there")
        return acked

    def objects(self):
        """The bodies that are there; one that is being removed counts as neither."""
        answers = [self.s3.client.request("GET", f"/{self.s3.bucket}/{each}") for each in self.s3.names(self.prefix)]
        return [body if status == 200 else None for status, _, body in answers]


@pytest.fixture
def setting(bellhop, broker, name, s3, proxy):
    return lambda **keys: Setting(bellhop, broker, name, s3, proxy, **{"retries": 1, "timeout": "10s", **keys})


def completes(request):
    return request.method == "POST" and "uploadId=" in request.target


def puts(request):
    return request.method == "PUT" and "partNumber" not in request.target


def times(count, which, answer):
    """The first `count` requests of that kind get the answer."""
    left = {"n": count}

    def rule(request):
        if not which(request) or left["n"] == 0:
            return None
        left["n"] -= 1
        return answer
    return rule


COMPLETIONS = {
    "an error": Reply(200, {}, ERROR),
    "blanks and an error": Reply(200, {}, b"  \n  " + ERROR),
    "an empty body": Reply(200),
    "blanks and the connection's end": Reply(200, {}, b"   \n", sized=False),
    "blanks and a cut": Reply(200, {"content-length": "400"}, b"   \n", sized=False),
    "half of a result": Reply(200, {}, b"<CompleteMultipartUploadResult><ETag>x</ET", sized=False),
    "a page": Reply(200, {"content-type": "text/html"}, PAGE),
    "no content": Reply(204),
    "accepted": Reply(202, {}, b"<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>"),
}


@pytest.mark.parametrize("what", COMPLETIONS)
def test_a_completion_that_shows_nothing_is_made_again_and_nacked_in_the_end(setting, proxy, what):
    here = setting()
    proxy.rule = times(1, completes, COMPLETIONS[what])
    assert here.publish(IN_PARTS)
    proxy.rule = times(99, completes, COMPLETIONS[what])
    here.s3.delete(here.s3.names(here.prefix)[0])
    assert not here.publish(IN_PARTS)
    assert "complete a multipart upload" in here.refused()


@pytest.mark.parametrize("what", ["an empty body", "blanks and the connection's end", "a page"])
def test_a_completion_that_shows_nothing_and_was_carried_out_is_found(setting, proxy, what):
    here = setting(retries=0)
    answer = COMPLETIONS[what]
    proxy.rule = times(99, completes, Reply(answer.status, answer.headers, answer.body, carried_out=True, sized=answer.sized))
    assert here.publish(IN_PARTS)
    assert len(proxy.seen("HEAD")) == 1


PUTS = {
    "an error": Reply(200, etag_of(SMALL), ERROR),
    "a page": Reply(200, {"content-type": "text/html"}, PAGE),
    "a page with an ETag": Reply(200, {"content-type": "text/html", **etag_of(PAGE)}, PAGE),
    "no ETag": Reply(200),
    "another ETag": Reply(200, etag_of(SMALL[:50_000])),
    "created": Reply(201, etag_of(SMALL)),
    "accepted": Reply(202, etag_of(SMALL)),
    "no content": Reply(204, etag_of(SMALL)),
    "a part": Reply(206, etag_of(SMALL)),
}


@pytest.mark.parametrize("what", PUTS)
def test_a_put_that_shows_nothing_is_made_again_and_nacked_in_the_end(setting, proxy, what):
    here = setting()
    proxy.rule = times(1, puts, PUTS[what])
    assert here.publish(SMALL)
    assert [r.method for r in proxy.requests[:3]] == ["PUT", "HEAD", "PUT"]
    here.s3.delete(here.s3.names(here.prefix)[0])
    proxy.rule = times(99, puts, PUTS[what])
    assert not here.publish(SMALL)
    assert f"PUT: {PUTS[what].status} " in here.refused()


def test_a_put_that_shows_nothing_and_was_carried_out_is_found(setting, proxy):
    here = setting(retries=0)
    proxy.rule = times(1, puts, Reply(200, etag_of(b"encrypted"), carried_out=True))
    assert here.publish(SMALL)
    assert [r.method for r in proxy.requests[:2]] == ["PUT", "HEAD"]


def test_where_the_service_encrypts_with_its_own_keys_an_etag_says_nothing(setting, proxy):
    here = setting()
    proxy.rule = times(1, puts, Reply(200, {"x-amz-server-side-encryption": "aws:kms", **etag_of(b"encrypted")}, carried_out=True))
    assert here.publish(SMALL)
    assert [r.method for r in proxy.requests[:1]] == ["PUT"] and not proxy.seen("HEAD")


@pytest.mark.parametrize("always", [False, True])
def test_half_an_object_is_no_object(setting, proxy, always):
    here = setting()
    left = {"n": 99 if always else 1}

    def rule(request):
        if puts(request) and left["n"]:
            left["n"] -= 1
            here.s3.put(request.target.split("/claims/")[1], SMALL[:50_000])
            return Reply(200, etag_of(SMALL[:50_000]))
    proxy.rule = rule
    assert here.publish(SMALL) is not always


def test_a_part_that_shows_nothing_is_sent_again(setting, proxy):
    here = setting(retries=3)
    answers = iter([Reply(200), Reply(204, etag_of(b"")), Reply(200, etag_of(b"half of it"))])
    proxy.rule = lambda request: next(answers, None) if "partNumber=2&" in request.target else None
    assert here.publish(IN_PARTS)
    assert len(proxy.seen("PUT", "partNumber=2&")) == 4


@pytest.mark.parametrize("is_there", [True, False])
def test_parts_whose_etags_are_no_md5_are_settled_by_the_objects_size(setting, proxy, is_there):
    here = setting(retries=2)

    def rule(request):
        if "partNumber=" in request.target:
            return Reply(200, etag_of(request.target.encode()), carried_out=True)
        if completes(request):  # the server itself knows nothing of these ETags
            if is_there:
                here.s3.put(request.target.split("/claims/")[1].split("?")[0], IN_PARTS)
            return Reply(200, {}, b"<CompleteMultipartUploadResult/>")
    proxy.rule = rule
    assert here.publish(IN_PARTS) is is_there
    assert len(proxy.seen("HEAD")) == (1 if is_there else 3)


def test_an_upload_that_was_begun_without_an_id_is_begun_again(setting, proxy):
    here = setting()
    answers = iter([Reply(200, {}, PAGE)])
    proxy.rule = lambda request: next(answers, None) if "uploads=" in request.target else None
    assert here.publish(IN_PARTS)
    assert len(proxy.seen("POST", "uploads=")) == 2


# Reading.

def gets(request):
    return request.method == "GET"


def cut(body, at):
    return Reply(200, {"content-length": str(len(body)), **etag_of(body)}, body[:at], sized=False)


SPOILT = {
    "no content": lambda body: Reply(204, etag_of(body)),
    "a page": lambda body: Reply(200, {"content-type": "text/html"}, PAGE),
    "a page as large as the object": lambda body: Reply(200, {"content-type": "text/html", **etag_of(PAGE)}, PAGE.ljust(len(body))),
    "accepted": lambda body: Reply(202, etag_of(body), body),
    "a range that was not asked for": lambda body: Reply(206, {"content-range": f"bytes 0-9/{len(body)}", **etag_of(body)}, body[:10]),
    "cut": lambda body: cut(body, 50_000),
    "cut, and its length with it": lambda body: Reply(200, etag_of(body), body[:50_000]),
    "cut, without a length": lambda body: Reply(200, etag_of(body), body[:50_000], sized=False),
    "too long, without a length": lambda body: Reply(200, etag_of(body), body + b"more", sized=False),
    "damaged": lambda body: Reply(200, etag_of(body), b"?" + body[1:]),
    "empty": lambda body: Reply(200, etag_of(b"")),
}


@pytest.mark.parametrize("size", [100_000, 3 * MIB])
@pytest.mark.parametrize("what", SPOILT)
def test_a_spoilt_answer_is_fetched_again(setting, proxy, what, size):
    here = setting()
    body = body_of(size)
    assert here.publish(body)
    proxy.rule = times(1, gets, SPOILT[what](body))
    assert Consumer(here.daemon, here.side.queue).deliver(timeout=60).body == body
    assert len(proxy.seen("GET")) == 2 and not here.side.exists(here.side.parked)


@pytest.mark.parametrize("what", ["no content", "a page", "a page as large as the object", "accepted", "too long, without a length"])
def test_what_is_no_object_is_held_and_never_parked(setting, proxy, what):
    here = setting()
    assert here.publish(SMALL)
    proxy.rule = times(99, gets, SPOILT[what](SMALL))
    consumer = Consumer(here.daemon, here.side.queue)
    here.daemon.wait_log("delivery held.*")
    assert not here.side.exists(here.side.parked)
    proxy.rule = None
    assert consumer.deliver(timeout=60).body == SMALL


def test_objects_that_differ_each_time_are_held(setting, proxy):
    here = setting(retries=3)
    assert here.publish(SMALL)
    count = {"n": 0}

    def rule(request):
        count["n"] += 1
        return Reply(200, etag_of(SMALL), bytes([count["n"]]) + SMALL[1:])
    proxy.rule = rule
    consumer = Consumer(here.daemon, here.side.queue)
    assert "XXH3-128" in here.daemon.wait_log("delivery held.*").group(0)
    proxy.rule = None
    assert consumer.deliver(timeout=60).body == SMALL


@pytest.mark.parametrize("retries", [0, 3])
@pytest.mark.parametrize("what", ["cut, and its length with it", "damaged", "empty"])
def test_only_a_whole_wrong_object_that_comes_again_is_corrupt(setting, proxy, what, retries):
    here = setting(retries=retries)
    assert here.publish(SMALL)
    proxy.rule = times(99, gets, SPOILT[what](SMALL))
    consumer = Consumer(here.daemon, here.side.queue)  # noqa: F841, its connection lives as long
    assert "the message says" in here.side.take().headers["x-acemq-error"]
    assert len(proxy.seen("GET")) == 2
    assert proxy.seen("GET")[1].headers["cache-control"] == "no-cache"


def test_a_piece_that_is_read_again_for_want_of_room_is_whole(setting, proxy, bellhop, s3, tmp_path):
    here = setting()
    body = body_of(5 * MIB)
    assert here.publish(body)
    daemon = bellhop({"stores": {"archive": s3.store(endpoint=proxy.endpoint, prefix=here.prefix, probe=False)}},
                     env={"TMPDIR": str(tmp_path / "nowhere")})
    oddities = iter([None, Reply(204), Reply(200, etag_of(body), PAGE), Reply(206, {"content-range": "bytes 0-9/10"}, PAGE[:10])])
    proxy.rule = lambda request: next(oddities, None)
    assert Consumer(daemon, here.side.queue).deliver(timeout=60).body == body


@pytest.mark.parametrize("seconds", [1, "date", 3])
def test_a_service_is_left_alone_as_long_as_it_asks(setting, proxy, seconds):
    here = setting(retries=3)
    asked = {"date": email.utils.formatdate(time.time() + 2, usegmt=True)}.get(seconds, seconds)
    at = []

    def rule(request):
        at.append(time.monotonic())
        return Reply(503, {"retry-after": str(asked)}, ERROR) if len(at) == 1 else None
    proxy.rule = rule
    assert here.publish(SMALL)
    assert at[1] - at[0] >= (0.9 if seconds == "date" else seconds)
