"""Passwords from the environment and from files: they work, and nothing that bellhop says has them in it, whatever goes wrong."""

import pytest

from support import amqp
from support.bellhop import run_cli

RIGHT, WRONG = "guest", "hunter2-secret"


@pytest.fixture
def secret_file(tmp_path):
    def write(text):
        path = tmp_path / "secret"
        path.write_text(text + "\n")
        return f"${{file:{path}}}"
    return write


def sections(rabbit, password):
    """The places where a broker's password may stand."""
    return {"keys": {"username": "guest", "password": password},
            "URL": {"url": f"amqp://guest:{password}@{rabbit.upstream}"}}


@pytest.mark.parametrize("place", ["keys", "URL"])
@pytest.mark.parametrize("source", ["environment", "file"])
def test_a_password_from_outside_the_file_is_used_and_never_shown(bellhop, rabbit, secret_file, place, source):
    def daemon_with(password):
        text = "${BELLHOP_TEST_SECRET}" if source == "environment" else secret_file(password)
        return bellhop({"broker": sections(rabbit, text)[place], "log": {"level": "trace"}}, env={"BELLHOP_TEST_SECRET": password})

    amqp.connect(daemon_with(RIGHT).socket, username="whoever").close()
    refusing = daemon_with(WRONG)
    with pytest.raises(amqp.ConnectionClosed) as refused:
        amqp.connect(refusing.socket)
    assert refused.value.code == 403
    shown = run_cli("check", refusing.config_path, env={"BELLHOP_TEST_SECRET": WRONG})
    assert shown.returncode == 0 and "as user 'guest'" in shown.stdout
    refusing.sigterm()
    assert refusing.wait() == 0
    assert WRONG not in refusing.log + shown.stdout + shown.stderr + refused.value.text


@pytest.mark.parametrize("broken", [
    "broker: { url: 'amqp://app:SECRET@host:port' }",
    "broker: { url: 'amqp://app:SECRET/@host' }",
    "broker: { url: 'amqps://SECRET@host' }",
    "broker: { url: 'amqp+unix://app:SECRET/@/run/s' }",
    "broker: { url: amqp://host, password: SECRET }",
    "broker: { url: 'amqp://app:SECRET@host', password: SECRET }",
    "broker: { url: amqp://host, username: app, passwort: SECRET }",
    "broker: { url: amqp://host, username: app, password: [SECRET] }",
    "broker: { url: amqp://host, tls: { key: SECRET, passphrase: SECRET } }",
    "broker: { url: amqp://host }\nlisten: [{ tcp: '0.0.0.0:1', users: { app: [SECRET] } }]",
    "broker: { url: amqp://host, username: app, password:SECRET }",
])
def test_no_error_of_a_broken_file_shows_a_password(tmp_path, broken):
    file = tmp_path / "bellhop.yaml"
    key_names_a_file = "key: SECRET" in broken  # a file's name is no secret
    file.write_text(broken.replace("key: SECRET", "key: /nowhere").replace("SECRET", "${BELLHOP_TEST_SECRET}"))
    plain = tmp_path / "plain.yaml"
    plain.write_text(broken.replace("key: SECRET", "key: /nowhere").replace("SECRET", WRONG))
    for each in (file, plain):
        for command in (("check", each), ("run", "--config", each)):
            done = run_cli(*command, env={"BELLHOP_TEST_SECRET": WRONG})
            assert done.returncode == 2 and done.stderr.count(str(each)) >= 1
            assert WRONG not in done.stdout + done.stderr
    assert not key_names_a_file or "/nowhere" in done.stderr
