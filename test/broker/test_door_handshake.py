"""The opening of a connection through bellhop against a real RabbitMQ: who gets in, and what each side learns of the other."""

import uuid

import pytest

from support import amqp
from support.proxy import Proxy
from support.rabbitmq import SMALLEST_FRAME_MAX, Node, wait_until

OWN = {"broker": {"username": "guest", "password": "guest"}}
TCP = [{"unix": "{socket}"}, {"tcp": "127.0.0.1:0"}]


def tcp_address(daemon):
    return daemon.wait_log(r"listening address=tcp:(\S+)").group(1)


def works(client, name):
    """Publishes a message and gets it back."""
    channel = client.channel()
    queue = channel.declare(name(uuid.uuid4().hex), exclusive=True)  # the last client's may not be gone yet
    channel.publish("", queue, b"hello")
    return channel.get_wait(queue).body == b"hello"


@pytest.mark.parametrize("mechanism", ["PLAIN", "AMQPLAIN"])
@pytest.mark.parametrize("config", [{}, OWN], ids=["passed on", "bellhop's own"])
def test_a_client_logs_in(bellhop, name, mechanism, config):
    daemon = bellhop(config)
    assert works(amqp.connect(daemon.socket, mechanism=mechanism), name)


def test_a_client_that_opens_with_the_header_of_amqp_0_9_is_served_as_by_the_broker(bellhop, rabbit, name):
    # AnyEvent::RabbitMQ for Perl does.
    starts = []
    for address in (rabbit.address, bellhop().socket):
        client = amqp.Client(address)
        client.send_raw(b"AMQP\x01\x01\x00\x09")
        starts.append(client.start())
        client.start_ok()
        client.tune()
        client.tune_ok()
        client.open()
        assert works(client, name)
    direct, through = starts
    assert (through.version_major, through.version_minor) == (direct.version_major, direct.version_minor)


def test_on_the_unix_socket_any_login_will_do_when_bellhop_has_credentials(bellhop, name):
    daemon = bellhop(OWN)
    assert works(amqp.connect(daemon.socket, username="whoever", password="whatever"), name)
    assert works(amqp.connect(daemon.socket, mechanism="EXTERNAL"), name)


def test_credentials_in_the_url_are_used_like_those_in_keys(bellhop, rabbit, name):
    daemon = bellhop({"broker": {"url": f"amqp://guest:guest@{rabbit.upstream}"}})
    assert works(amqp.connect(daemon.socket, username="whoever"), name)


@pytest.mark.parametrize("mechanism", ["PLAIN", "AMQPLAIN"])
def test_a_passed_on_login_that_is_wrong_gets_the_brokers_own_refusal(bellhop, rabbit, mechanism):
    def refusal(address):
        with pytest.raises(amqp.ConnectionClosed) as refused:
            amqp.connect(address, password="wrong", mechanism=mechanism)
        return refused.value.code, refused.value.text

    assert refusal(bellhop().socket) == refusal(rabbit.address) and refusal(rabbit.address)[0] == 403


def test_a_client_that_does_not_know_refusals_sees_the_socket_close_as_with_the_broker(bellhop):
    client = amqp.Client(bellhop().socket, password="wrong", client_properties={"product": "old"})
    client.send_header()
    client.start()
    client.start_ok()
    assert client.expect_closed() == []


@pytest.mark.parametrize("address_of", [lambda d: d.socket, tcp_address], ids=["unix", "tcp"])
def test_a_mechanism_the_broker_does_not_offer_is_answered_as_by_the_broker(bellhop, rabbit, address_of):
    daemon = bellhop({"listen": TCP})

    def answer(address):
        client = amqp.Client(address, mechanism="NONSENSE")
        client.send_header()
        client.start()
        client.start_ok()
        try:
            client.tune()
        except amqp.ConnectionClosed as closed:
            return closed.code
        except amqp.SocketClosed:
            return "socket closed"

    assert answer(address_of(daemon)) == answer(rabbit.address)


def test_tcp_users_are_checked_by_bellhop_and_their_passwords_stay_below(bellhop, name):
    daemon = bellhop({**OWN, "listen": [{"unix": "{socket}"}, {"tcp": "127.0.0.1:0", "users": {"app": "s3cret-word"}}]})
    address = tcp_address(daemon)
    for mechanism in ("PLAIN", "AMQPLAIN"):
        assert works(amqp.connect(address, username="app", password="s3cret-word", mechanism=mechanism), name)
        for username, password in (("app", "s3cret-worm"), ("app", ""), ("app", "s3cret-words"), ("other", "s3cret-word"), ("", "")):
            with pytest.raises(amqp.ConnectionClosed) as refused:
                amqp.connect(address, username=username, password=password, mechanism=mechanism)
            assert refused.value.code == 403 and "bellhop" in refused.value.text and "broker logfile" not in refused.value.text
    with pytest.raises(amqp.ConnectionClosed) as refused:
        amqp.connect(address, mechanism="EXTERNAL")
    assert refused.value.code == 403
    assert "s3cret" not in daemon.log


def test_tcp_users_are_checked_also_where_their_logins_are_passed_on(bellhop, name):
    daemon = bellhop({"listen": [{"unix": "{socket}"}, {"tcp": "127.0.0.1:0", "users": {"guest": "guest", "nobody": "pw"}}]})
    address = tcp_address(daemon)
    assert works(amqp.connect(address), name)
    # The broker would take neither EXTERNAL nor these two; the last is refused by it and not by bellhop.
    for login in ({"username": "app", "password": "x"}, {"password": "wrong"}, {"mechanism": "EXTERNAL"}, {"username": "nobody", "password": "pw"}):
        with pytest.raises(amqp.ConnectionClosed) as refused:
            amqp.connect(address, **login)
        assert refused.value.code == 403
    assert daemon.log.count("login refused") == 3


def test_an_anonymous_tcp_listener_asks_nothing(bellhop, name):
    daemon = bellhop({**OWN, "listen": [{"unix": "{socket}"}, {"tcp": "127.0.0.1:0", "anonymous": True}]})
    assert works(amqp.connect(tcp_address(daemon), username="", password=""), name)


def test_a_tcp_listener_without_users_passes_the_clients_login_on(bellhop, name):
    daemon = bellhop({"listen": TCP})
    assert works(amqp.connect(tcp_address(daemon)), name)
    with pytest.raises(amqp.ConnectionClosed) as refused:
        amqp.connect(tcp_address(daemon), password="wrong")
    assert refused.value.code == 403


def test_each_side_gets_the_others_properties_as_they_were_sent(bellhop, rabbit):
    tag = uuid.uuid4().hex
    properties = {"product": "shop", "connection_name": tag, "x-number": 7, "x-flag": False, "x-nested": {"a": [1, "b"]},
                  "capabilities": {"authentication_failure_close": True}}
    direct, through = amqp.connect(rabbit.address), amqp.connect(bellhop().socket, client_properties=properties)
    assert through.server_properties == direct.server_properties

    shown = [row for row in rabbit.rows("list_connections", "client_properties") if tag in row[0]]
    assert len(shown) == 1
    second = amqp.connect(rabbit.address, client_properties=properties)
    twice = [row for row in rabbit.rows("list_connections", "client_properties") if tag in row[0]]
    assert twice == [shown[0], shown[0]]
    for client in (direct, through, second):
        client.close()


def test_the_client_is_offered_one_channel_less_and_the_brokers_frame_size(bellhop, rabbit):
    direct, through = amqp.connect(rabbit.address), amqp.connect(bellhop({"broker": {"heartbeat": "17s"}}).socket)
    assert through.tuned.channel_max == direct.tuned.channel_max - 1
    assert through.tuned.frame_max == direct.tuned.frame_max
    assert through.tuned.heartbeat == 17
    through.channel(through.tuned.channel_max).close()


def test_bellhops_own_channel_is_opened_beside_the_clients(bellhop, rabbit, name):
    """A client that takes all channels it was offered still lets bellhop send a message of its own (a hop)."""
    exchange = name("line")
    daemon = bellhop({**OWN, "pipelines": {exchange: {"steps": ["a", "b"], "declare": True}}})
    wait_until(lambda: rabbit.queues().keys() >= {f"{exchange}.a", f"{exchange}.b"}, what="the pipeline's queues")
    client = amqp.connect(daemon.socket, channel_max=2)
    client.channel(1)
    channel = client.channel(2)
    channel.call("confirm.select")
    channel.publish("bellhop.next", exchange, b"x", headers={"x-acemq-route": "a,b", "x-acemq-route-position": 0})
    assert channel.confirms(1) == {1: "ack"}
    for step in "ab":
        channel.call("queue.delete", queue=f"{exchange}.{step}")
    channel.call("exchange.delete", exchange=exchange)


@pytest.mark.parametrize("choice", [{"channel_max": 2047}, {"channel_max": 0}, {"frame_max": 131073}, {"frame_max": 0},
                                    {"frame_max": 4095}])
def test_a_client_that_asks_for_more_than_it_was_offered_is_refused(bellhop, choice):
    client = amqp.Client(bellhop().socket, **choice)
    client.send_header()
    client.start()
    client.start_ok()
    client.tune()
    client.tune_ok()
    client.expect_close(530)
    client.expect_closed()


@pytest.mark.parametrize("frame_max", [SMALLEST_FRAME_MAX, 8192, 131072])
def test_a_client_with_smaller_frames_is_served_with_them(bellhop, name, frame_max):
    client = amqp.connect(bellhop().socket, frame_max=frame_max)
    channel = client.channel()
    queue = channel.declare(name(), exclusive=True)
    channel.call("confirm.select")
    bodies = [b"s" * 60000, b"l" * 300000]
    for body in bodies:
        channel.publish("", queue, body)
    assert channel.confirms(2) == {1: "ack", 2: "ack"}
    for body in bodies:
        got = channel.get_wait(queue)
        assert got.body == body and max(got.body_frames) <= frame_max - 8


def test_a_virtual_host_outside_of_the_allow_list_is_refused(bellhop):
    daemon = bellhop({"broker": {"vhosts": ["/"]}})
    amqp.connect(daemon.socket, vhost="/").close()
    with pytest.raises(amqp.ConnectionClosed) as refused:
        amqp.connect(daemon.socket, vhost="secret")
    assert refused.value.code == 530 and "secret" in refused.value.text


def test_a_virtual_host_the_broker_does_not_have_gets_the_brokers_answer(bellhop, rabbit):
    def refusal(address):
        with pytest.raises(amqp.ConnectionClosed) as refused:
            amqp.connect(address, vhost="nowhere")
        return refused.value.code, refused.value.text

    assert refusal(bellhop().socket) == refusal(rabbit.address)


def test_a_virtual_host_is_mapped_or_taken_from_the_url(bellhop, rabbit):
    mapped = bellhop({"broker": {"vhost_map": {"shop": "/"}}})
    amqp.connect(mapped.socket, vhost="shop").close()
    fixed = bellhop({"broker": {"url": f"amqp://{rabbit.upstream}/%2f"}})
    amqp.connect(fixed.socket, vhost="anything").close()


def test_the_second_broker_is_taken_when_the_first_refuses(bellhop, rabbit, name):
    with Proxy(rabbit.upstream) as gone:
        dead = gone.url
    daemon = bellhop({"broker": {"url": [dead, rabbit.url]}})
    assert works(amqp.connect(daemon.socket), name)


@pytest.fixture(scope="module")
def small_broker():
    """A broker with narrow limits and two users of different rights."""
    node = Node.start(config="channel_max = 100\nframe_max = 8192")
    node.add_user("reader", "reader", configure="", write="")
    node.add_user("writer", "writer")
    yield node
    node.stop()


def test_a_broker_with_narrow_limits_works_for_large_bodies_too(bellhop, small_broker, name):
    daemon = bellhop({"broker": {"url": small_broker.url}, "claim_check": {"threshold": "256KiB"}})
    client = amqp.connect(daemon.socket)
    assert (client.tuned.channel_max, client.tuned.frame_max) == (99, 8192)
    channel = client.channel(99)
    queue = channel.declare(name(), exclusive=True)
    channel.call("confirm.select")
    bodies = [b"a" * 100000, b"b" * 8184, b"c" * 8185, b"\xac\x01\x00" + b"d" * 100000, b"e" * 600000]
    for body in bodies:
        channel.publish("", queue, body)
    assert channel.confirms(len(bodies)) == {tag: "ack" for tag in range(1, len(bodies) + 1)}
    channel.call("basic.consume", queue=queue, no_ack=True)
    assert [channel.deliver().body for _ in bodies] == bodies


def test_each_client_has_its_own_rights_when_its_login_is_passed_on(bellhop, small_broker, name):
    daemon = bellhop({"broker": {"url": small_broker.url}})
    queue = name()
    writer = amqp.connect(daemon.socket, username="writer", password="writer").channel()
    writer.call("queue.declare", queue=queue)
    reader = amqp.connect(daemon.socket, username="reader", password="reader").channel()
    assert reader.get(queue) is None
    reader.send("queue.declare", queue=name())
    reader.expect_close(403)
    writer.call("queue.delete", queue=queue)
