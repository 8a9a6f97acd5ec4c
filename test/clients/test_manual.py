"""The programs in the manual do what the manual says: README.md's app and worker. They are cut out of the document and run as they
are, but for names and addresses."""

import subprocess

import pytest
from programs import NODE_MODULES

from support.documents import ROOT, blocks
from support.proxy import Proxy
from support.rabbitmq import wait_until

SCAN_BYTES = 20 << 20
SOCKET = "/run/bellhop/bellhop.sock"


@pytest.fixture
def pipeline(broker, name):
    """The name of a pipeline that README's configuration declares; its queues are deleted with the test."""
    pipeline = name("fulfilment")
    yield pipeline
    channel = broker.channel()
    for step in ("validate", "reserve", "dispatch"):
        for queue in ("", ".dlq", ".parked"):
            channel.call("queue.delete", queue=f"{pipeline}.{step}{queue}")
    channel.call("exchange.delete", exchange=pipeline)


@pytest.fixture
def way(rabbit):
    """From bellhop to the broker."""
    with Proxy(rabbit.address) as way:
        yield way


@pytest.fixture
def daemon(bellhop, way, pipeline, tmp_path):
    """bellhop with README's configuration, its addresses and the pipeline's name replaced."""
    (text,) = blocks(ROOT / "README.md", "yaml")
    (tmp_path / "claims").mkdir()
    for old, new in (("amqp://app:secret@rabbitmq.internal:5672", f"amqp://guest:guest@{way.address}"),
                     ("/mnt/claims", str(tmp_path / "claims")), ("fulfilment", pipeline)):
        assert old in text
        text = text.replace(old, new)
    daemon = bellhop(f"listen: [{{ unix: '{{dir}}/bellhop.sock' }}]\nlimits: {{ drain_timeout: 2s }}\n{text}")
    wait_until(lambda: "pipelines declared" in daemon.log, what="the pipeline's declaration")
    return daemon


@pytest.fixture
def program(daemon, pipeline, tmp_path):
    """program(0) is the command of README's app, program(1) that of its worker."""
    (tmp_path / "node_modules").symlink_to(NODE_MODULES)

    def make(number):
        file = tmp_path / f"{number}.mjs"
        text = blocks(ROOT / "README.md", "js")[number]
        assert SOCKET in text
        file.write_text(text.replace(SOCKET, daemon.socket).replace("fulfilment", pipeline))
        return ["node", file]

    return make


def published(program):
    subprocess.run(program(0), check=True, timeout=120)


class Worker:
    def __init__(self, command):
        self.process = subprocess.Popen(command)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def payloads(tmp_path):
    return [path for path in (tmp_path / "claims").iterdir() if not path.name.startswith(".")]


def test_the_worker_sends_its_result_to_the_next_step_and_passes_all_properties_on(program, rabbit, broker, pipeline, tmp_path):
    published(program)
    assert [path.stat().st_size for path in payloads(tmp_path)] == [SCAN_BYTES]
    with Worker(program(1)):
        wait_until(lambda: rabbit.queues()[f"{pipeline}.reserve"] == 1, what="the hop")
        wait_until(lambda: rabbit.queues()[f"{pipeline}.validate"] == 0, what="the input's acknowledgement")
    m = broker.channel().get(f"{pipeline}.reserve", no_ack=True)
    assert m.body[:3] == b"\xac\x01\x01"
    assert m.properties["content_type"] == "image/tiff"
    assert m.properties["headers"]["x-acemq-route-position"] == 1
    assert "bellhop-ack" not in m.properties["headers"]
    # Each publish has stored a payload of its own; only retention removes them.
    assert len(payloads(tmp_path)) == 2


def test_the_worker_puts_its_input_back_when_the_hop_is_nacked(program, daemon, rabbit, broker, pipeline):
    published(program)
    broker.channel().call("queue.delete", queue=f"{pipeline}.reserve")
    with Worker(program(1)):
        daemon.wait_log("hop failed")
    # RabbitMQ 4 moves it to the dead letters when it was put back often enough.
    wait_until(lambda: sum(rabbit.queues()[f"{pipeline}.validate{end}"] for end in ("", ".dlq")) == 1, what="the input")


def test_the_worker_ends_well_when_bellhop_ends_before_its_hop_is_confirmed(program, daemon, way, rabbit, broker, pipeline):
    """Its channel is closed by then, so it cannot put its input back, and need not."""
    queue = f"{pipeline}.validate"
    with Worker(program(1)) as worker:
        wait_until(lambda: [queue, "1"] in rabbit.rows("list_queues", "name", "consumers"), what="the worker's consumer")
        way.stall("up")
        broker.channel().publish(pipeline, "validate", b"scan")
        wait_until(lambda: way.is_holding("up"), what="the hop on its way")
        daemon.sigterm()
        assert worker.process.wait(60) == 0
    assert daemon.wait() == 0
    assert "unconfirmed=1" in daemon.log
    way.cut()
    wait_until(lambda: rabbit.queues()[queue] == 1, what="the input")
