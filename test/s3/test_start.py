"""A start before the bucket answers, or takes bellhop's key: one line says so, bellhop serves, and another says when it is over."""

import json
import re
import subprocess

import pytest

from support import amqp
from support.bellhop import run_cli
from support.claims import body_of
from support.publishing import publisher
from support.rabbitmq import free_port, wait_until
from support.service_manager import Manager


@pytest.fixture
def manager(tmp_path):
    with Manager(tmp_path) as manager:
        yield manager


def test_a_bucket_that_does_not_answer_yet(bellhop, manager, plain_s3rver, name):
    port = free_port()
    store = plain_s3rver.store(endpoint=f"http://127.0.0.1:{port}", prefix=name("start") + "/", retries=0)
    daemon = bellhop({"stores": {"archive": store}, "claim_check": {"store": "archive", "threshold": "1KiB"}}, env=manager.env)
    line = daemon.wait_log("store is unavailable: until it is back bellhop nacks publishes that need it, and holds deliveries.*").group(0)
    assert f"store=archive key=stores.archive reason=\"bucket '{plain_s3rver.bucket}' at http://127.0.0.1:{port}" in line
    manager.wait_for_status("; waits for store 'archive'")
    up = publisher(daemon)
    queue = up.channel.declare(name(), exclusive=True)
    up.channel.publish("", queue, b"small")
    up.channel.confirms(1)
    forward = subprocess.Popen(["socat", f"TCP-LISTEN:{port},bind=127.0.0.1,fork,reuseaddr", f"TCP:{plain_s3rver.address}"])
    try:
        daemon.wait_log("store is available again store=archive")
        wait_until(lambda: "waits" not in manager.said("STATUS")[-1]["STATUS"])
        up.channel.publish("", queue, body_of(5000))
        up.channel.confirms(2)
        up.client.close()
        daemon.sigterm()
        assert daemon.wait() == 0
    finally:
        forward.terminate()
        forward.wait()


def test_a_bucket_that_refuses_the_key(bellhop, manager, plain_s3rver):
    daemon = bellhop({"stores": {"archive": {**plain_s3rver.store(), "secret_key": "wrong"}}}, env=manager.env)
    line = daemon.wait_log("store is unavailable.*").group(0)
    assert "key=stores.archive" in line and "SignatureDoesNotMatch" in line and "wrong" not in line
    manager.wait_for_status("waits for store 'archive'")
    amqp.connect(daemon.socket).close()


def test_a_store_that_a_reload_takes_away_is_waited_for_no_more(bellhop, manager, plain_s3rver):
    nobody = plain_s3rver.store(endpoint=f"http://127.0.0.1:{free_port()}")
    daemon = bellhop({"stores": {"archive": nobody, "claims": {"type": "memory"}}, "claim_check": {"store": "claims"}}, env=manager.env)
    manager.wait_for_status("waits for store 'archive'")
    config = json.loads(daemon.config_path.read_text())
    del config["stores"]["archive"]
    daemon.config_path.write_text(json.dumps(config))
    assert run_cli("reload", "--socket", daemon.admin_socket).returncode == 0
    wait_until(lambda: "waits" not in manager.said("STATUS")[-1]["STATUS"])


def test_a_folder_of_scratch_files_that_cannot_be_written(bellhop, plain_s3rver, tmp_path):
    wrong = (f"store 'archive': cannot create a scratch file in {tmp_path}/nowhere (TMPDIR): No such file or directory: large payloads will be "
             "refused; make the folder writable for bellhop's user, or let TMPDIR name another")
    env = {"TMPDIR": f"{tmp_path}/nowhere"}
    daemon = bellhop({"stores": {"archive": plain_s3rver.store()}}, env=env)
    daemon.wait_log(re.escape(f" warn {wrong}"))
    assert wrong in run_cli("check", daemon.config_path, env=env).stdout
    assert "scratch" not in run_cli("check", daemon.config_path, env={"TMPDIR": str(tmp_path)}).stdout
