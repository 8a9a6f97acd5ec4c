"""With credentials in the file bellhop tries them when it starts, once: what the broker refuses is in the log before a client connects."""

import json
import socket

import pytest

from support import amqp
from support.admin import Admin
from support.bellhop import run_cli
from support.certificates import Authority
from support.rabbitmq import free_port, wait_until
from support.tls_front import TlsFront

REFUSED = "broker refuses bellhop's login: check the credentials under broker in the configuration"


def first(daemon, message):
    def found():
        return next((line for line in map(json.loads, daemon.log.splitlines()) if line["message"] == message), None)
    return wait_until(found, what=f"a line {message!r}; the log has:\n{daemon.log[-3000:]}")


@pytest.fixture
def starting(bellhop):
    return lambda **broker: bellhop({"broker": {"connect_timeout": "2s", **broker}, "log": {"format": "json", "level": "debug"}})


def test_a_wrong_password_is_told_and_bellhop_serves(starting, rabbit):
    daemon = starting(username="guest", password="hunter2")
    line = first(daemon, REFUSED)
    assert line["level"] == "error" and line["broker"] == rabbit.url and "ACCESS_REFUSED" in line["reason"] and "'guest'" in line["reason"]
    assert "hunter2" not in daemon.log
    with pytest.raises(amqp.ConnectionClosed):
        amqp.connect(daemon.socket)


@pytest.mark.parametrize("declare", [False, True], ids=["nothing to declare", "pipelines to declare"])
def test_a_refused_login_is_not_ready_until_the_broker_lets_bellhop_in(bellhop, rabbit, name, declare):
    user = name("user")
    rabbit.add_user(user, "another")
    daemon = bellhop({"broker": {"username": user, "password": "secret"}, "log": {"format": "json"},
                      "pipelines": {name("p"): {"steps": ["a"], "declare": declare}}})
    assert first(daemon, REFUSED)["broker"] == rabbit.url
    admin = Admin(daemon.admin_socket)
    not_ready = "[-] broker: refuses bellhop's login; the log says why\nnot ready\n"
    wait_until(lambda: admin.get("/readyz").body == not_ready, 20, "not ready")
    with pytest.raises(amqp.ConnectionClosed):
        amqp.connect(daemon.socket)
    assert admin.get("/readyz").body == not_ready
    assert "\nbellhop_broker_up 0\n" in admin.get("/metrics").body
    rabbit.eval(f"ok = rabbit_auth_backend_internal:change_password(<<\"{user}\">>, <<\"secret\">>, <<\"test\">>).")
    amqp.connect(daemon.socket).close()
    wait_until(lambda: admin.get("/readyz").body == "ready\n", 20, "ready")
    if declare:
        first(daemon, "pipelines declared")
        assert first(daemon, "broker lets bellhop in")["broker"] == rabbit.url


def test_a_reload_to_a_password_that_is_refused_is_not_ready_and_back_again_is(bellhop):
    daemon = bellhop({"broker": {"username": "guest", "password": "guest"}})
    admin, right = Admin(daemon.admin_socket), daemon.config_path.read_text()
    wait_until(lambda: admin.get("/readyz").body == "ready\n", 20, "ready")
    wrong = right.replace('"password": "guest"', '"password": "wrong"')
    assert wrong != right
    for text, ready in ((wrong, "[-] broker: refuses bellhop's login; the log says why\nnot ready\n"), (right, "ready\n")):
        daemon.config_path.write_text(text)
        assert run_cli("reload", "--socket", daemon.admin_socket).returncode == 0
        wait_until(lambda: admin.get("/readyz").body == ready, 20, ready)


def test_a_virtual_host_that_is_not_there_is_told(starting, rabbit, name):
    vhost = name("none")
    line = first(starting(url=f"{rabbit.url}/{vhost}", username="guest", password="guest"), REFUSED)
    assert line["vhost"] == vhost and "NOT_ALLOWED" in line["reason"]


def test_one_that_nobody_named_is_only_a_warning(starting, rabbit, name):
    user, vhost = name("user"), name("vhost")
    rabbit.add_vhost(vhost)
    rabbit.add_user(user, "secret", vhost=vhost)
    daemon = starting(username=user, password="secret")
    assert first(daemon, "broker refuses the virtual host that a client gets by default")["level"] == "warn"
    amqp.connect(daemon.socket, vhost=vhost).close()


def test_a_node_that_is_not_there_is_told_and_the_next_one_is_tried(starting, rabbit):
    nobody = f"amqp://127.0.0.1:{free_port()}"
    daemon = starting(url=[nobody, rabbit.url], username="guest", password="guest")
    line = first(daemon, "broker cannot be reached at start, bellhop serves all the same")
    assert line["level"] == "warn" and line["broker"] == nobody and "Connection refused" in line["reason"]
    assert first(daemon, "broker lets bellhop in")["broker"] == rabbit.url


def test_a_certificate_that_is_not_trusted_is_told(starting, rabbit, tmp_path):
    stranger, known = Authority(tmp_path / "a", "stranger"), Authority(tmp_path / "b")
    with TlsFront(rabbit.address, stranger.issue("broker")) as front:
        daemon = starting(url=front.url, username="guest", password="guest", tls={"ca": known.ca})
        assert "unknown CA, 'CN=stranger'" in first(daemon, "broker cannot be reached at start, bellhop serves all the same")["reason"]


def test_without_credentials_of_its_own_it_asks_nobody(bellhop):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        bellhop({"broker": {"url": f"amqp://127.0.0.1:{listener.getsockname()[1]}"}}).stop()
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()
