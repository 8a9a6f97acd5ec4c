"""Retention of a filesystem store: what is past its age goes, by one sidecar at a time, and never anything younger."""

import os
import time

from support.bellhop import run_cli
from support.claims import Consumer, Side, claim, put_object
from support.rabbitmq import wait_until

HOUR = 3600


def aged(folder, payload, seconds):
    key = put_object(folder, payload)
    then = time.time() - seconds
    os.utime(folder / key, (then, then))
    return key


def with_retention(bellhop, folder, retention="1h", **more):
    return bellhop({"stores": {"claims": {"type": "filesystem", "path": str(folder), "retention": retention}}, **more})


def test_of_two_sidecars_on_a_directory_one_removes_what_is_old(bellhop, tmp_path):
    folder = tmp_path / "claims"
    folder.mkdir()
    old = [aged(folder, b"old", 2 * HOUR) for _ in range(20)]
    young = aged(folder, b"young", HOUR // 2)
    first, second = with_retention(bellhop, folder), with_retention(bellhop, folder)
    wait_until(lambda: not any((folder / key).exists() for key in old))
    assert (folder / young).exists()
    wait_until(lambda: "retention store=claims removed=20 removed_bytes=60" in first.log + second.log)
    assert (first.log + second.log).count("retention store=") == 1


def test_a_message_whose_object_is_past_its_age_is_parked_and_a_younger_one_is_delivered(bellhop, broker, name, tmp_path):
    folder = tmp_path / "claims"
    folder.mkdir()
    side = Side(broker, name())
    old, young = aged(folder, b"old", 2 * HOUR), aged(folder, b"young", HOUR // 2)
    daemon = with_retention(bellhop, folder)
    wait_until(lambda: not (folder / old).exists())
    side.send(claim(old), claim(young))
    assert Consumer(daemon, side.queue).deliver().body == b"young"
    parked = side.take()
    assert parked.body == claim(old) and "retention" in parked.headers["x-acemq-error"]


def test_a_pipeline_that_outlives_its_payloads_is_a_warning_at_the_start(bellhop, tmp_path, name):
    folder = tmp_path / "claims"
    folder.mkdir()
    pipeline = name("pipe").replace("_", "-")
    daemon = with_retention(bellhop, folder, "30d", pipelines={pipeline: {"steps": ["a"], "declare": True}})
    daemon.wait_log(f"the queues of pipeline '{pipeline}' hold messages without a time limit, and store 'claims' removes their payloads after 30d")


def test_sweep_does_now_what_retention_does_every_hour(tmp_path):
    folder = tmp_path / "claims"
    folder.mkdir()
    (folder / ".bellhop-store").touch()
    old, young = aged(folder, b"old", 2 * HOUR), aged(folder, b"young", HOUR // 2)
    config = tmp_path / "sweep.yaml"
    config.write_text(f"broker: {{ url: amqp://localhost }}\nstores: {{ claims: {{ type: filesystem, path: {folder}, retention: 1h }} }}\n")
    dry = run_cli("sweep", "claims", "--config", config, "--dry-run")
    assert (dry.returncode, dry.stdout) == (
        0, f"store 'claims', {folder}: 1 objects older than 1h (3 bytes) would be removed, 0 unfinished files would be removed, 1 objects left\n")
    assert (folder / old).exists()
    done = run_cli("sweep", "claims", "--config", config)
    assert (done.returncode, done.stdout) == (
        0, f"store 'claims', {folder}: 1 objects older than 1h (3 bytes) removed, 0 unfinished files removed, 1 objects left\n")
    assert not (folder / old).exists() and (folder / young).exists()
    assert run_cli("sweep", "claims", "--config", config, "--older-than", "20m").stdout.startswith(f"store 'claims', {folder}: 1 objects older than 20m")
    (folder / ".bellhop-store").unlink()
    gone = run_cli("sweep", "claims", "--config", config)
    assert gone.returncode == 1 and "marker gone" in gone.stderr


def test_sweep_without_an_age_removes_no_object(tmp_path):
    folder = tmp_path / "claims"
    folder.mkdir()
    (folder / ".bellhop-store").touch()
    key = aged(folder, b"old", 1000 * HOUR)
    config = tmp_path / "sweep.yaml"
    config.write_text(f"broker: {{ url: amqp://localhost }}\nstores: {{ claims: {{ type: filesystem, path: {folder} }} }}\n")
    done = run_cli("sweep", "claims", "--config", config)
    assert done.returncode == 0 and "no retention and no --older-than" in done.stdout
    assert (folder / key).exists()
