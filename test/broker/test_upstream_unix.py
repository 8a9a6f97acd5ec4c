"""amqp+unix:// towards a broker that listens on a Unix socket: RabbitMQ, with a small program of the system in front that does."""

import os
import subprocess

import pytest

from support import amqp
from support.bellhop import run_cli
from support.rabbitmq import wait_until

MIB = 1024 * 1024


@pytest.fixture
def broker_socket(rabbit, tmp_path):
    """The path of a Unix socket, with a blank in it, that leads to the node."""
    path = tmp_path / "the broker"
    front = subprocess.Popen(["socat", f"UNIX-LISTEN:{path},fork,backlog=64", f"TCP:{rabbit.address},nodelay"], stdin=subprocess.DEVNULL)
    wait_until(path.exists, what="the broker's socket")
    yield str(path)
    front.terminate()
    front.wait()


def url(path, credentials="", query=""):
    return f"amqp+unix://{credentials}{path.replace(' ', '%20')}{query}"


def test_bodies_of_all_sizes_travel(bellhop, broker_socket, name):
    daemon = bellhop({"broker": {"url": url(broker_socket)}, "claim_check": {"threshold": "1MiB"}})
    client = amqp.connect(daemon.socket)
    channel = client.channel()
    queue = channel.declare(name(), exclusive=True)
    channel.call("confirm.select")
    bodies = [os.urandom(size) for size in (0, 1, 70_000, MIB - 1, 5 * MIB)]
    for body in bodies:
        channel.publish("", queue, body)
    channel.confirms(len(bodies))
    channel.call("basic.consume", queue=queue, consumer_tag="c", no_ack=True)
    assert [channel.deliver().body for _ in bodies] == bodies
    client.close()


def test_credentials_and_virtual_host_come_from_the_url(bellhop, broker_socket, rabbit, name):
    vhost = name("v/host")
    rabbit.add_vhost(vhost)
    rabbit.set_permissions("guest", vhost=vhost)
    try:
        pipeline = name("line")
        daemon = bellhop({"broker": {"url": url(broker_socket, "guest:guest@", "?vhost=" + vhost.replace("/", "%2F"))},
                          "pipelines": {pipeline: {"steps": ["one"], "declare": True}}})
        client = amqp.connect(daemon.socket, username="whoever", password="x")
        queue = client.channel().declare(name(), exclusive=True)
        assert queue in rabbit.queues(vhost)
        daemon.wait_log("pipelines declared broker=.?amqp\\+unix:///")
        assert f"{pipeline}.one" in rabbit.queues(vhost)
        client.close()
    finally:
        rabbit.delete_vhost(vhost)


def test_a_socket_that_is_not_there_or_that_nobody_listens_on_is_told_and_the_next_broker_taken(bellhop, rabbit, tmp_path, broker_socket):
    missing = str(tmp_path / "missing")
    with pytest.raises(amqp.AmqpError):
        alone = bellhop({"broker": {"url": url(missing), "connect_timeout": "300ms"}})
        amqp.connect(alone.socket)
    alone.wait_log(f"no broker could be reached within .*amqp\\+unix://{missing}: {missing}: No such file or directory")
    daemon = bellhop({"broker": {"url": [url(missing), url(broker_socket)]}})
    amqp.connect(daemon.socket).close()


def test_a_broker_that_comes_back_at_its_path_is_found(bellhop, rabbit, tmp_path):
    path = str(tmp_path / "later")
    daemon = bellhop({"broker": {"url": url(path)}})
    client = amqp.Client(daemon.socket)
    client.send_header()
    front = subprocess.Popen(["socat", f"UNIX-LISTEN:{path},fork", f"TCP:{rabbit.address}"], stdin=subprocess.DEVNULL)
    try:
        client.start(timeout=10)
        client.abort()
    finally:
        front.terminate()
        front.wait()


def test_check_shows_the_path_and_no_password(tmp_path):
    file = tmp_path / "bellhop.yaml"
    file.write_text("broker:\n  url: amqp+unix://app:hunter2@/run/a%20broker.sock?vhost=prod\n")
    done = run_cli("check", file)
    assert done.returncode == 0
    assert "amqp+unix:///run/a%20broker.sock?vhost=prod as user 'app', virtual host 'prod' for every client" in done.stdout
    assert "hunter2" not in done.stdout
