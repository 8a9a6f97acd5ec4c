"""Pipelines on a broker that has other queues and exchanges under their names: what bellhop does, and what `bellhop check --broker` says."""

import json
import re
import shlex

import pytest

from support.bellhop import Bellhop, run_cli
from support.rabbitmq import free_port, wait_until

LOGIN = {"username": "guest", "password": "guest"}
QUORUM = {"x-queue-type": "quorum"}


@pytest.fixture
def pipeline(broker, name):
    """A pipeline's name; what was declared for it is deleted at the end."""
    pipeline = name("line")
    yield pipeline
    channel = broker.channel()
    for step in ("one", "two"):
        for suffix in ("", ".dlq", ".parked"):
            channel.call("queue.delete", queue=f"{pipeline}.{step}{suffix}")
    channel.call("exchange.delete", exchange=pipeline)


def config(pipeline, declare=True, broker=LOGIN, **more):
    return {"broker": broker, "pipelines": {pipeline: {"steps": ["one", "two"], "declare": declare, **more}}}


def dead_letter(queue):
    return {"x-dead-letter-exchange": "acemq.dlx", "x-dead-letter-routing-key": queue + ".dlq"}


@pytest.fixture
def check(rabbit, tmp_path):
    """Runs `bellhop check --broker` on a configuration; what it printed below `at broker`, and its exit code."""
    def check(config):
        config = {**config, "broker": {"url": rabbit.url, **config["broker"]}}
        file = Bellhop(config, folder=tmp_path / "check", start=False).config_path
        done = run_cli("check", "--broker", file)
        assert done.stderr == ""
        return done.stdout.partition("at broker ")[2].lstrip(), done.returncode
    return check


def apply(rabbit, text):
    """Runs the rabbitmqctl lines of a text as an operator's shell would."""
    lines = re.findall(r"rabbitmqctl (set_policy .*)", text)
    for line in lines:
        rabbit.ctl(*shlex.split(line))
    return [shlex.split(line) for line in lines]


def reject_one(channel, queue):
    channel.publish("", queue, b"rejected")
    got = channel.get_wait(queue, no_ack=False)
    channel.send("basic.reject", delivery_tag=got.delivery_tag, requeue=False)


def test_a_pipeline_without_dead_letter_is_what_the_libraries_declare(bellhop, broker, pipeline):
    bellhop(config(pipeline, dead_letter=False)).wait_log(r"pipelines declared .*items=17 refused=0 different=0")
    channel = broker.channel()
    for step in ("one", "two"):
        channel.call("queue.declare", queue=f"{pipeline}.{step}", durable=True, arguments=QUORUM)
        channel.call("queue.declare", queue=f"{pipeline}.{step}.dlq", durable=True)
        channel.call("queue.declare", queue=f"{pipeline}.{step}.parked", durable=True)
        channel.publish(pipeline, step, step.encode())
        assert channel.get_wait(f"{pipeline}.{step}").body == step.encode()


@pytest.mark.parametrize("arguments, differences", [
    (QUORUM, "no x-dead-letter-exchange .*, no x-dead-letter-routing-key .*"),
    ({}, "no x-dead-letter-exchange .*, no x-dead-letter-routing-key .*x-queue-type.*"),
    ({**QUORUM, "x-max-length": 3, "x-delivery-limit": 7}, "x-max-length '3' \\(bellhop declares none\\)"),
], ids=["quorum", "classic", "more"])
def test_a_queue_that_is_there_is_used_and_one_warning_says_how_to_dead_letter_it(rabbit, bellhop, broker, pipeline, arguments, differences):
    queue = f"{pipeline}.one"
    channel = broker.channel()
    channel.call("queue.declare", queue=queue, durable=True, arguments=arguments)
    daemon = bellhop({**config(pipeline), "log": {"format": "json"}})
    daemon.wait_log("pipelines declared.*\"items\":16,\"refused\":0,\"different\":1")
    warning, = [line for line in map(json.loads, daemon.log.splitlines()) if "exists with other arguments" in line["message"]]
    assert warning["queue"] == queue and warning["level"] == "warn"
    assert re.search(differences, warning["differences"])
    channel.publish(pipeline, "one", b"bound all the same")
    assert channel.get_wait(queue).body == b"bound all the same"

    assert len(apply(rabbit, warning["advice"])) == 1
    try:
        def dead_lettered():
            reject_one(channel, queue)
            return channel.get(queue + ".dlq")
        assert wait_until(dead_lettered, what="a rejected message in the dead-letter queue").body == b"rejected"
    finally:
        rabbit.ctl("clear_policy", "dead-letter " + queue)


def test_check_prints_the_line_for_each_queue_and_changes_nothing(rabbit, broker, pipeline, check):
    channel = broker.channel()
    channel.call("exchange.declare", exchange=pipeline, type="topic", durable=True)
    channel.call("queue.declare", queue=f"{pipeline}.one", durable=True, arguments=QUORUM)
    said, code = check(config(pipeline))
    assert code == 1
    assert f"exchange {pipeline}: type 'topic' (bellhop declares 'direct')\n" in said
    assert f"queue {pipeline}.one: no x-dead-letter-exchange (bellhop declares 'acemq.dlx')" in said
    assert f"queue {pipeline}.two: not there yet, bellhop declares it when it starts\n" in said
    assert " different or missing\n" in said
    [words] = [shlex.split(line) for line in re.findall("rabbitmqctl (set_policy .*)", said)]
    assert words[:6] == ["set_policy", "-p", "/", "--apply-to", "queues", f"dead-letter {pipeline}.one"]
    assert re.fullmatch(words[6], f"{pipeline}.one") and not re.fullmatch(words[6], f"{pipeline}xone")
    assert json.loads(words[7]) == {"dead-letter-exchange": "acemq.dlx", "dead-letter-routing-key": f"{pipeline}.one.dlq"}
    for absent in (".two", ".one.dlq", ".two.parked"):
        looking = broker.channel()
        looking.send("queue.declare", queue=pipeline + absent, passive=True)
        looking.expect_close(404)
    # With what the libraries declare there is nothing to say.
    said, code = check(config(pipeline, dead_letter=False))
    assert f"queue {pipeline}.one:" not in said and "set_policy" not in said


def test_check_of_what_bellhop_declared_finds_nothing(bellhop, pipeline, check):
    said, code = check(config(pipeline))
    assert code == 0 and "5 that bellhop will declare" not in said and f"queue {pipeline}.one: not there yet" in said
    bellhop(config(pipeline)).wait_log("pipelines declared")
    said, code = check(config(pipeline))
    assert code == 0 and "9 exchanges and queues as they should be, 0 that bellhop will declare, 0 different" in said
    said, code = check(config(pipeline, dead_letter=False))
    assert code == 1 and "the pipeline's `dead_letter: true` declares it like this" in said


def test_check_of_queues_whose_own_arguments_win(broker, pipeline, check):
    channel = broker.channel()
    queue = f"{pipeline}.one"
    channel.call("queue.declare", queue=queue, durable=True, arguments={**QUORUM, **dead_letter(queue), "x-dead-letter-exchange": "mine"})
    said, code = check(config(pipeline))
    assert code == 1 and "x-dead-letter-exchange 'mine' (bellhop declares 'acemq.dlx')" in said
    assert "win over any policy" in said and "set_policy" not in said


def test_check_of_a_pipeline_that_somebody_else_declares(broker, pipeline, check):
    said, code = check(config(pipeline, declare=False))
    assert code == 1 and f"queue {pipeline}.one: not there, and pipelines.{pipeline}.declare is false" in said
    channel = broker.channel()
    for step in ("one", "two"):
        channel.call("queue.declare", queue=f"{pipeline}.{step}", durable=True)
    said, code = check(config(pipeline, declare=False))
    assert code == 0 and f"exchange {pipeline}: not there" in said and "a hop goes to the step's queue directly" in said


def test_check_of_a_broker_that_cannot_be_asked(rabbit, pipeline, check):
    said, code = check(config(pipeline, broker={}))
    assert code == 1 and said.startswith("cannot be asked: the file has no credentials for it")
    said, code = check(config(pipeline, broker={**LOGIN, "password": "wrong"}))
    assert code == 1 and "cannot log in as user 'guest' to vhost '/'" in said and "wrong" not in said
    said, code = check(config(pipeline, broker={**LOGIN, "vhost_map": {"/": "nowhere"}}))
    assert code == 1 and "to vhost 'nowhere'" in said
    dead = f"{rabbit.url.partition(':')[0]}://127.0.0.1:{free_port()}"
    said, code = check(config(pipeline, broker={**LOGIN, "url": dead}))
    assert code == 1 and "cannot be reached: " in said
    # The next one of the list is asked.
    said, code = check(config(pipeline, broker={**LOGIN, "url": [dead, rabbit.url]}))
    assert code == 0 and "cannot be reached: " in said and "0 different or missing" in said


def test_a_wrong_file_is_told_before_the_broker_is_asked(tmp_path):
    file = tmp_path / "bellhop.yaml"
    file.write_text("broker: { url: amqp://127.0.0.1:1 }\npipelines: { p: { steps: [a], dead_letter: perhaps } }\n")
    done = run_cli("check", "--broker", file)
    assert done.returncode == 2 and done.stdout == ""
    assert "pipelines.p.dead_letter: 'perhaps' is neither, allowed: true, false" in done.stderr
