"""The pods of deploy/kubernetes run, with the manifests' own commands, users, groups, mounts and probes, in front of a real RabbitMQ: how they
start, that the example's programs work, that a changed ConfigMap is read, and in which order they end."""

import copy
import json
import os
import re
import signal
import uuid

import pytest

from manifests import MODULES, one, rendered
from pod import Image, Pod
from support import amqp
from support.admin import Admin
from support.bellhop import SANITIZER, binary
from support.documents import ROOT
from support.publishing import count
from support.rabbitmq import free_port, wait_until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give each container its own user and mounts")

PASSWORD = "for the pods alone"
EXAMPLE = ROOT / "deploy" / "kubernetes" / "example" / "service"
SYSTEM = {path: path for path in ("/usr/lib", "/usr/lib64") if os.path.isdir(path)}
LATE = {"name": "late", "image": "late", "command": ["/usr/bin/python3", "-B", "/service/late_service.py"],
        "volumeMounts": [{"name": "bellhop-run", "mountPath": "/run/bellhop"}],
        "securityContext": {"runAsUser": 4711, "runAsGroup": 4711, "readOnlyRootFilesystem": True}}


def images():
    """bellhop's image has the program and libraries, where the Dockerfile puts them. Those of the services have this host's programs."""
    service = {"/usr": "/usr", "/etc": "/etc", "/node_modules": MODULES}
    return {"bellhop": Image({**SYSTEM, "/usr/bin/bellhop": binary(), "/etc/hosts": "/etc/hosts"}, ["/usr/bin/bellhop"]),
            "orders": Image({**service, "/service": EXAMPLE}, folder="/service"),
            "late": Image({**service, "/service/late_service.py": ROOT / "test/deploy/late_service.py",
                           "/service/pika_unix.py": ROOT / "deploy/pika_unix.py"})}


@pytest.fixture(scope="module")
def vhost(rabbit):
    """The pods' own: the example's queues have names that other tests use too."""
    name = f"pods-{uuid.uuid4().hex[:8]}"
    rabbit.add_vhost(name)
    rabbit.add_user(name, PASSWORD, vhost=name)
    rabbit.set_permissions("guest", vhost=name)
    yield name
    rabbit.delete_user(name)
    rabbit.delete_vhost(name)


@pytest.fixture
def broker(rabbit, vhost):
    client = amqp.connect(rabbit.address, vhost=vhost)
    yield client
    client.abort()


@pytest.fixture
def pods(rabbit, vhost, broker, tmp_path):
    """pods(document) -> a pod that is not started. Its broker is the test's own, and its port for metrics a free one."""
    made = []

    def make(document, url=f"{rabbit.url}/{vhost}"):
        documents = copy.deepcopy(rendered("example"))
        one(documents, "Secret")["stringData"].update(username=vhost, password=PASSWORD)
        config = one(documents, "ConfigMap")
        port = free_port()
        text = config["data"]["bellhop.yaml"].replace("amqp://rabbitmq:5672", url).replace("0.0.0.0:9419", f"127.0.0.1:{port}")
        assert url in text and str(port) in text
        config["data"]["bellhop.yaml"] = text
        folder = tmp_path / str(len(made))
        folder.mkdir()
        made.append(Pod(document, documents, folder, images()))
        made[-1].port, made[-1].config = port, text
        return made[-1]

    yield make
    for pod in made:
        pod.kill()
        assert not SANITIZER.search(pod["bellhop"].log), pod["bellhop"].log[-6000:]
    for queue in ("fulfilment.validate", "fulfilment.validate.parked"):  # for the next test
        broker.channel().call("queue.delete", queue=queue)


def metric(pod, name, labels=""):
    return Admin(("127.0.0.1", pod.port)).metrics()[name, labels]


def test_the_example_publishes_and_works_and_ends(pods, broker):
    pod = pods(one(rendered("example"), "Deployment", "orders")).start()
    pod.wait_log("publisher", "published 2")
    pod.wait_log("worker", "validated 200000 bytes")
    assert metric(pod, "bellhop_offloads_total", "result=ok,store=claims") >= 2, "its claims are on the volume"
    assert len([each for each in pod.volumes["claims"].iterdir() if not each.name.startswith(".")]) >= 2
    codes = pod.terminate()
    assert codes == {"publisher": 0, "worker": 0, "bellhop": 0}, pod["worker"].log + pod["bellhop"].log
    assert pod["worker"].log.count("validated") + count(broker.channel(), "fulfilment.validate") == pod["publisher"].log.count("published")


def test_check_has_nothing_to_say_in_the_pod(pods):
    pod = pods(one(rendered("example"), "Deployment", "orders")).start()
    done = pod["bellhop"].run("/usr/bin/bellhop", "check", pod["bellhop"].spec["args"][-1])
    assert (done.returncode, done.stderr) == (0, "")
    assert pod["bellhop"].run("/usr/bin/bellhop", "health").returncode == 0
    assert pod["bellhop"].run("/usr/bin/bellhop", "health", "--ready").returncode in (0, 1)


def test_a_broker_that_is_away_blocks_no_start(pods):
    pod = pods(one(rendered("example"), "Deployment", "orders"), url=f"amqp://127.0.0.1:{free_port()}").start()
    assert pod["bellhop"].run("/usr/bin/bellhop", "health").returncode == 0
    assert pod["bellhop"].run("/usr/bin/bellhop", "health", "--ready").returncode == 1
    assert metric(pod, "bellhop_broker_up") == 0


def test_a_changed_config_map_is_read(pods):
    pod = pods(one(rendered("example"), "Deployment", "orders")).start()
    pod.write("bellhop-config", {"bellhop.yaml": pod.config.replace("threshold: 64KiB", "threshold: 1GiB")})
    wait_until(lambda: metric(pod, "bellhop_config_generation") == 2, 20, "the changed configuration")
    before = metric(pod, "bellhop_offloads_total", "result=ok,store=claims")
    published = pod["publisher"].log.count("published")
    pod.wait_log("publisher", f"published {published + 2}")
    assert metric(pod, "bellhop_offloads_total", "result=ok,store=claims") == before, "bodies of 200 kB are below the threshold now"
    assert set(pod.terminate().values()) == {0}


def test_a_bellhop_that_was_killed_is_started_again_beside_the_others(pods):
    pod = pods(one(rendered("example"), "Deployment", "orders")).start()
    pod.wait_log("publisher", "published 1")
    pod["bellhop"].process.kill()
    wait_until(lambda: pod["publisher"].process.poll() is not None, 20, "the end of the publisher, which has lost its connection")
    for each in (pod["bellhop"], pod["publisher"]):  # the kubelet starts each again
        each.process.wait()
        each.start()
        each.wait_started()
    published = pod["publisher"].log.count("published")
    wait_until(lambda: pod["publisher"].log.count("published") > published, 20, "another message")


def with_late_service(document, queue, late_s):
    """The same pod with another service: one that works for `late_s` seconds after SIGTERM."""
    document = copy.deepcopy(document)
    environment = [{"name": "LATE_S", "value": str(late_s)}, {"name": "QUEUE", "value": queue}]
    document["spec"]["template"]["spec"]["containers"] = [{**LATE, "env": environment}]
    return document


@pytest.mark.parametrize("kustomization, kind, late_s", [("example", "Deployment", 10), ("statefulset", "StatefulSet", 1)])
def test_the_service_ends_first_and_loses_nothing(pods, broker, name, kustomization, kind, late_s):
    queue = name("late")
    workload = {"Deployment": "orders", "StatefulSet": "ledger"}[kind]
    pod = pods(with_late_service(one(rendered(kustomization), kind, workload), queue, late_s)).start()
    pod.wait_log("late", "working")
    wait_until(lambda: metric(pod, "bellhop_offloads_total", "result=ok,store=claims") >= 5, 20, "some messages")
    codes = pod.terminate()
    assert codes == {"late": 0, "bellhop": 0}, pod["late"].log[-3000:] + pod["bellhop"].log[-3000:]
    done = json.loads(pod["late"].log.splitlines()[-1])
    assert done["late"] > 10 and done["wrong"] == 0
    assert done["taken"] == done["published"]
    channel = broker.channel()
    assert count(channel, queue) == 0
    channel.call("queue.delete", queue=queue)


def test_without_the_order_the_service_would_lose_its_broker(pods, broker, name):
    """What a preStop hook, or an ordinary container in place of the sidecar, would do: bellhop is told to end together with the service."""
    queue = name("cut")
    pod = pods(with_late_service(one(rendered("example"), "Deployment", "orders"), queue, 10)).start()
    pod.wait_log("late", "working")
    for each in (pod["late"], pod["bellhop"]):
        each.process.send_signal(signal.SIGTERM)
    wait_until(lambda: pod["late"].process.poll() is not None, 30, "the end of the service")
    assert pod["late"].process.returncode != 0
    assert re.search(r"ConnectionClosed|320|AMQPConnectionError|StreamLost", pod["late"].log)
    broker.channel().call("queue.delete", queue=queue)


def test_a_job_ends_with_its_container(pods, broker):
    pod = pods(one(rendered("job"), "Job", "import")).start()
    codes = pod.wait_completed(60)
    assert codes == {"import": 0, "bellhop": 0}, pod["import"].log[-3000:] + pod["bellhop"].log[-3000:]
    assert "published 100" in pod["import"].log
    assert count(broker.channel(), "fulfilment.validate") == 100
