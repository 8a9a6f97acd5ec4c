"""What is not wanted any more is removed: uploads of clients that died, messages that were returned or never sent; and `bellhop sweep`."""

import json

import pytest

from support.bellhop import run_cli
from support.claims import Side, body_of
from support.publishing import publisher
from support.rabbitmq import wait_until
from support.s3_proxy import Answer, Delay

MIB = 1 << 20


def half_sent(daemon, queue, size, share=2):
    """A client that has sent a part of a body's frames."""
    up = publisher(daemon)
    frames = up.channel.publish_frames("", queue, body_of(size))
    for frame in frames[:len(frames) * share // (share + 1)]:
        up.client.send_raw(frame)
    return up


def wait_aborted(s3, proxy, prefix):
    """Waits until the service was asked to abort. s3rver cannot; Ceph must have none left then."""
    status = 204 if s3.lists_uploads else 405
    wait_until(lambda: [r for r in proxy.seen("DELETE", "uploadId=") if r.status == status], what="the upload aborted")
    if s3.lists_uploads:
        assert s3.uploads(prefix) == []


def store(s3, proxy, prefix):
    return {"stores": {"archive": s3.store(endpoint=proxy.endpoint, prefix=prefix, probe=False)}}


@pytest.mark.parametrize("size", [300_000, 20 * MIB, 90 * MIB])
def test_a_client_that_dies_in_the_middle_of_a_body_leaves_no_object(bellhop, broker, name, s3, proxy, size):
    prefix = name("dead") + "/"
    daemon = bellhop(store(s3, proxy, prefix))
    side = Side(broker, name())
    up = half_sent(daemon, side.queue, size)
    if size > 64 * MIB:
        wait_until(lambda: [r for r in proxy.seen("PUT", "partNumber=") if r.status == 200], what="a part that is stored")
    up.client.abort()
    if size > 64 * MIB:
        wait_aborted(s3, proxy, prefix)
    daemon.wait_log("session (closed|ended).* session=1 ")
    assert s3.names(prefix) == [] and side.count() == 0


def test_a_multipart_upload_that_is_killed_before_it_has_an_id_is_aborted_all_the_same(bellhop, broker, name, s3, proxy):
    prefix = name("early") + "/"
    proxy.rule = lambda request: Delay(0.7) if "uploads=" in request.target else None
    daemon = bellhop(store(s3, proxy, prefix))
    side = Side(broker, name())
    up = half_sent(daemon, side.queue, 90 * MIB, share=1)
    wait_until(lambda: proxy.seen("POST", "uploads="), what="an upload begun")
    up.client.abort()
    wait_aborted(s3, proxy, prefix)


def test_a_returned_message_takes_its_object_along(bellhop, broker, name, s3, proxy):
    prefix = name("returned") + "/"
    daemon = bellhop(store(s3, proxy, prefix))
    up = publisher(daemon)
    for size in (100_000, 70 * MIB):
        body = body_of(size)
        up.channel.publish("", name("nowhere"), body, mandatory=True)
        assert up.channel.wait_for("basic.return", timeout=60).body == body
        up.channel.wait_for("basic.ack")
    wait_until(lambda: s3.names(prefix) == [], what="no object")


def test_a_transaction_that_is_rolled_back_takes_its_objects_along(bellhop, broker, name, s3, proxy):
    prefix = name("rolled") + "/"
    daemon = bellhop(store(s3, proxy, prefix))
    side = Side(broker, name())
    up = publisher(daemon, confirm=False)
    up.channel.call("tx.select")
    for n in range(5):
        up.channel.publish("", side.queue, body_of(100_000, n))
    up.channel.call("tx.rollback")
    wait_until(lambda: s3.names(prefix) == [], what="no object")
    assert side.count() == 0


def test_a_part_that_fails_for_good_aborts_the_upload(bellhop, broker, name, s3, proxy):
    prefix = name("part") + "/"
    proxy.rule = lambda request: Answer(403, "AccessDenied") if "partNumber=3&" in request.target else None
    daemon = bellhop(store(s3, proxy, prefix))
    side = Side(broker, name())
    up = publisher(daemon)
    up.channel.publish("", side.queue, body_of(90 * MIB))
    up.channel.expect("basic.nack", delivery_tag=1, timeout=60)
    assert "part 3 of 6" in daemon.wait_log(r"publish refused .*").group(0)
    wait_aborted(s3, proxy, prefix)
    assert s3.names(prefix) == []


def sweep(tmp_path, stores, *words):
    config = tmp_path / "sweep.yaml"
    config.write_text(json.dumps({"broker": {"url": "amqp://localhost"}, "stores": stores, "claim_check": {"store": "archive"}}))
    return run_cli("sweep", "archive", "--config", config, *words)


def test_sweep_aborts_unfinished_uploads_of_its_prefix_alone(ceph, tmp_path, name):
    prefix = name("sweep") + "/"
    stores = {"archive": ceph.store(prefix=prefix)}
    mine = [ceph.begin_upload(f"{prefix}1111111{n}-1111-4111-8111-111111111111") for n in range(3)]
    others = [ceph.begin_upload(f"{prefix}somebody/else"), ceph.begin_upload("x" + prefix + "1111")]

    done = sweep(tmp_path, stores)
    assert done.returncode == 0 and "0 unfinished uploads aborted, 3 younger ones left" in done.stdout, done
    done = sweep(tmp_path, stores, "--older-than", "0", "--dry-run")
    assert done.returncode == 0 and done.stdout.count(": would be aborted") == 3, done
    assert set(ceph.uploads(prefix)) == {*mine, others[0]}
    done = sweep(tmp_path, stores, "--older-than", "0")
    assert done.returncode == 0 and "3 unfinished uploads aborted, 0 younger ones left" in done.stdout, done
    assert ceph.uploads(prefix) == [others[0]] and ceph.uploads("x" + prefix) == [others[1]]
    rule = json.loads(done.stdout.splitlines()[-1])
    assert rule["Rules"][0]["Filter"] == {"Prefix": prefix}
    assert rule["Rules"][0]["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 1}


def test_sweep_says_what_is_wrong(plain_s3rver, tmp_path):
    stores = {"archive": plain_s3rver.store(secret_key="wrong"), "files": {"type": "filesystem", "path": str(tmp_path)}}
    done = sweep(tmp_path, stores)
    assert done.returncode == 1 and "SignatureDoesNotMatch" in done.stderr and "wrong" not in done.stderr
    config = tmp_path / "sweep.yaml"
    assert "no store 'nowhere'" in run_cli("sweep", "nowhere", "--config", config).stderr
    assert run_cli("sweep", "archive", "--config", config, "--older-than", "soon").returncode == 2
