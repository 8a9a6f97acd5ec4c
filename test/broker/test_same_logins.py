"""Logins, virtual hosts and rights: refused before connection.open-ok, with 403 and 530, by the broker's words, and told as such by pika."""

import pika
import pytest

from support import amqp
from support.differential import Differential
from support.rabbitmq import Node


@pytest.fixture(scope="module")
def node():
    """A broker with two users of different rights and two virtual hosts."""
    node = Node.start()
    node.eval("""
        lists:foreach(fun(User) -> rabbit_auth_backend_internal:add_user(User, User, <<"test">>) end, [<<"reader">>, <<"writer">>]),
        rabbit_vhost:add(<<"other">>, <<"test">>),
        rabbit_auth_backend_internal:set_permissions(<<"reader">>, <<"/">>, <<"">>, <<"">>, <<".*">>, <<"test">>),
        rabbit_auth_backend_internal:set_permissions(<<"writer">>, <<"/">>, <<".*">>, <<".*">>, <<".*">>, <<"test">>),
        rabbit_auth_backend_internal:set_permissions(<<"writer">>, <<"other">>, <<".*">>, <<".*">>, <<".*">>, <<"test">>).
    """)
    yield node
    node.stop()


TCP = {"listen": [{"unix": "{socket}"}, {"tcp": "127.0.0.1:0"}]}


@pytest.fixture(scope="module")
def same(node):
    with Differential(node, TCP, ["stamping"]) as differential:
        yield differential


REFUSED = {
    "a wrong password": dict(username="writer", password="wrong"),
    "an unknown user": dict(username="nobody", password="nobody"),
    "an empty login": dict(username="", password=""),
    "AMQPLAIN with a wrong password": dict(username="writer", password="wrong", mechanism="AMQPLAIN"),
    "a mechanism that is not offered": dict(mechanism="EXTERNAL"),
    "no response": dict(response=b""),
    "half a response": dict(response=b"\0guest"),
    "a virtual host that there is not": dict(vhost="nowhere"),
    "a virtual host that is not for this user": dict(username="reader", password="reader", vhost="other"),
    "an empty virtual host": dict(vhost=""),
}


# To a client that does not know of refusals the broker closes the socket, after some seconds.
@pytest.mark.parametrize("what, knows_refusals", [(what, True) for what in REFUSED]
                         + [("a wrong password", False), ("a virtual host that there is not", False)])
def test_a_refused_login_is_told_as_by_the_broker(same, what, knows_refusals):
    @same
    def program(run):
        by = run.connect(username="writer", password="writer").channel()
        client = run.client(**REFUSED[what], client_properties=amqp.CLIENT_PROPERTIES if knows_refusals else {})
        try:
            client.handshake()
        except (amqp.ConnectionClosed, amqp.SocketClosed) as refused:
            run.note("refused", getattr(refused, "code", 0))
        assert not any(line[0].startswith("connection.open-ok") for line in run.transcript.lines[f"{client.label} channel 0"])
        client.abort()
        by.declare("", exclusive=True)


@pytest.mark.parametrize("login, error, code", [
    (dict(credentials=pika.PlainCredentials("writer", "wrong")), pika.exceptions.ProbableAuthenticationError, "(403)"),
    (dict(credentials=pika.PlainCredentials("reader", "reader"), virtual_host="other"), pika.exceptions.ProbableAccessDeniedError, "(530)"),
    (dict(credentials=pika.PlainCredentials("writer", "writer"), virtual_host="nowhere"), pika.exceptions.ProbableAccessDeniedError, "(530)"),
], ids=["a wrong password", "another's virtual host", "no such virtual host"])
def test_pika_reports_a_wrong_login_and_a_wrong_virtual_host_as_such(same, node, login, error, code):
    daemon = same.daemon("stamping")
    port = int(daemon.wait_log(r"listening[^\n]*127\.0\.0\.1:(\d+)")[1])
    told = []
    for target in (node.port, port):
        with pytest.raises(pika.exceptions.AMQPConnectionError) as refused:
            pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", target, **login))
        told.append((type(refused.value), str(refused.value)))
    assert told[0] == told[1]
    assert told[0][0] is error and code in told[0][1]


def test_two_users_of_different_rights_on_one_bellhop(same):
    @same
    def program(run):
        writer = run.channel(username="writer", password="writer")
        queue = writer.declare(run.name("q"), arguments={"x-expires": 60000})
        writer.call("confirm.select")
        writer.publish("", queue, b"from the writer", user_id="writer")
        writer.confirms(1)
        reader = run.connect(username="reader", password="reader")
        reader.channel(1).get(queue)
        for number, (method, arguments) in enumerate((("queue.declare", {"queue": run.name("mine")}), ("queue.delete", {"queue": queue}),
                                                      ("exchange.declare", {"exchange": run.name("x"), "type": "direct"}),
                                                      ("queue.bind", {"queue": queue, "exchange": "amq.direct"})), 2):
            ch = reader.channel(number)
            ch.send(method, **arguments)
            ch.expect_close(403)
        ch = reader.channel(9)
        ch.publish("amq.topic", "key", b"may not")
        ch.expect_close(403)
        writer.publish("", queue, b"not as the reader", user_id="reader")
        writer.expect_close(406)
        writer = writer.client.channel(5)
        writer.call("queue.delete", queue=queue)
        elsewhere = run.channel(username="writer", password="writer", vhost="other")
        elsewhere.send("queue.declare", queue=queue, passive=True)
        elsewhere.expect_close(404)


@pytest.mark.parametrize("size", [3, 200_000])
def test_an_impersonator_may_set_any_user_id(same, node, size):
    """With the client's login passed on it is the broker that knows who may."""
    node.ctl("add_user", "actor", "actor")
    node.ctl("set_permissions", "actor", ".*", ".*", ".*")
    node.ctl("set_user_tags", "actor", "impersonator")
    try:
        @same
        def program(run):
            actor = run.channel(username="actor", password="actor")
            queue = actor.declare("", exclusive=True)
            actor.call("confirm.select")
            actor.publish("", queue, b"x" * size, user_id="somebody else")
            actor.confirms(1)
            assert actor.get_wait(queue).properties["user_id"] == "somebody else"
    finally:
        node.ctl("delete_user", "actor")


@pytest.mark.parametrize("secret", [b"guest", b"wrong", b""])
def test_a_new_secret_for_a_connection(same, secret):
    """With its login passed on, it is the client's and the broker's affair."""
    @same
    def program(run):
        client = run.connect()
        ch = client.channel()
        client.send(0, "connection.update-secret", new_secret=secret, reason="rotated")
        try:
            client.wait_for("connection.update-secret-ok", 0)
            ch.declare("", exclusive=True)
        except amqp.ConnectionClosed as closed:
            run.note("closed", closed.code)
            client.until_closed()


def test_a_new_secret_is_not_sent_on_when_bellhop_has_its_own(bellhop, node):
    daemon = bellhop({"broker": {"url": node.url, "username": "writer", "password": "writer"}})
    client = amqp.connect(daemon.socket, username="anybody", password="at all")
    client.send(0, "connection.update-secret", new_secret=b"wrong", reason="rotated")
    client.wait_for("connection.update-secret-ok", 0)
    client.channel().declare("", exclusive=True)
    client.close()
