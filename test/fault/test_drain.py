"""SIGTERM: what still has something unsettled is let finish, everything else ends at once, and nothing confirmed or delivered is lost."""

import os
import re
import signal
import subprocess
import time

import pytest

from support import amqp
from support.bellhop import binary, run_cli
from support.proxy import Proxy
from support.rabbitmq import wait_until


def drain(daemon):
    daemon.sigterm()
    daemon.wait_log("draining")


def ends(client):
    client.expect_close(320)
    client.expect_closed()


def test_an_idle_session_is_closed_and_the_daemon_ends_well(bellhop):
    daemon = bellhop()
    clients = [amqp.connect(daemon.socket) for _ in range(3)]
    clients[0].channel()
    daemon.sigterm()
    for client in clients:
        ends(client)
    assert daemon.wait() == 0
    assert "stopped" in daemon.log


def test_the_listener_closes_at_once_also_while_a_session_goes_on(bellhop, name):
    daemon = bellhop({"listen": [{"unix": "{socket}"}, {"tcp": "127.0.0.1:0"}]})
    tcp = daemon.wait_log(r"listening address=tcp:(\S+)").group(1)
    client = amqp.connect(daemon.socket)
    channel = client.channel()
    queue = channel.declare(name(), exclusive=True)
    channel.publish("", queue, b"work")
    got = channel.get_wait(queue, no_ack=False)
    drain(daemon)
    for address in (daemon.socket, tcp):
        with pytest.raises(OSError):
            amqp.open_socket(address)
    assert not os.path.exists(daemon.socket)
    client.expect_nothing(0.3)
    channel.ack(got.delivery_tag)
    ends(client)
    assert daemon.wait() == 0


@pytest.mark.parametrize("settle", ["basic.ack", "basic.nack", "basic.reject"])
def test_a_session_with_an_unacknowledged_delivery_stays_until_it_is_settled(session, broker, settle):
    daemon, client, channel, queue = session()
    for body in (b"one", b"two"):
        channel.publish("", queue, body)
    channel.call("basic.consume", queue=queue)
    tags = [channel.deliver().delivery_tag for _ in range(2)]
    drain(daemon)
    channel.send(settle, delivery_tag=tags[0])
    client.expect_nothing(0.3)
    channel.send(settle, delivery_tag=tags[1])
    ends(client)
    assert daemon.wait() == 0
    assert broker.channel().call("queue.delete", queue=queue).message_count == 0


def test_no_new_delivery_is_begun_and_none_is_lost_by_acknowledging_all(session, broker):
    """What arrives while draining is not handed to the client: its `multiple` must not acknowledge it."""
    daemon, client, channel, queue = session()
    channel.call("basic.consume", queue=queue)
    channel.publish("", queue, b"mine")
    channel.deliver()

    drain(daemon)
    direct = broker.channel()
    direct.call("confirm.select")
    for number in range(3):
        direct.publish("", queue, b"new %d" % number)
    direct.confirms(3)
    client.expect_nothing(0.3)
    channel.ack(0, multiple=True)
    ends(client)
    assert daemon.wait() == 0
    assert [direct.get_wait(queue).body for _ in range(3)] == [b"new 0", b"new 1", b"new 2"]
    direct.call("queue.delete", queue=queue)


def test_a_consumer_without_acknowledgements_still_gets_what_the_broker_has_forgotten(session, broker, name):
    daemon, client, channel, queue = session()
    channel.call("basic.consume", queue=queue, no_ack=True)
    busy = client.channel()  # keeps the session open
    held = name("held")
    busy.declare(held, exclusive=True)
    busy.publish("", held, b"held")
    tag = busy.get_wait(held, no_ack=False).delivery_tag
    drain(daemon)
    direct = broker.channel()
    direct.publish("", queue, b"small")
    assert channel.deliver().body == b"small"
    busy.ack(tag)
    ends(client)
    direct.call("queue.delete", queue=queue)
    assert daemon.wait() == 0


def test_a_session_with_an_open_transaction_stays_until_its_commit(session, broker):
    daemon, client, channel, queue = session()
    channel.call("tx.select")
    channel.publish("", queue, b"in the transaction")
    drain(daemon)
    client.expect_nothing(0.3)
    channel.call("tx.commit")
    ends(client)
    assert daemon.wait() == 0
    direct = broker.channel()
    assert direct.get_wait(queue).body == b"in the transaction"
    direct.call("queue.delete", queue=queue)


@pytest.mark.parametrize("size", [10, 300000])
def test_a_publish_that_is_half_sent_is_let_finish_and_confirmed(session, broker, name, size):
    daemon, client, channel, queue = session()
    channel.call("confirm.select")
    *most, last = channel.publish_frames("", queue, b"x" * size, split=[min(size // 2, 60000)])
    client.send_raw(b"".join(most))
    busy = client.channel()
    busy.declare(name("probe"), exclusive=True)  # its answer shows that bellhop has read what came before
    drain(daemon)
    client.expect_nothing(0.3)
    client.send_raw(last)
    channel.wait_for("basic.ack", delivery_tag=1)
    ends(client)
    assert daemon.wait() == 0
    assert broker.channel().call("queue.delete", queue=queue).message_count == 1


@pytest.mark.parametrize("size", [10, 100000])
def test_a_session_with_an_unconfirmed_publish_stays_until_the_brokers_answer(bellhop, rabbit, broker, name, size):
    with Proxy(rabbit.upstream) as proxy:
        daemon = bellhop({"broker": {"url": proxy.url}})
        queue = name()
        client = amqp.connect(daemon.socket)
        channel = client.channel()
        channel.declare(queue)
        channel.call("confirm.select")
        proxy.stall("down")
        channel.publish("", queue, b"x" * size)
        drain(daemon)
        client.expect_nothing(0.3)
        proxy.resume()
        assert channel.wait_for("basic.ack").delivery_tag == 1
        ends(client)
        assert daemon.wait() == 0
    assert broker.channel().call("queue.delete", queue=queue).message_count == 1


def test_drain_timeout_ends_what_does_not_end_by_itself(session, broker):
    daemon, client, channel, queue = session({"limits": {"drain_timeout": "2s"}})
    channel.publish("", queue, b"kept")
    channel.get_wait(queue, no_ack=False)
    daemon.sigterm()
    ends(client)
    assert daemon.wait() == 0
    assert broker.channel().call("queue.delete", queue=queue).message_count == 1


def test_sessions_that_are_still_opening_do_not_hold_up_a_drain(bellhop):
    daemon = bellhop({"limits": {"drain_timeout": "60s"}})
    silent = amqp.Client(daemon.socket)
    opening = amqp.Client(daemon.socket)
    opening.send_header()
    opening.start()
    daemon.sigterm()
    silent.expect_closed()
    opening.expect_closed()
    assert daemon.wait(10) == 0


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_at_once(bellhop, name, second):
    daemon = bellhop(expect_exit=1)
    client = amqp.connect(daemon.socket)
    channel = client.channel()
    queue = channel.declare(name(), exclusive=True)
    channel.publish("", queue, b"work")
    channel.get_wait(queue, no_ack=False)
    drain(daemon)
    daemon.process.send_signal(second)
    assert daemon.wait(10) == 1
    client.expect_closed()


def test_a_wrong_configuration_ends_with_every_error_and_code_2(tmp_path):
    path = tmp_path / "wrong.yaml"
    path.write_text("broker:\n  url: http://x\n  heartbeat: 1500ms\nlimits:\n  sessions: many\nnonsense: 1\n")
    done = run_cli("run", "--config", path)
    assert done.returncode == 2
    lines = done.stderr.strip().splitlines()
    for line, word in ((2, "url"), (3, "heartbeat"), (5, "sessions"), (6, "nonsense")):
        assert any(each.startswith(f"{path}:{line}:") and word in each for each in lines), (line, word, done.stderr)
    assert all("allowed" in each for each in lines)
    assert run_cli("run", "--config", tmp_path / "missing.yaml").returncode == 1  # it may come


def test_the_close_comes_a_rest_after_the_last_thing_is_settled(bellhop, name):
    """A client library that reads confirm and close at once takes a confirmed publish for failed (pika does), and its publisher
    repeats it."""
    daemon = bellhop()
    client = amqp.connect(daemon.socket)
    channel = client.channel()
    queue = channel.declare(name(), exclusive=True)
    channel.publish("", queue, b"keeps the session")
    tag = channel.get_wait(queue, no_ack=False).delivery_tag
    drain(daemon)
    began = time.monotonic()
    channel.ack(tag)
    ends(client)
    assert time.monotonic() - began >= 0.09
    assert daemon.wait() == 0


def test_what_a_client_publishes_in_the_rest_before_the_close_was_not_accepted(bellhop, broker, name):
    """A publisher that goes on at once after each confirm: what its last publish is told is true."""
    daemon = bellhop()
    queue = name()
    client = amqp.connect(daemon.socket)
    channel = client.channel()
    channel.declare(queue)
    channel.call("confirm.select")
    daemon.sigterm()
    confirmed = 0
    try:
        while True:
            channel.publish("", queue, b"%d" % (confirmed + 1))
            channel.wait_for("basic.ack", delivery_tag=confirmed + 1)
            confirmed += 1
    except amqp.AmqpError:
        pass
    assert daemon.wait() == 0
    assert broker.channel().call("queue.delete", queue=queue).message_count == confirmed


@pytest.fixture
def waiting_for_its_store(session, gate):
    """daemon, client = waiting_for_its_store(drain_timeout): a client with a publish whose upload stands still."""
    def run(drain_timeout):
        daemon, client, channel, queue = session({"limits": {"drain_timeout": drain_timeout}}, env=gate.env, expect_exit=1)
        channel.call("confirm.select")
        gate.close()
        channel.publish("", queue, b"x" * 100_000)
        return daemon, client

    return run


def test_a_store_that_stands_still_does_not_keep_the_process(waiting_for_its_store):
    daemon, client = waiting_for_its_store("3s")
    wait_until(lambda: daemon.debris() or daemon.threads() > 3, what="the upload")
    began = time.monotonic()
    daemon.sigterm()
    client.expect_close(320)
    client.abort()
    assert daemon.wait(20) == 1
    assert time.monotonic() - began < 3 + 3 * amqp.TIME_FACTOR
    assert re.search(r"session has not ended in time session=\d+ .* unconfirmed=1 unacknowledged=0", daemon.log)
    assert re.search(r"claim is left behind, .* key=[0-9a-f-]{36} store=claims", daemon.log)


def test_a_second_signal_ends_at_once_what_waits_for_a_store(waiting_for_its_store):
    daemon, client = waiting_for_its_store("60s")
    client.abort()
    drain(daemon)
    daemon.wait_log("session closed session=")  # no session is left, the store is being closed
    daemon.process.send_signal(signal.SIGTERM)
    assert daemon.wait(10) == 1
    assert "stopped at once" in daemon.log


def test_one_session_that_cannot_end_holds_up_no_other(bellhop, name):
    daemon = bellhop({"limits": {"drain_timeout": "4s"}})
    busy, others = amqp.connect(daemon.socket), [amqp.connect(daemon.socket) for _ in range(3)]
    channel = busy.channel()
    queue = channel.declare(name(), exclusive=True)
    for _ in range(2):
        channel.publish("", queue, b"kept")
        channel.get_wait(queue, no_ack=False)
    drain(daemon)
    for each in others:
        ends(each)
    assert daemon.process.poll() is None
    ends(busy)
    assert daemon.wait() == 0
    assert re.search(r"has not ended in time session=.* unconfirmed=0 unacknowledged=2", daemon.log)


def test_a_client_that_never_answers_does_not_hold_up_a_drain(bellhop):
    daemon = bellhop({"limits": {"drain_timeout": "60s"}})
    deaf = amqp.connect(daemon.socket)
    began = time.monotonic()
    daemon.sigterm()
    assert daemon.wait(20) == 0
    assert time.monotonic() - began < 1.5 + 2 * amqp.TIME_FACTOR  # it was 5 s for a close-ok
    deaf.abort()


def test_a_close_stands_behind_the_payload_that_is_half_handed_over(bellhop, broker, name):
    daemon = bellhop({"limits": {"drain_timeout": "6s"}})
    queue = name()
    broker.channel().declare(queue)
    client = amqp.connect(daemon.socket)
    channel = client.channel()
    channel.call("confirm.select")
    payload = os.urandom(24 << 20)
    channel.publish("", queue, payload)
    channel.confirms(1)
    channel.send("basic.get", queue=queue, no_ack=False)
    daemon.sigterm()
    daemon.wait_log("bellhop closes what is left")
    got = channel.wait_for("basic.get-ok", timeout=30)  # the reader fails if any frame stands within
    assert got.body == payload
    ends(client)
    assert daemon.wait() == 0
    broker.channel().call("queue.delete", queue=queue)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGRTMIN],
                         ids=lambda number: number.name)
def test_a_signal_that_means_nothing_to_it_leaves_it_running(bellhop, number):
    daemon = bellhop()
    client = amqp.connect(daemon.socket)
    daemon.process.send_signal(number)
    if number == signal.SIGHUP:
        daemon.wait_log("configuration reloaded number=2")
    client.channel()
    amqp.connect(daemon.socket).close()


def test_several_that_start_on_one_stale_socket_leave_one(bellhop):
    first = bellhop(expect_exit=None)
    first.kill()
    assert os.path.exists(first.socket)
    others = [subprocess.Popen([binary(), "run", "--config", str(first.config_path)], stderr=subprocess.PIPE, text=True) for _ in range(6)]
    try:
        ended = lambda: [each for each in others if each.poll() is not None]  # noqa: E731
        wait_until(lambda: len(ended()) == 5, what="the end of all but one")
        assert all("another process listens there" in each.stderr.read() for each in ended())
        amqp.connect(first.socket).close()
        assert not list(first.folder.glob("*lock*"))
    finally:
        for each in others:
            if each.poll() is None:
                each.terminate()
            each.wait()
            each.stderr.close()
