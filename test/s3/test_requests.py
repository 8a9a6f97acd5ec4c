"""What bellhop asks of an S3 service: addresses, signatures, headers, connections; each request as it came."""

import base64
import hashlib

import pytest

from support.claims import Side, body_of
from support.publishing import publisher
from support.rabbitmq import wait_until
from support.s3 import REGION, is_signed
from support.s3_proxy import Answer, S3Proxy

SECRET = "S3RVER"
NO = Answer(403, "AccessDenied")
TOKEN = "FwoGZXIvYXdzEJr//////////token=="


def first(proxy, method="PUT"):
    return wait_until(lambda: next(iter(proxy.seen(method)), None), what=f"a {method}")


def test_virtual_host_style_puts_the_bucket_into_the_host(bellhop, plain_s3rver, proxy):
    proxy.rule = lambda request: NO
    store = plain_s3rver.store(endpoint=f"http://s3.localhost:{proxy.port}", path_style=False, prefix="p/")
    bellhop({"stores": {"archive": store}})
    request = first(proxy)
    assert request.headers["host"] == f"claims.s3.localhost:{proxy.port}"
    assert request.target.startswith("/p/.bellhop-probe-") and is_signed(request, SECRET)


def test_path_style_puts_the_bucket_into_the_path(bellhop, plain_s3rver, proxy):
    proxy.rule = lambda request: NO
    bellhop({"stores": {"archive": plain_s3rver.store(endpoint=proxy.endpoint, prefix="p/")}})
    request = first(proxy)
    assert request.headers["host"] == f"127.0.0.1:{proxy.port}"
    assert request.target.startswith("/claims/p/.bellhop-probe-") and is_signed(request, SECRET)
    assert f"/{REGION}/s3/aws4_request" in request.headers["authorization"]


def test_a_session_token_is_sent_and_signed(bellhop, plain_s3rver, proxy):
    proxy.rule = lambda request: NO
    bellhop({"stores": {"archive": plain_s3rver.store(endpoint=proxy.endpoint, session_token=TOKEN)}})
    request = first(proxy)
    assert request.headers["x-amz-security-token"] == TOKEN and is_signed(request, SECRET)


@pytest.mark.parametrize("sse, sent", [
    ("none", {}),
    ("AES256", {"x-amz-server-side-encryption": "AES256"}),
    ("aws:kms", {"x-amz-server-side-encryption": "aws:kms"}),
    ("aws:kms:arn:aws:kms:eu-west-1:1:key/ab-12", {"x-amz-server-side-encryption": "aws:kms",
                                                   "x-amz-server-side-encryption-aws-kms-key-id": "arn:aws:kms:eu-west-1:1:key/ab-12"}),
])
def test_encryption_is_asked_for_where_an_object_is_made(bellhop, broker, name, plain_s3rver, proxy, sse, sent):
    daemon = bellhop({"stores": {"archive": plain_s3rver.store(endpoint=proxy.endpoint, sse=sse, prefix=name("sse") + "/")}})
    daemon.wait_log("can be written, read and removed from")
    side = Side(broker, name())
    up = publisher(daemon)
    for number, size in enumerate((100_000, (64 << 20) + 1), 1):
        up.channel.publish("", side.queue, body_of(size))
        up.channel.expect("basic.ack", delivery_tag=number, timeout=60)
    for request in proxy.requests:
        assert is_signed(request, SECRET), request
        makes = request.method == "PUT" and "partNumber" not in request.target or "uploads=" in request.target
        asked = {k: v for k, v in request.headers.items() if k.startswith("x-amz-server-side")}
        assert asked == (sent if makes else {}), request


def test_over_http_every_payload_is_part_of_its_signature(bellhop, broker, name, plain_s3rver, proxy):
    daemon = bellhop({"stores": {"archive": plain_s3rver.store(endpoint=proxy.endpoint)}})
    daemon.wait_log("can be written, read and removed from")
    side = Side(broker, name())
    up = publisher(daemon)
    for number, size in enumerate((100_000, 3 << 20, 70 << 20), 1):
        up.channel.publish("", side.queue, body_of(size))
        up.channel.expect("basic.ack", delivery_tag=number, timeout=60)
    assert len(proxy.seen("PUT", "partNumber=")) == 5
    for request in proxy.requests:
        assert len(request.headers["x-amz-content-sha256"]) == 64 and is_signed(request, SECRET)
        assert "accept-encoding" not in request.headers
    # A question first is worth its round trip only before a large body.
    asked = [r.body_bytes for r in proxy.seen("PUT") if "Expect" in r.raw_names]
    assert asked and min(asked) > 1 << 20


def test_every_object_and_every_part_carries_the_md5_of_its_bytes(bellhop, broker, name, plain_s3rver):
    # Buckets with Object Lock refuse a PUT without a checksum. The bytes are looked at as they come: a service that believes a wrong one,
    # or none, shows nothing.
    seen = {}
    with S3Proxy(plain_s3rver.address) as proxy:
        proxy.on_body = lambda request, body: seen.update({id(request): base64.b64encode(hashlib.md5(body).digest()).decode()})
        daemon = bellhop({"stores": {"archive": plain_s3rver.store(endpoint=proxy.endpoint)}})
        daemon.wait_log("can be written, read and removed from")
        side = Side(broker, name())
        up = publisher(daemon)
        for number, size in enumerate((70_000, 3 << 20, (64 << 20) + 1), 1):
            up.channel.publish("", side.queue, body_of(size, number))
            up.channel.expect("basic.ack", delivery_tag=number, timeout=60)
        puts = proxy.seen("PUT")
        assert len([r for r in puts if "partNumber=" in r.target]) == 5 and len(puts) == 5 + 2 + 1  # the look at start too
        for request in puts:
            assert request.headers["content-md5"] == seen[id(request)] and is_signed(request, SECRET)


def test_credentials_come_from_the_environment_and_the_shared_file(bellhop, plain_s3rver, tmp_path):
    bare = {key: value for key, value in plain_s3rver.store(prefix="c/").items() if key not in ("access_key", "secret_key", "region")}
    daemon = bellhop({"stores": {"archive": bare}}, env={"AWS_ACCESS_KEY_ID": "S3RVER", "AWS_SECRET_ACCESS_KEY": SECRET})
    daemon.wait_log("can be written, read and removed from")
    credentials = tmp_path / "credentials"
    credentials.write_text("[other]\naws_access_key_id = S3RVER\naws_secret_access_key = S3RVER\n")
    daemon = bellhop({"stores": {"archive": bare}}, env={"AWS_SHARED_CREDENTIALS_FILE": str(credentials), "AWS_PROFILE": "other"})
    daemon.wait_log("can be written, read and removed from")


def test_sessions_share_the_connections_of_a_store(bellhop, broker, name, plain_s3rver, proxy):
    daemon = bellhop({"stores": {"archive": plain_s3rver.store(endpoint=proxy.endpoint)}})
    daemon.wait_log("can be written, read and removed from")
    side = Side(broker, name())
    for _ in range(10):
        up = publisher(daemon)
        up.channel.publish("", side.queue, body_of(100_000))
        up.channel.expect("basic.ack", delivery_tag=1)
        up.client.abort()
    assert proxy.connections == 1
