"""Fixtures of all Python tests.

    rabbit      a RabbitMQ node that tests share: one for a run of test/run, else one for the pytest process
    tls_rabbit  a shared node that listens with TLS too, at `tls_address`: `rabbit` itself where it does
    own_rabbit  a node of the test's module alone, which it may freeze, kill, block
    bellhop     a factory: bellhop({...config without broker.url...}) starts a daemon in front of `rabbit`, ended with the test
    broker      a raw AMQP client connected to `rabbit` directly
    name        a function that makes names for queues and exchanges that no other test uses
    gate        a disk whose calls can be held up (support/gate.py), open again at the end
    same        runs a program straight at `rabbit` and through bellhop, and compares what both saw (support/differential.py)
"""

import os
import pathlib
import sys
import uuid

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from support import amqp, rabbitmq  # noqa: E402
from support.bellhop import Bellhop  # noqa: E402
from support.differential import Differential  # noqa: E402
from support.gate import Gate  # noqa: E402


@pytest.fixture(scope="session")
def rabbit():
    address = os.environ.get("BELLHOP_TEST_AMQP")
    if address:
        yield rabbitmq.SharedNode(address, os.environ["BELLHOP_TEST_AMQP_DIR"])
        return
    node = rabbitmq.Node.start(tls=True)
    yield node
    node.stop()


@pytest.fixture(scope="session")
def tls_rabbit(rabbit):
    if rabbit.tls_port:
        yield rabbit
        return
    node = rabbitmq.Node.start(tls=True)
    yield node
    node.stop()


@pytest.fixture(scope="module")
def own_rabbit():
    node = rabbitmq.Node.start()
    yield node
    node.stop()


@pytest.fixture
def gate(tmp_path):
    gate = Gate(tmp_path)
    yield gate
    gate.open()


class _Factory:
    def __init__(self, default_url):
        self.default_url = default_url
        self.running = []

    def __call__(self, config=None, **options):
        """Starts a daemon. A dict without broker.url gets the node's; with users guest/guest left to the client."""
        if not isinstance(config, str):
            config = dict(config or {})
            config["broker"] = {"url": self.default_url(), **config.get("broker", {})}
        daemon = Bellhop(config, **options)
        self.running.append(daemon)
        return daemon


@pytest.fixture
def bellhop(request):
    """Uses `own_rabbit` when the test does, else `rabbit`."""
    def url():
        which = "own_rabbit" if "own_rabbit" in request.fixturenames else "rabbit"
        return request.getfixturevalue(which).url

    factory = _Factory(url)
    yield factory
    failed = getattr(request.node, "failed", False)
    problems = []
    for daemon in reversed(factory.running):
        if failed:
            print(f"---- bellhop's log ({daemon.folder}) ----\n{daemon.log[-8000:]}")
        try:
            daemon.stop()
        except AssertionError as error:
            problems.append(error)
    if problems:
        raise problems[0]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    if call.when == "call" and outcome.get_result().failed:
        item.failed = True


@pytest.fixture(scope="module")
def same(rabbit):
    with Differential(rabbit) as differential:
        yield differential


@pytest.fixture
def broker(request):
    which = "own_rabbit" if "own_rabbit" in request.fixturenames else "rabbit"
    client = amqp.connect(request.getfixturevalue(which).address)
    yield client
    client.abort()


@pytest.fixture
def name(request):
    """name("orders") -> a name used by this test only; queues it names are the test's to delete, or auto-deleted with the node."""
    tag = uuid.uuid4().hex[:8]
    return lambda word="q": f"{word}.{tag}"
