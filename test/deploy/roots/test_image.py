"""The image as deploy/image builds it, run by a container runtime: a root that cannot be written to, no privileges, user 10001; a real
RabbitMQ, whose name it asks DNS for; a real S3 server; and a service of another user, who is in the socket's group."""

import functools
import json
import os
import pathlib
import re
import stat
import subprocess

import pytest

from support import amqp
from support.bellhop import ROOT
from support.built_image import NAME, VERSION
from support.certificates import shared_authority
from support.claims import body_of
from support.container import Engine, NameServer, as_user
from support.image import Image
from support.publishing import CLAIM, declare
from support.rabbitmq import wait_until
from support.s3 import S3rver, certificates

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may run containers here")

MIB = 1 << 20
SIZE_BYTES_MAX = 40_000_000
BROKER = "broker.bellhop.example"
SERVICE = 1234  # the service's user and group
RUN = ["--tmpfs=/tmp", "--volume=run:/run/bellhop", "--volume=claims:/var/lib/bellhop/claims"]


@pytest.fixture(scope="module")
def engine():
    with Engine() as engine:
        yield engine


@pytest.fixture(scope="module")
def image(engine, archive):
    engine.podman("load", "--input", archive)
    return NAME


@pytest.fixture(scope="module")
def facts(engine, image):
    [facts] = json.loads(engine.podman("image", "inspect", image).stdout)
    return facts


@pytest.fixture(scope="module")
def files(engine, image):
    """The image's root, unpacked."""
    root = engine.folder / "root"
    root.mkdir()
    archive = engine.folder / "root.tar"
    name = engine.podman("create", image).stdout.strip()
    engine.podman("export", "--output", archive, name)
    engine.podman("rm", name)
    subprocess.run(["tar", "-C", root, "-xf", archive], check=True)
    archive.unlink()
    return root


@pytest.fixture(scope="module")
def s3(tmp_path_factory):
    """On https; its certificate is signed by nobody whom the image knows."""
    with S3rver(tmp_path_factory.mktemp("s3"), tls=certificates(tmp_path_factory.mktemp("tls"))) as server:
        yield server


@pytest.fixture(scope="module")
def authorities(files, s3, engine, tls_rabbit):
    """The image's file of authorities, and those of the tests' broker and S3 server. It takes the other's place."""
    path = engine.folder / "authorities.crt"
    path.write_text("\n".join(pathlib.Path(file).read_text() for file in (files / "etc/ssl/certs/ca-certificates.crt", shared_authority().ca, s3.ca)))
    return path


@pytest.fixture
def start(engine, image, authorities, s3, tls_rabbit, tmp_path):
    """start([options]) -> a container that listens; it is gone at the end, with its volumes."""
    with NameServer(BROKER) as dns:
        config = engine.folder / "bellhop.yaml"
        config.write_text(json.dumps({
            "listen": [{"unix": "/run/bellhop/bellhop.sock", "group": "bellhop"}],
            "broker": {"url": f"amqps://{BROKER}:{tls_rabbit.tls_port}", "tls": {"server_name": "localhost"}},
            "stores": {"claims": {"type": "filesystem", "path": "/var/lib/bellhop/claims"},
                       "archive": s3.store(endpoint=f"https://localhost:{s3.port}", probe=False)},
            "claim_check": {"store": "claims"},
            "routes": [{"name": "archive", "match": {"exchange": "amq.direct"}, "claim_check": {"store": "archive"}}]}))

        def start(options=RUN):
            container = engine.start(image, [f"--dns={dns.address}", "--dns-search=.", f"--volume={config}:/etc/bellhop/bellhop.yaml:ro",
                                             f"--volume={authorities}:/etc/ssl/certs/ca-certificates.crt:ro", *options])
            container.wait_log("listening")
            container.dns = dns
            return container

        yield start
        engine.podman("rm", "--all", "--force", "--time=0", "--volumes")
        engine.podman("volume", "rm", "--all", "--force")


@pytest.fixture
def queue(tls_rabbit, name):
    client = amqp.connect(tls_rabbit.address)
    channel = declare(client, name("orders"), durable=True)
    channel.call("queue.bind", queue=name("orders"), exchange="amq.direct", routing_key=name("orders"))
    yield channel, name("orders")
    channel.call("queue.delete", queue=name("orders"))
    client.abort()


def as_service(function, *arguments, groups=(10001,)):
    as_user(functools.partial(function, *arguments), SERVICE, SERVICE, groups)


def publish(socket, exchange, queue, body):
    client = amqp.connect(socket)
    channel = client.channel()
    channel.call("confirm.select")
    channel.publish(exchange, queue, body)
    channel.expect("basic.ack", delivery_tag=1)
    client.close()


def consume(socket, queue, body):
    client = amqp.connect(socket)
    channel = client.channel()
    channel.call("basic.consume", queue=queue, consumer_tag="c")
    got = channel.deliver()
    assert got.body == body
    channel.ack(got.delivery_tag)
    client.close()


# -- what it is

def test_it_is_small(files):
    size = sum(path.lstat().st_size for path in files.rglob("*") if not path.is_dir())
    print(f"{size / 1e6:.1f} MB")
    assert 10_000_000 < size <= SIZE_BYTES_MAX


def test_its_labels_say_what_it_is(facts):
    labels = {key.removeprefix("org.opencontainers.image."): value for key, value in facts["Labels"].items() if "opencontainers" in key}
    revision = labels.pop("revision")
    assert labels.pop("description")
    assert labels == {"title": "bellhop", "version": VERSION, "licenses": "Apache-2.0"}
    head = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
    assert revision in (head, f"{head}-dirty")


def test_it_runs_as_the_dockerfile_says(facts):
    config, said = facts["Config"], Image()
    assert config["User"] == "{}:{}".format(*said.user) == "10001:10001"
    assert (config["Entrypoint"], config["Cmd"]) == (said.entrypoint, said.command)
    assert (said.entrypoint, said.command) == (["/usr/bin/bellhop"], ["run", "--config", "/etc/bellhop/bellhop.yaml"])
    assert facts["Healthcheck"]["Test"] == ["CMD", *said.health] == ["CMD", "/usr/bin/bellhop", "health"]


def test_there_is_nothing_in_it_to_run_but_bellhop(files):
    programs = [path for path in files.rglob("*") if path.is_file() and not path.is_symlink() and path.stat().st_mode & 0o111]
    assert {path.name for path in programs if ".so" not in path.name} == {"bellhop"}
    assert not [path for path in files.rglob("*") if not path.is_symlink() and path.stat().st_mode & (stat.S_ISUID | stat.S_ISGID)]


def test_each_library_has_its_licence_and_its_package_is_known(files):
    packages = {path.name for path in (files / "var/lib/dpkg/status.d").iterdir()}
    assert {"libc6", "libcurl4", "libmicrohttpd12", "libssl3", "nlohmann-json3-dev"} <= packages
    for package in packages:
        assert (files / "usr/share/doc" / package / "copyright").stat().st_size, package
        assert f"Package: {package}\n" in (files / "var/lib/dpkg/status.d" / package).read_text()
    assert (files / "usr/share/doc/bellhop/LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert (files / "usr/share/common-licenses/LGPL-2.1").exists()


def test_it_says_its_version_and_finds_the_libraries_that_are_loaded_late(engine, image, facts):
    said = engine.podman("run", "--rm", image, "--version").stdout
    assert said.startswith(f"bellhop {VERSION}\ncommit: {facts['Labels']['org.opencontainers.image.revision']}\n")
    assert re.search(r"libcurl 7\.\d.*libmicrohttpd 0\.\d", said)


# -- how it runs

def test_it_has_no_privileges(start):
    status = start().process_status()
    assert status["Uid"].split() == status["Gid"].split() == ["10001"] * 4
    assert {status[key] for key in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert status["NoNewPrivs"] == "1"


@pytest.mark.parametrize("size", [100, 5 * MIB])
def test_a_service_of_another_user_publishes_and_consumes_through_its_socket(start, engine, queue, size):
    container = start()
    socket = str(engine.volume("run") / "bellhop.sock")
    channel, name = queue
    body = body_of(size)
    as_service(publish, socket, "", name, body)
    held = channel.get_wait(name, no_ack=False)
    assert (held.body[:3] == CLAIM) == (size > MIB)
    assert len([path for path in engine.volume("claims").iterdir() if not path.name.startswith(".")]) == (size > MIB)
    channel.send("basic.reject", delivery_tag=held.delivery_tag, requeue=True)
    as_service(consume, socket, name, body)
    assert BROKER in container.dns.asked


def test_who_is_not_in_the_group_cannot_use_the_socket(start, engine):
    start()
    socket = engine.volume("run") / "bellhop.sock"
    with pytest.raises(AssertionError, match="PermissionError"):
        as_service(amqp.connect, str(socket), groups=())
    mode = socket.stat()
    assert (mode.st_uid, mode.st_gid, stat.S_IMODE(mode.st_mode)) == (10001, 10001, 0o660)


def test_payloads_go_to_a_bucket_and_back_through_scratch_files(start, engine, queue, s3):
    start()
    socket = str(engine.volume("run") / "bellhop.sock")
    _, name = queue
    body = body_of(20 * MIB)
    before = s3.names()
    as_service(publish, socket, "amq.direct", name, body)
    [new] = set(s3.names()) - set(before)
    assert s3.get(new) == body
    as_service(consume, socket, name, body)


def test_without_a_folder_for_scratch_files_it_says_which_one_it_lacks(start, engine, queue):
    container = start([option for option in RUN if "tmpfs" not in option])
    socket = str(engine.volume("run") / "bellhop.sock")
    _, name = queue

    def refused():
        client = amqp.connect(socket)
        channel = client.channel()
        channel.call("confirm.select")
        channel.publish("amq.direct", name, body_of(5 * MIB))
        channel.expect("basic.nack", delivery_tag=1)
        client.close()

    as_service(refused)
    container.wait_log(r"cannot create a scratch file in /tmp \(TMPDIR\): Read-only file system")


def test_scratch_files_go_to_the_folder_that_tmpdir_names(start, engine, queue):
    start([*(option for option in RUN if "tmpfs" not in option), "--env=TMPDIR=/scratch", "--tmpfs=/scratch"])
    socket = str(engine.volume("run") / "bellhop.sock")
    _, name = queue
    as_service(publish, socket, "amq.direct", name, body_of(5 * MIB))
    as_service(consume, socket, name, body_of(5 * MIB))


def test_its_health_command_tells_a_bellhop_that_runs(start, engine, image):
    container = start()
    assert container.exec("/usr/bin/bellhop", "health").returncode == 0
    assert engine.podman("healthcheck", "run", container.name, check=False).returncode == 0
    assert engine.podman("run", "--rm", image, "health", check=False).returncode != 0


def test_a_group_that_the_image_does_not_have_is_told(engine, image):
    config = engine.folder / "groups.yaml"
    config.write_text('{"broker": {"url": "amqp://localhost"}, "listen": [{"unix": "/run/bellhop/bellhop.sock", "group": "app"}]}')
    done = engine.podman("run", "--rm", "--read-only", f"--volume={config}:/etc/bellhop/bellhop.yaml:ro", *RUN, image, check=False)
    assert done.returncode in (1, 2)
    assert "this host has no group 'app'" in done.stderr


def test_it_ends_within_its_drain_when_it_is_told_to(start, engine, queue):
    container = start()
    channel, name = queue
    client = amqp.connect(str(engine.volume("run") / "bellhop.sock"))
    consumer = client.channel()
    consumer.call("basic.consume", queue=name, consumer_tag="c")
    channel.publish("", name, b"work")
    work = consumer.deliver()
    engine.podman("kill", "--signal=TERM", container.name)
    container.wait_log("draining")
    assert container.state["Running"]  # it waits for the acknowledgement
    consumer.ack(work.delivery_tag)
    wait_until(lambda: not container.state["Running"], 15, "the container's end")
    assert container.state["ExitCode"] == 0
    client.abort()
    wait_until(lambda: channel.call("queue.declare", queue=name, passive=True).message_count == 0, 10, "an empty queue")
