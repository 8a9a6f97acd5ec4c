"""Logging in by client certificate (SASL EXTERNAL), at a RabbitMQ with its plugin for it."""

import pytest

from support import amqp
from support.bellhop import Bellhop
from support.certificates import shared_authority
from support.rabbitmq import Node, wait_until

USER = "service-by-certificate"
EXTERNAL = ("auth_mechanisms.1 = PLAIN\nauth_mechanisms.2 = AMQPLAIN\nauth_mechanisms.3 = EXTERNAL\n"
            "ssl_cert_login_from = common_name")


@pytest.fixture(scope="module")
def node():
    node = Node.start(tls=True, plugins=["rabbitmq_auth_mechanism_ssl"], config=EXTERNAL)
    node.add_user(USER, None)
    node.add_user("other", "pw")
    yield node
    node.stop()


@pytest.fixture(scope="module")
def own():
    return shared_authority().issue(USER)


def config(node, own=None, **more):
    tls = {"ca": shared_authority().ca}
    if own:
        tls.update(cert=own.cert, key=own.key)
    return {"broker": {"url": f"amqps://{node.tls_address}", "tls": tls, **more}}


def users(node):
    return sorted(row[0] for row in node.rows("list_connections", "user"))


def logged_in_as(node, expected):
    return wait_until(lambda: users(node) == expected, what=f"connections of {expected}")


def test_without_credentials_bellhop_logs_in_by_its_certificate(bellhop, node, own, name):
    daemon = bellhop(config(node, own))
    client = amqp.connect(daemon.socket, username="whoever", password="whatever")
    assert logged_in_as(node, [USER])
    channel = client.channel()
    queue = channel.declare(name(), exclusive=True)
    channel.call("confirm.select")
    channel.publish("", queue, b"hello", user_id=USER)  # the broker knows who that is
    channel.expect("basic.ack")
    assert channel.get_wait(queue).body == b"hello"
    client.close()


def test_a_client_may_ask_for_external_itself(bellhop, node, own):
    daemon = bellhop(config(node, own))
    client = amqp.connect(daemon.socket, mechanism="EXTERNAL")
    assert logged_in_as(node, [USER])
    client.close()


def test_credentials_come_before_the_certificate(bellhop, node, own):
    daemon = bellhop(config(node, own, username="other", password="pw"))
    client = amqp.connect(daemon.socket)
    assert logged_in_as(node, ["other"])
    client.close()


def test_without_a_certificate_each_clients_own_credentials_are_passed_on(bellhop, node):
    daemon = bellhop(config(node))
    client = amqp.connect(daemon.socket, username="other", password="pw")
    assert logged_in_as(node, ["other"])
    client.close()
    with pytest.raises(amqp.ConnectionClosed) as refused:
        amqp.connect(daemon.socket, mechanism="EXTERNAL")
    assert refused.value.code == 403


def test_where_external_is_not_offered_the_certificate_is_for_the_transport_alone(bellhop, tls_rabbit, own):
    daemon = bellhop(config(tls_rabbit, own))
    amqp.connect(daemon.socket, username="guest", password="guest").close()
    with pytest.raises(amqp.ConnectionClosed) as refused:
        amqp.connect(daemon.socket, username="guest", password="wrong")
    assert refused.value.code == 403


def test_a_certificate_whose_user_does_not_exist_is_refused_by_the_broker(bellhop, node):
    daemon = bellhop(config(node, shared_authority().issue("nobody")))
    with pytest.raises(amqp.ConnectionClosed) as refused:
        amqp.connect(daemon.socket)
    assert refused.value.code == 403 and "EXTERNAL" in refused.value.text


def test_over_tcp_the_users_are_asked_for_their_passwords_before_the_certificate_is_theirs(bellhop, node, own):
    daemon = bellhop({**config(node, own), "listen": [{"unix": "{socket}"}, {"tcp": "127.0.0.1:0", "users": {"app": "secret"}}]})
    tcp = daemon.wait_log(r"listening address=tcp:(\S+)").group(1)
    for wrong in ({"username": "app", "password": "x"}, {"username": "guest", "password": "guest"}, {"mechanism": "EXTERNAL"}):
        with pytest.raises(amqp.ConnectionClosed) as refused:
            amqp.connect(tcp, **wrong)
        assert refused.value.code == 403
    client = amqp.connect(tcp, username="app", password="secret")
    assert logged_in_as(node, [USER])
    client.close()


def test_pipelines_are_declared_by_certificate(node, own, name):
    pipeline = name("line")
    with Bellhop({**config(node, own), "pipelines": {pipeline: {"steps": ["one"], "declare": True}}}) as daemon:
        daemon.wait_log("pipelines declared broker=amqps://")
        assert f"{pipeline}.one" in node.queues()


def test_a_pipeline_says_why_its_broker_cannot_be_trusted(node, name):
    with Bellhop({"broker": {"url": f"amqps://guest:guest@{node.tls_address}", "tls": {"ca": shared_authority().ca, "server_name": "x.test"}},
                  "pipelines": {name("line"): {"steps": ["one"], "declare": True}}}) as daemon:
        daemon.wait_log("pipelines not declared yet.*the broker's certificate is for .* and not for the DNS name 'x.test'")
