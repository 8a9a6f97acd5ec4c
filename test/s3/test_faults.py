"""An S3 service that fails: what passes is tried again, what does not is said in the service's own words; nothing is lost and nothing
is half delivered."""

import pathlib

import pytest

from support.claims import Consumer, Side, body_of, claim
from support.publishing import publisher
from support.rabbitmq import free_port
from support.s3 import S3rver
from support.s3_proxy import INTERNAL, SLOW_DOWN, UNAVAILABLE, Answer, Endless, Hang, ResetDown, ResetUp, Trickle
from support.s3_setting import S3Setting

MIB = 1 << 20
PAYLOAD = body_of(100_000)
FAKETIME = str(next(pathlib.Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")))


class Setting(S3Setting):
    def publish(self, body, answer="basic.ack", timeout=60):
        self.send(body)
        return self.up.channel.expect(answer, delivery_tag=self.tag, timeout=timeout)

    def comes_back(self, *bodies):
        consumer = Consumer(self.daemon, self.side.queue)
        for body in bodies:
            assert consumer.deliver(timeout=60).body == body


@pytest.fixture
def setting(bellhop, broker, name, s3, proxy):
    return lambda **keys: Setting(bellhop, broker, name, s3, proxy, **keys)


def storm(count, *answers):
    """Every n-th request is let through; the others get the answers in turn."""
    seen = {"n": 0}

    def rule(request):
        seen["n"] += 1
        return None if seen["n"] % count == 0 else answers[seen["n"] % len(answers)]
    return rule


def test_a_storm_of_503s_costs_time_and_nothing_else(setting, proxy):
    here = setting(retries=30)
    proxy.rule = storm(2, SLOW_DOWN, UNAVAILABLE, INTERNAL, Answer(429, "TooManyRequests"))
    bodies = [body_of(100_000, n) for n in range(20)]
    for body in bodies:
        here.up.channel.publish("", here.side.queue, body)
    here.up.channel.confirms(20, timeout=60)
    here.comes_back(*bodies)
    assert len([r for r in proxy.requests if r.status in (429, 500, 503)]) >= 20
    assert len(here.s3.names(here.prefix)) == 20


def test_a_storm_that_does_not_end_is_a_nack_in_the_services_words(setting, proxy):
    here = setting(retries=2)
    proxy.rule = lambda request: SLOW_DOWN
    here.publish(PAYLOAD, "basic.nack")
    assert len(proxy.seen("PUT")) == 3
    assert "503 SlowDown: Please reduce your request rate." in here.refused()
    proxy.rule = None
    here.publish(PAYLOAD)
    here.comes_back(PAYLOAD)


@pytest.mark.parametrize("size", [100_000, 3 * MIB, 70 * MIB])
def test_a_reset_in_the_middle_of_an_upload_is_tried_again(setting, proxy, size):
    here = setting()
    faults = iter([ResetUp(50_000), ResetUp(90_000)])
    proxy.rule = lambda request: next(faults, None) if request.method == "PUT" else None
    body = body_of(size)
    here.publish(body)
    proxy.rule = None
    here.comes_back(body)
    assert len(here.s3.names(here.prefix)) == 1


@pytest.mark.parametrize("size", [100_000, 3 * MIB])
def test_a_reset_in_the_middle_of_a_download_is_tried_again(setting, proxy, size):
    here = setting()
    body = body_of(size)
    here.publish(body)
    faults = iter([ResetDown(50_000), ResetDown(90_000)])
    proxy.rule = lambda request: next(faults, None) if request.method == "GET" else None
    here.comes_back(body)


def test_a_large_download_goes_on_where_it_broke_off(setting, proxy):
    here = setting()
    body = body_of(30 * MIB)
    here.publish(body)
    faults = iter([ResetDown(10 * MIB), ResetDown(5 * MIB)])
    proxy.rule = lambda request: next(faults, None) if request.method == "GET" else None
    here.comes_back(body)
    ranges = [r.headers.get("range") for r in proxy.seen("GET")]
    assert ranges[0] is None and len(ranges) == 3
    starts = [int(r.removeprefix("bytes=").removesuffix("-")) for r in ranges[1:]]
    assert 0 < starts[0] < starts[1] < 30 * MIB
    assert all("if-match" in r.headers for r in proxy.seen("GET")[1:])


def test_a_service_that_stands_still_is_left_after_the_timeout(setting, proxy):
    here = setting(timeout="1s")
    faults = iter([Hang(), Hang()])
    proxy.rule = lambda request: next(faults, None)
    here.publish(PAYLOAD)
    assert len(proxy.seen("PUT")) == 3
    faults = iter([Hang()])
    here.comes_back(PAYLOAD)


def test_a_service_that_never_answers_is_a_nack_that_says_so(setting, proxy):
    here = setting(timeout="1s", retries=1)
    proxy.rule = lambda request: Hang()
    here.publish(PAYLOAD, "basic.nack")
    assert "moved for the store's timeout" in here.refused()


def test_an_answer_that_only_trickles_is_left_too(setting, proxy):
    here = setting(timeout="1s")
    here.publish(PAYLOAD)
    faults = iter([Trickle()])
    proxy.rule = lambda request: next(faults, None)
    here.comes_back(PAYLOAD)
    assert len(proxy.seen("GET")) == 2


@pytest.mark.parametrize("answer, words", [(Endless(200), "200 with an answer that does not end"), (Endless(403), "PUT: 403"),
                                          (Endless(500), "PUT: 500"), (Endless(200, trickles=True), "moved for the store's timeout"),
                                          (Endless(100, trickles=True), "moved for the store's timeout")])
def test_an_answer_without_an_end_does_not_keep_its_request(setting, proxy, answer, words):
    here = setting(timeout="1s", retries=1)
    proxy.rule = lambda request: answer
    here.publish(PAYLOAD, "basic.nack")
    assert words in here.refused()


def test_a_slow_client_is_no_reason_to_give_up_its_upload(bellhop, broker, name, tls_s3rver):
    daemon = bellhop({"stores": {"archive": tls_s3rver.store(prefix="slow/", timeout="1s", retries=0)}},
                     env={"AWS_CA_BUNDLE": str(tls_s3rver.ca)})
    daemon.wait_log("can be written, read and removed from")
    side = Side(broker, name())
    up = publisher(daemon)
    body = body_of(3 * MIB)
    frames = up.channel.publish_frames("", side.queue, body)
    for frame in frames[:len(frames) // 2]:
        up.client.send_raw(frame)
    up.client.expect_nothing(2.5)  # longer than the store's timeout, and nobody is at fault
    for frame in frames[len(frames) // 2:]:
        up.client.send_raw(frame)
    up.channel.expect("basic.ack", delivery_tag=1)
    assert Consumer(daemon, side.queue).deliver().body == body


def test_a_wrong_key_is_not_tried_again(setting, proxy):
    here = setting(secret_key="wrong")
    here.publish(PAYLOAD, "basic.nack")
    assert [r.method for r in proxy.requests] == ["PUT"]
    text = here.refused()
    assert "SignatureDoesNotMatch" in text and "bucket 'claims'" in text and proxy.endpoint in text
    assert "wrong" not in here.daemon.log.replace("the secret key", "")


def test_a_large_upload_with_a_wrong_key_says_so_too(bellhop, broker, name, ceph):
    # s3rver answers with a reset, behind which its words are lost.
    here = Setting(bellhop, broker, name, ceph, ceph, secret_key="wrong")
    here.publish(body_of(20 * MIB), "basic.nack")
    assert "SignatureDoesNotMatch" in here.refused()


def test_a_missing_bucket_is_an_unavailable_store_and_no_missing_object(setting, proxy):
    here = setting(bucket="nowhere")
    here.publish(PAYLOAD, "basic.nack")
    assert len(proxy.seen("PUT")) == 1
    assert "NoSuchBucket" in here.refused() and "bucket 'nowhere'" in here.refused()
    here.side.send(claim("11111111-1111-4111-8111-111111111111"))
    consumer = Consumer(here.daemon, here.side.queue)
    assert "NoSuchBucket" in here.daemon.wait_log("delivery held.*").group(0)
    assert not here.side.exists(here.side.parked)


def test_a_missing_object_is_parked_with_the_word_retention(setting):
    here = setting()
    key = "11111111-1111-4111-8111-111111111111"
    here.side.send(claim(key))
    consumer = Consumer(here.daemon, here.side.queue)
    error = here.side.take().headers["x-acemq-error"]
    assert key in error and "retention" in error


def test_a_denied_object_is_held_and_not_parked(setting, proxy):
    here = setting()
    here.publish(PAYLOAD)
    proxy.rule = lambda request: Answer(403, "AccessDenied")
    consumer = Consumer(here.daemon, here.side.queue)
    assert "AccessDenied" in here.daemon.wait_log("delivery held.*").group(0)
    proxy.rule = None
    assert consumer.deliver().body == PAYLOAD


def test_a_damaged_object_is_parked_and_not_delivered(setting):
    here = setting()
    for body in (PAYLOAD, body_of(3 * MIB)):
        here.publish(body)
    small, large = sorted(here.s3.names(here.prefix), key=lambda n: len(here.s3.get(n)))
    here.s3.put(small, PAYLOAD[:-1] + b"!")
    here.s3.put(large, body_of(3 * MIB)[:-1])
    consumer = Consumer(here.daemon, here.side.queue)
    errors = [here.side.take().headers["x-acemq-error"] for _ in range(2)]
    assert any("XXH3-128" in e for e in errors) and any(f"{3 * MIB - 1} bytes" in e for e in errors)


def test_a_clock_that_is_an_hour_off_is_named(bellhop, s3):
    daemon = bellhop({"stores": {"archive": s3.store()}}, env={"LD_PRELOAD": FAKETIME, "FAKETIME": "+1h"})
    assert "RequestTimeTooSkewed" in daemon.wait_log(r"store is unavailable: .* store=archive key=stores.archive reason=.*").group(0)


@pytest.mark.parametrize("answer", [
    Answer(301, "PermanentRedirect", extra="<Endpoint>claims.s3.eu-west-1.amazonaws.com</Endpoint>"),
    Answer(400, "AuthorizationHeaderMalformed", "The region 'us-east-1' is wrong; expecting 'eu-west-1'", "<Region>eu-west-1</Region>"),
])
def test_a_wrong_region_is_not_tried_again_and_the_right_one_is_named(setting, proxy, answer):
    here = setting()
    proxy.rule = lambda request: answer
    here.publish(PAYLOAD, "basic.nack")
    assert len(proxy.seen("PUT")) == 1
    assert answer.code in here.refused() and "eu-west-1" in here.refused()


def test_no_service_at_all_is_told_once_and_so_is_its_return(bellhop, broker, name, tmp_path):
    port = free_port()
    daemon = bellhop({"stores": {"archive": {"type": "s3", "endpoint": f"http://127.0.0.1:{port}", "bucket": "claims", "access_key": "S3RVER",
                                             "secret_key": "S3RVER", "retries": 0}}})
    assert "archive" in daemon.wait_log(r"store is unavailable: .* store=archive key=stores.archive reason=.*connect.*").group(0)
    side = Side(broker, name())
    up = publisher(daemon)
    up.channel.publish("", side.queue, PAYLOAD)
    up.channel.expect("basic.nack", delivery_tag=1)
    with S3rver(tmp_path, port=port):
        daemon.wait_log("store is available again store=archive", timeout=60)
        assert daemon.log.count("store is unavailable") == 1
        up.channel.publish("", side.queue, PAYLOAD)
        up.channel.expect("basic.ack", delivery_tag=2)


def test_a_service_that_dies_and_comes_back_with_50_messages_under_way(bellhop, broker, name, own_s3):
    daemon = bellhop({"stores": {"archive": own_s3.store(prefix="w/", retries=3)}})
    daemon.wait_log("can be written, read and removed from")
    side = Side(broker, name())
    up = publisher(daemon)
    bodies = [body_of(300_000, n) for n in range(50)]
    for body in bodies[:25]:
        up.channel.publish("", side.queue, body)
    own_s3.kill()
    for body in bodies[25:]:
        up.channel.publish("", side.queue, body)
    own_s3.start()
    settled = {}
    while len(settled) < 50:
        event = up.client.next_event(timeout=60)
        assert event.name in ("basic.ack", "basic.nack"), event
        for tag in range(1 if event.multiple else event.delivery_tag, event.delivery_tag + 1):
            settled.setdefault(tag, event.name)
    acked = [bodies[tag - 1] for tag in range(1, 51) if settled[tag] == "basic.ack"]
    consumer = Consumer(daemon, side.queue)
    assert consumer.bodies(len(acked)) == acked
    assert side.count() == 0


def test_deliveries_wait_for_a_service_that_died(bellhop, broker, name, own_s3):
    daemon = bellhop({"stores": {"archive": own_s3.store(prefix="r/", retries=1)}})
    daemon.wait_log("can be written, read and removed from")
    side = Side(broker, name())
    up = publisher(daemon)
    bodies = [body_of(300_000, n) for n in range(50)]
    for body in bodies:
        up.channel.publish("", side.queue, body)
    up.channel.confirms(50)
    own_s3.kill()
    consumer = Consumer(daemon, side.queue)
    daemon.wait_log("delivery held")
    own_s3.start()
    assert [consumer.deliver(timeout=60).body for _ in range(50)] == bodies
