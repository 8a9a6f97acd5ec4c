"""Payloads of every size to an S3 store and back, over http and https."""

from support.claims import Consumer, Side, body_of
from support.publishing import key_of, publisher

KIB, MIB = 1024, 1 << 20
# Around what decides the way: in memory or a scratch file (1 MiB), one PUT or parts of 16 MiB (64 MiB).
SIZES = [0, 1, 100 * KIB, MIB, MIB + 1, 20 * MIB, 64 * MIB, 64 * MIB + 1, 200 * MIB]


def there_and_back(daemon, server, broker, queue, sizes, prefix):
    side = Side(broker, queue)
    up = publisher(daemon)
    consumer = Consumer(daemon, side.queue)
    for number, size in enumerate(sizes, 1):
        body = body_of(size, number)
        up.channel.publish("", side.queue, body)
        up.channel.expect("basic.ack", timeout=120, delivery_tag=number)
        got = consumer.deliver(timeout=120)
        assert len(got.body) == size and got.body == body, f"{size} bytes did not come back as they went"
        consumer.channel.send("basic.ack", delivery_tag=got.delivery_tag)
    names = server.names(prefix)
    assert len(names) == len(sizes)
    up.client.abort()
    for each in names:
        server.delete(each)


def test_every_size_goes_there_and_back(bellhop, broker, name, s3):
    prefix = name("plain").replace(".", "/") + "/"
    daemon = bellhop({"stores": {"archive": s3.store(prefix=prefix)}, "claim_check": {"threshold": 0}})
    daemon.wait_log("can be written, read and removed from")
    there_and_back(daemon, s3, broker, name(), SIZES, prefix)
    daemon.assert_memory_below(64 * KIB, "VmHWM")


def test_over_https_with_a_private_ca(bellhop, broker, name, tls_s3rver):
    daemon = bellhop({"stores": {"archive": tls_s3rver.store(prefix="tls/")}, "claim_check": {"threshold": 0}},
                     env={"AWS_CA_BUNDLE": str(tls_s3rver.ca)})
    daemon.wait_log("can be written, read and removed from")
    there_and_back(daemon, tls_s3rver, broker, name(), [0, 1, MIB + 1, 20 * MIB, 64 * MIB + 1], "tls/")


def test_a_certificate_that_nobody_vouches_for_is_refused_and_named(bellhop, tls_s3rver):
    daemon = bellhop({"stores": {"archive": tls_s3rver.store()}})
    assert "certificate" in daemon.wait_log(r"store is unavailable: .* store=archive key=stores.archive reason=.*").group(0)


def test_virtual_host_addressing(bellhop, broker, name, ceph):
    store = ceph.store(prefix="vhost/", path_style=False, endpoint=f"http://s3.localhost:{ceph.port}")
    daemon = bellhop({"stores": {"archive": store}})
    daemon.wait_log("can be written, read and removed from")
    there_and_back(daemon, ceph, broker, name(), [100 * KIB, 5 * MIB], "vhost/")


def test_an_object_is_the_payload_under_prefix_and_key(bellhop, broker, name, s3):
    prefix = name("object") + "/"
    daemon = bellhop({"stores": {"archive": s3.store(prefix=prefix, probe=False)}})
    side = Side(broker, name())
    up = publisher(daemon)
    body = body_of(100_000)
    up.channel.publish("", side.queue, body)
    up.channel.expect("basic.ack", delivery_tag=1)
    message = side.channel.get_wait(side.queue)
    key = key_of(message)
    assert s3.names(prefix) == [prefix + key] and s3.get(prefix + key) == body
    assert message.headers["bellhop-claim-store"] == "archive" and message.headers["bellhop-claim-size"] == 100_000


def test_what_one_bellhop_offloads_another_restores(bellhop, broker, name, s3):
    prefix = name("pair") + "/"
    here, there = (bellhop({"stores": {"archive": s3.store(prefix=prefix, probe=False)}}) for _ in range(2))
    side = Side(broker, name())
    up = publisher(here)
    bodies = [body_of(size, size) for size in (100 * KIB, 3 * MIB, 300 * KIB, 70 * MIB, 64 * KIB)]
    for body in bodies:
        up.channel.publish("", side.queue, body)
    up.channel.confirms(len(bodies), timeout=120)
    assert Consumer(there, side.queue).bodies(len(bodies)) == bodies
