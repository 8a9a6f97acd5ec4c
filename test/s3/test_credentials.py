"""Where a store's keys come from, and that they are renewed: a pod has none in a file. Requests wait for keys that are coming; keys that do
not come are a nack with a clear text, and a delivery that is held."""

import re
import time

import pytest

from support.aws import KINDS, METADATA_TOKEN, ROLES, AwsServices
from support.claims import Consumer, Side, body_of
from support.publishing import publisher
from support.rabbitmq import wait_until
from support.s3_proxy import Answer

PAYLOAD = body_of(100_000)


@pytest.fixture
def aws():
    with AwsServices() as aws:
        yield aws


def key_of(request):
    return re.search(r"Credential=([^/]*)/", request.headers["authorization"]).group(1)


class Setting:
    def __init__(self, bellhop, broker, name, s3, proxy, env, **keys):
        store = s3.store(**{"endpoint": proxy.endpoint, "prefix": name("keys") + "/", "probe": False, "retries": 2, **keys})
        del store["access_key"], store["secret_key"]
        self.proxy = proxy
        self.daemon = bellhop({"stores": {"archive": store}}, env=env)
        self.side = Side(broker, name())
        self.up = publisher(self.daemon)
        self.tag = 0

    def publish(self, answer="basic.ack"):
        self.tag += 1
        self.up.channel.publish("", self.side.queue, PAYLOAD)
        self.up.channel.expect(answer, delivery_tag=self.tag, timeout=60)

    def refused(self, words):
        return self.daemon.wait_log(f"publish refused .*code=541 reason=.*{words}").group(0)


@pytest.fixture
def setting(bellhop, broker, name, plain_s3rver, proxy):
    return lambda env, **keys: Setting(bellhop, broker, name, plain_s3rver, proxy, env, **keys)


@pytest.mark.parametrize("kind", KINDS)
def test_each_place_gives_keys_that_work(setting, aws, proxy, kind):
    here = setting(aws.environment(kind))
    here.publish()
    assert Consumer(here.daemon, here.side.queue).deliver(timeout=60).body == PAYLOAD
    assert {key_of(r) for r in proxy.requests} == {"S3RVER"}
    assert {r.headers.get("x-amz-security-token") for r in proxy.requests} == {aws.keys[2]}
    assert aws.fetches() == 1
    if kind == "container":
        assert aws.requests[0].headers["authorization"] == aws.token
    if kind == "web identity":
        assert "RoleSessionName=orders" in aws.requests[0].body and "authorization" not in aws.requests[0].headers
    if kind == "instance":
        assert [(r.method, r.path) for r in aws.requests[:2]] == [("PUT", "/latest/api/token"), ("GET", ROLES)]
        assert all(r.headers["x-aws-ec2-metadata-token"] == METADATA_TOKEN for r in aws.requests[1:])


@pytest.mark.parametrize("kind", KINDS)
def test_keys_that_do_not_come_are_a_nack_and_a_held_delivery_told_once(setting, aws, kind):
    here = setting(aws.environment(kind))
    here.publish()
    aws.stop()
    here.daemon.sigterm()
    here.daemon.wait(60)
    here.daemon.start()
    here.up = publisher(here.daemon)
    here.tag = 0
    here.publish("basic.nack")
    assert "no credentials" in here.refused("127.0.0.1")
    consumer = Consumer(here.daemon, here.side.queue)
    assert "no credentials" in here.daemon.wait_log("delivery held.*").group(0)
    assert here.daemon.log.count("until they come, bellhop nacks publishes") == 1
    aws.start()
    assert consumer.deliver(timeout=60).body == PAYLOAD
    here.daemon.wait_log("credentials came store=archive failed_attempts=[0-9]+")
    here.publish()
    assert here.daemon.log.count("until they come, bellhop nacks publishes") == 1


@pytest.mark.parametrize("kind", KINDS)
def test_keys_are_renewed_before_they_expire(setting, aws, proxy, kind):
    aws.give("S3RVER", "S3RVER", "first", lasts=4)
    here = setting(aws.environment(kind))
    here.publish()
    aws.give("S3RVER", "S3RVER", "second", lasts=3600)
    until = time.monotonic() + 6

    def renewed():
        here.publish()
        return proxy.requests[-1].headers["x-amz-security-token"] == "second"
    wait_until(renewed, what="the second keys in use")
    assert time.monotonic() < until and aws.fetches() == 2
    assert "publish refused" not in here.daemon.log


def test_one_refresh_serves_all_that_wait(setting, aws):
    aws.hang()
    here = setting(aws.environment("container"), retries=30)
    other = publisher(here.daemon)
    for number in range(12):  # fewer than transfers_per_session: the client is read all the while
        here.up.channel.publish("", here.side.queue, body_of(70_000, number))
    wait_until(lambda: aws.requests, what="keys asked for")
    other.channel.publish("", here.side.queue, b"a session waits for no key")
    other.channel.expect("basic.ack", delivery_tag=1)
    aws.go_on()
    here.up.channel.confirms(12, timeout=60)
    # One; a few on a slow machine, which waits for none of them long enough.
    assert aws.fetches() < 6


@pytest.mark.parametrize("status, code", [(400, "ExpiredToken"), (403, "InvalidAccessKeyId"), (403, "AccessDenied")])
@pytest.mark.parametrize("kind", ["container", "file"])
def test_keys_that_are_refused_are_read_again_once(setting, aws, proxy, tmp_path, kind, status, code):
    def give(key):
        aws.give(key, "S3RVER")
        (tmp_path / "new").write_text(f"[default]\naws_access_key_id = {key}\naws_secret_access_key = S3RVER\n")
        (tmp_path / "new").replace(tmp_path / "credentials")
    give("REVOKED")
    env = aws.environment("container")
    if kind == "file":
        env["AWS_SHARED_CREDENTIALS_FILE"] = str(tmp_path / "credentials")
    proxy.rule = lambda request: Answer(status, code) if key_of(request) == "REVOKED" else None
    here = setting(env)
    here.publish("basic.nack")  # the same again
    assert code in here.refused(code)
    assert len(proxy.seen("PUT")) == (1 if kind == "file" else 2)  # a file shows at once that it is the same
    # Others, at once: they are not waited for by a clock.
    give("S3RVER")
    if kind == "container":
        wait_until(lambda: (here.tag, here.up.channel.publish("", here.side.queue, PAYLOAD),
                            here.up.channel.wait_for(("basic.ack", "basic.nack")).name == "basic.ack")[2], what="the new keys")
    else:
        here.publish()
    assert key_of(proxy.requests[-1]) == "S3RVER"


def test_a_file_that_is_written_anew_is_read_again_while_the_old_keys_are_still_good(setting, proxy, tmp_path, aws):
    file = tmp_path / "credentials"
    file.write_text("[default]\naws_access_key_id = S3RVER\naws_secret_access_key = S3RVER\n")
    here = setting({**aws.environment("container"), "AWS_SHARED_CREDENTIALS_FILE": str(file)})
    here.publish()
    assert "x-amz-security-token" not in proxy.requests[-1].headers and not aws.requests
    file.write_text("[default]\naws_access_key_id = S3RVER\naws_secret_access_key = S3RVER\naws_session_token = rotated\n")

    def rotated():
        here.publish()
        return proxy.requests[-1].headers.get("x-amz-security-token") == "rotated"
    wait_until(rotated, what="the new token in use")


def test_a_file_that_was_read_half_written_is_read_again_when_it_is_whole(setting, proxy, tmp_path, aws):
    file = tmp_path / "credentials"
    keys = "[default]\naws_access_key_id = S3RVER\naws_secret_access_key = S3RVER\naws_session_token = "
    file.write_text(keys + "first\n")
    here = setting({**aws.environment("container"), "AWS_SHARED_CREDENTIALS_FILE": str(file)})

    def in_use(token):
        here.publish()
        return proxy.requests[-1].headers.get("x-amz-security-token") == token
    wait_until(lambda: in_use("first"), what="the file's keys")
    file.write_text("[default]\naws_acc")
    wait_until(lambda: in_use(aws.keys[2]), what="the next place's keys, since the file has none")
    file.write_text(keys + "second\n")
    wait_until(lambda: in_use("second"), what="the file's keys again")


def test_a_pods_token_is_read_each_time(setting, aws, proxy):
    aws.give("S3RVER", "S3RVER", "first", lasts=2)
    here = setting(aws.environment("web identity"))
    here.publish()
    aws.renew_token("eyJhbGciOi.renewed.token")
    aws.give("S3RVER", "S3RVER", "second")

    def renewed():
        here.publish()
        return proxy.requests[-1].headers["x-amz-security-token"] == "second"
    wait_until(renewed, what="keys for the new token")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("answer", [
    (200, {}, b""), (200, {"content-type": "text/html"}, b"<html>Log in</html>"), (200, {}, b'{"AccessKeyId": "A'), (204, {}, b""),
    (500, {}, b'{"code": "Broken", "message": "on purpose"}'), (302, {"location": "/again"}, b""), (200, {}, b"x" * 5_000_000),
    (200, {}, b"[" * 60_000), (200, {}, b'{"AccessKeyId": "A\\r\\nX: y", "SecretAccessKey": "S", "Token": "T"}'),
])
def test_an_answer_that_has_no_keys_is_a_failure_that_passes(setting, aws, kind, answer):
    aws.rule = lambda request: answer
    here = setting(aws.environment(kind), retries=0)
    here.publish("basic.nack")
    assert "no credentials" in here.refused("127.0.0.1")
    aws.rule = None
    wait_until(lambda: (here.up.channel.publish("", here.side.queue, PAYLOAD),
                        here.up.channel.wait_for(("basic.ack", "basic.nack")).name == "basic.ack")[1], what="keys in the end")
    here.daemon.assert_memory_below(48 << 10, "VmHWM")


def test_the_order_of_the_places(setting, aws, proxy, tmp_path):
    file = tmp_path / "credentials"
    file.write_text("[default]\naws_access_key_id = FILE\naws_secret_access_key = s\n")
    proxy.rule = lambda request: Answer(404, "NoSuchBucket")
    everything = {**aws.environment("instance"), **aws.environment("container"), **aws.environment("web identity"),
                  "AWS_SHARED_CREDENTIALS_FILE": str(file), "AWS_ACCESS_KEY_ID": "ENVIRONMENT", "AWS_SECRET_ACCESS_KEY": "s"}
    seen = []
    for gone in ((), ("AWS_ACCESS_KEY_ID",), ("AWS_ROLE_ARN",), ("AWS_SHARED_CREDENTIALS_FILE",), ("AWS_CONTAINER_CREDENTIALS_FULL_URI",)):
        for variable in gone:
            del everything[variable]
        aws.requests.clear()
        here = setting(everything)
        here.publish("basic.nack")
        seen.append((key_of(proxy.requests[-1]), aws.requests[0].path if aws.requests else None))
    assert seen == [("ENVIRONMENT", None), ("S3RVER", "/"), ("FILE", None), ("S3RVER", "/v1/credentials"), ("S3RVER", "/latest/api/token")]
