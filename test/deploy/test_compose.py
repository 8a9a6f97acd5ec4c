"""deploy/compose.yaml is what it says: docker-compose takes it, and each of its commands, paths, ids and times fits the program, the image
and the configuration beside it. A copy with any of them wrong is found out."""

import copy
import os
import pathlib
import re
import shlex
import subprocess
import threading

import pytest
import yaml

from support import amqp
from support.bellhop import ROOT, Bellhop, binary
from support.image import Image
from support.rabbitmq import SCRIPTS, wait_until

COMPOSE = ROOT / "deploy" / "compose.yaml"
IMAGE = Image()


def as_docker_compose_reads_it(file):
    done = subprocess.run(["docker-compose", "-f", str(file), "config"], capture_output=True, text=True,
                          env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"}, timeout=60)
    assert done.returncode == 0, done.stderr
    return yaml.safe_load(done.stdout)


@pytest.fixture(scope="module")
def stack():
    return as_docker_compose_reads_it(COMPOSE)


def words(command):
    """A command in either form."""
    return shlex.split(command) if isinstance(command, str) else list(command)


def seconds(text):
    return int(re.fullmatch(r"(\d+)s", text)[1])


def mounts(service):
    """{path in the container: (volume or path, may it write)}"""
    found = {}
    for text in service.get("volumes", []):
        source, target, *mode = text.split(":")
        found[target] = (source, mode != ["ro"])
    return found


def holder(path, places):
    """The innermost of the places that holds the path."""
    return max((place for place in places if pathlib.PurePath(path).is_relative_to(place)), key=len, default=None)


class Sidecar:
    """The service `bellhop` of a stack, and what its configuration means."""

    def __init__(self, stack):
        self.stack, self.service = stack, stack["services"]["bellhop"]
        self.mounts = mounts(self.service)
        self.command = words(self.service.get("entrypoint", IMAGE.entrypoint)) + words(self.service.get("command", IMAGE.command))
        self.env = {"PATH": os.environ["PATH"], **{key: str(value) for key, value in self.service.get("environment", {}).items()}}
        self.config = self.command[-1]  # as the container sees it
        self.file = pathlib.Path(self.mounts.get(self.config, ("/nowhere", False))[0])
        done = subprocess.run([binary(), "check", str(self.file)], env=self.env, capture_output=True, text=True, timeout=60)
        self.refusal, self.meaning = done.stderr, done.stdout

    def said(self, pattern):
        return re.search(pattern, self.meaning, re.M)[1]

    @property
    def socket(self):
        return self.said(r"^listen +unix socket '(.+?)'")

    @property
    def admin_socket(self):
        return self.said(r"^admin +unix socket '(.+?)'")

    @property
    def health(self):
        test = self.service["healthcheck"]["test"]
        assert test[0] == "CMD", "the image has no shell"
        return test[1:]


def misfits(stack):
    """What does not fit, one line each; what can be told without running it."""
    sidecar = Sidecar(stack)
    service = sidecar.service
    if service.get("entrypoint") or sidecar.command[:3] != [*IMAGE.entrypoint, "run", "--config"]:
        yield f"the command is not the image's: {sidecar.command}"
    if sidecar.refusal or not sidecar.meaning:
        yield f"bellhop refuses its configuration {sidecar.config}: {sidecar.refusal}"
        return
    if sidecar.mounts[sidecar.config][1]:
        yield "bellhop may write its configuration"
    if "user" in service and service["user"] != "{}:{}".format(*IMAGE.user):
        yield f"user {service['user']}: the image's folders are {IMAGE.user}'s"
    if not service.get("read_only") or service.get("cap_drop") != ["ALL"] or "no-new-privileges:true" not in service.get("security_opt", []):
        yield "bellhop may do more than it needs"

    temporary = [text.split(":")[0] for text in service.get("tmpfs", [])]
    written = [str(pathlib.PurePath(sidecar.socket).parent), str(pathlib.PurePath(sidecar.admin_socket).parent),
               service.get("environment", {}).get("TMPDIR", "/tmp"), *re.findall(r"filesystem '(.+?)'", sidecar.meaning)]
    for path in written:
        place = holder(path, [*sidecar.mounts, *temporary])
        if place is None or place in sidecar.mounts and not sidecar.mounts[place][1]:
            yield f"{path} cannot be written to"
        elif place in sidecar.mounts and place not in IMAGE.own_folders:
            yield f"the volume at {place} does not become the user's: the image has no such folder of its own"
    for path in re.findall(r"filesystem '(.+?)'", sidecar.meaning):
        if holder(path, sidecar.mounts) is None:
            yield f"the store {path} is gone with the container"

    drain = seconds(sidecar.said(r"drain_timeout (\d+s)"))
    if seconds(service.get("stop_grace_period", "10s")) <= drain:
        yield f"it is killed before its drain of {drain} s has ended"
    broker = re.search(r"^broker +amqp://([^:/ ]+)", sidecar.meaning, re.M)[1]
    if broker not in stack["services"]:
        yield f"no service is the broker {broker}"
    elif service.get("depends_on", {}).get(broker) != {"condition": "service_healthy"}:
        yield "bellhop does not wait for its broker, or is not stopped before it"
    else:
        given = stack["services"][broker]["environment"]
        if given["RABBITMQ_DEFAULT_USER"] != sidecar.said(r"as user '(.+?)'") or \
                given["RABBITMQ_DEFAULT_PASS"] != service["environment"]["RABBITMQ_PASSWORD"]:
            yield "the broker has other credentials"

    volume = sidecar.mounts.get(str(pathlib.PurePath(sidecar.socket).parent), (None,))[0]
    clients = {name: each for name, each in stack["services"].items() if name != "bellhop" and volume in [m[0] for m in mounts(each).values()]}
    if not clients:
        yield "no service has the socket's volume"
    for name, client in clients.items():
        if str(IMAGE.user[1]) not in client.get("group_add", []):
            yield f"{name} is not in the socket's group"
        if client.get("depends_on", {}).get("bellhop") != {"condition": "service_healthy"}:
            yield f"{name} does not wait for bellhop"
        place = next(path for path, (source, _) in mounts(client).items() if source == volume)
        if client["environment"]["BELLHOP_SOCKET"] != f"{place}/{pathlib.PurePath(sidecar.socket).name}":
            yield f"{name} looks for the socket elsewhere"


class Run:
    """bellhop with the stack's command and configuration, in front of a node and with its folders in a temporary one."""

    def __init__(self, sidecar, node, folder):
        self.sidecar, self.folder = sidecar, folder
        (folder / "claims").mkdir()
        text = sidecar.file.read_text().replace("amqp://rabbitmq:5672", node.url).replace("/var/lib/bellhop/claims", f"{folder}/claims")
        # The socket's place is the default one, which the test must not take.
        text += f"\nlisten: [{{ unix: {folder}/{pathlib.PurePath(sidecar.socket).name} }}]\n"
        self.daemon = Bellhop(text, folder=folder, env={**sidecar.env, "RABBITMQ_USER": "guest", "RABBITMQ_PASSWORD": "guest"})

    def health(self):
        """The exit code of the stack's health command, with its paths here."""
        _, *command = self.sidecar.health
        command = [re.sub(r"^/run/bellhop(?=/)", str(self.folder), word) for word in command]
        command = [re.sub(rf"^{self.sidecar.config}$", str(self.daemon.config_path), word) for word in command]
        if not {"--socket", "--config"} & set(command):
            command += ["--socket", str(self.folder / pathlib.PurePath(self.sidecar.admin_socket).name)]
        return subprocess.run([binary(), *command], capture_output=True, timeout=30,
                              env={**self.sidecar.env, "RABBITMQ_USER": "guest", "RABBITMQ_PASSWORD": "guest"}).returncode


@pytest.fixture
def run(stack, rabbit, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    started = Run(Sidecar(stack), rabbit, folder)
    yield started
    started.daemon.stop()


def test_everything_in_it_fits_the_program_and_the_image(stack):
    assert list(misfits(stack)) == []
    sidecar = Sidecar(stack)
    assert sidecar.health == IMAGE.health
    assert sidecar.health[0] == IMAGE.entrypoint[0]


def test_the_commands_in_its_comments_are_ones_that_bellhop_has():
    commands = re.findall(r"exec bellhop /usr/bin/bellhop (.+)", COMPOSE.read_text())
    assert commands
    for command in commands:
        name = words(command)[0]
        assert re.search(rf"^  {name} ", subprocess.run([binary(), "--help"], capture_output=True, text=True).stdout, re.M), name


def test_bellhop_is_healthy_with_its_configuration_and_no_more_when_it_has_ended(run):
    assert run.health() == 0
    run.daemon.sigterm()
    run.daemon.wait()
    assert run.health() == 1


def test_rabbitmq_is_healthy_by_a_command_that_it_has(stack, rabbit):
    word, program, *arguments = stack["services"]["rabbitmq"]["healthcheck"]["test"]
    assert word == "CMD"
    port = str(rabbit.port)
    command = [str(SCRIPTS / program), *(port if argument == "5672" else argument for argument in arguments)]
    assert port in command
    done = subprocess.run(command, env=rabbit.env(), capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_service_sends_its_orders_through_both_steps_and_ends_when_it_is_told(stack, run, rabbit):
    client = amqp.connect(rabbit.address)
    channel = client.channel()
    queues = ["fulfilment.validate", "fulfilment.dispatch"]
    service = stack["services"]["orders"]
    assert (ROOT / "deploy" / service["build"]["dockerfile"]).read_text().splitlines()[-1] == 'CMD ["python", "/app/orders.py"]'
    process = subprocess.Popen(["/usr/bin/python3", "-B", str(ROOT / "deploy" / "compose" / "orders.py")], stdout=subprocess.PIPE, text=True,
                               env={**os.environ, **service["environment"], "BELLHOP_SOCKET": run.daemon.socket, "ORDERS_SECONDS": "0.1",
                                    "PYTHONPATH": str(ROOT / "deploy")})
    lines = []
    reader = threading.Thread(target=lambda: lines.extend(process.stdout), daemon=True)
    reader.start()

    def finished():
        assert process.poll() is None, lines
        return [line for line in lines if line.startswith("dispatch: 1048576 bytes")]
    try:
        wait_until(lambda: len(finished()) >= 3, 30, "three orders that were dispatched")
        sent, validated, dispatched = ([line.split()[-1] for line in lines if line.startswith(word)] for word in ("sent:", "validate:", "dispatch:"))
        assert dispatched == validated[:len(dispatched)] == sent[:len(dispatched)]
        process.terminate()
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()
        reader.join(10)
        for queue in queues:
            channel.call("queue.delete", queue=queue)
        for exchange in ("fulfilment", "orders"):
            channel.call("exchange.delete", exchange=exchange)
        client.abort()


@pytest.mark.parametrize("text, given, size", [("a scan", None, 6), ("-", bytes(3_000_000), 3_000_000)], ids=["a word", "input"])
def test_one_message_is_published_by_hand(run, rabbit, name, text, given, size):
    done = subprocess.run(["/usr/bin/python3", "-B", ROOT / "deploy" / "publish.py", run.daemon.socket, name(), text], input=given,
                          capture_output=True, timeout=60)
    assert done.stdout.decode() == f"confirmed: {size} bytes in queue {name()}\n", done.stderr
    client = amqp.connect(run.daemon.socket)
    channel = client.channel()
    assert channel.get_wait(name()).body == (given or text.encode())
    channel.call("queue.delete", queue=name())
    client.close()


def change(*path, to):
    def apply(stack):
        place = stack["services"]
        for key in path[:-1]:
            place = place[key]
        if to is None:
            del place[path[-1]]
        else:
            place[path[-1]] = to
    return apply


@pytest.mark.parametrize("mutation, complaint", [
    (change("bellhop", "command", to=["serve", "--config", "/etc/bellhop/bellhop.yaml"]), "the command is not"),
    (change("bellhop", "command", to=["run", "--config", "/etc/bellhop.yaml"]), "refuses its configuration"),
    (change("bellhop", "environment", to={}), "refuses its configuration"),
    (change("bellhop", "environment", "TMPDIR", to="/var/tmp"), "/var/tmp cannot be written to"),
    (change("bellhop", "user", to="1000:1000"), "user 1000:1000"),
    (change("bellhop", "read_only", to=None), "more than it needs"),
    (change("bellhop", "cap_drop", to=None), "more than it needs"),
    (change("bellhop", "tmpfs", to=None), "/tmp cannot be written to"),
    (change("bellhop", "volumes", 1, to="run:/run/other"), "/run/bellhop cannot be written to"),
    (change("bellhop", "volumes", 1, to="run:/run/bellhop:ro"), "/run/bellhop cannot be written to"),
    (change("bellhop", "volumes", 2, to="claims:/var/lib"), "the volume at /var/lib does not become"),
    (change("bellhop", "stop_grace_period", to="20s"), "killed before its drain"),
    (change("bellhop", "stop_grace_period", to=None), "killed before its drain"),
    (change("bellhop", "depends_on", to={}), "does not wait for its broker"),
    (change("rabbitmq", "environment", "RABBITMQ_DEFAULT_PASS", to="another"), "other credentials"),
    (change("orders", "group_add", to=["1000"]), "not in the socket's group"),
    (change("orders", "depends_on", "bellhop", to={"condition": "service_started"}), "does not wait for bellhop"),
    (change("orders", "volumes", 0, to="run:/var/run/bellhop:ro"), "looks for the socket elsewhere"),
])
def test_what_does_not_fit_is_found_out(stack, mutation, complaint):
    wrong = copy.deepcopy(stack)
    mutation(wrong)
    assert [line for line in misfits(wrong) if complaint in line]


@pytest.mark.parametrize("probe", [["healthy"], ["health", "--live"], ["health", "--socket", "/run/bellhop/admin"],
                                   ["health", "--config", "/etc/bellhop.yaml"]], ids=" ".join)
def test_a_probe_that_bellhop_does_not_have_fails(stack, run, probe):
    wrong = copy.deepcopy(stack)
    wrong["services"]["bellhop"]["healthcheck"]["test"] = ["CMD", "/usr/bin/bellhop", *probe]
    run.sidecar = Sidecar(wrong)
    assert run.health() != 0
