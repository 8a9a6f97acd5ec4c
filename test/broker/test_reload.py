"""The configuration is read again while bellhop runs: by SIGHUP, by `bellhop reload`, or because a file changed (admin.watch)."""

import json
import os
import pathlib
import signal
import subprocess
import threading
import time

import pytest

from support import amqp
from support.admin import Admin
from support.bellhop import run_cli
from support.certificates import Authority, shared_authority
from support.claims import Consumer, Side, body_of, claim, put_object
from support.publishing import count, declare, publisher
from support.rabbitmq import TIME_FACTOR, free_port, wait_until


def rewrite(daemon, **sections):
    """Replaces sections of the daemon's file, as an editor does: a new file takes the old one's name. None takes a section away."""
    config = {**json.loads(daemon.config_path.read_text()), **sections}
    new = daemon.config_path.with_suffix(".new")
    new.write_text(json.dumps({key: value for key, value in config.items() if value is not None}, indent=1))
    new.rename(daemon.config_path)


def reload(daemon):
    """`bellhop reload`: (exit code, what it said)."""
    done = run_cli("reload", "--socket", daemon.admin_socket)
    return done.returncode, done.stdout + done.stderr


def generation(daemon):
    return Admin(daemon.admin_socket).status()["config"]["generation"]


def route(name, to, **more):
    return [{"name": name, "match": {"exchange": "", "routing_key": "in"}, "to": {"exchange": "", "routing_key": to}, **more}]


@pytest.fixture
def two(broker, name):
    """Two queues, and a channel that sees them."""
    a, b = name("a"), name("b")
    channel = declare(broker, a)
    channel.declare(b)
    return channel, a, b


# -- asking for it


def test_sighup_takes_the_new_routes_and_closes_nobody(bellhop, two):
    channel, a, b = two
    daemon = bellhop({"routes": route("r", a)})
    up = publisher(daemon)
    up.channel.publish("", "in", b"1")
    up.channel.confirms(1)
    rewrite(daemon, routes=route("r", b))
    daemon.process.send_signal(signal.SIGHUP)
    daemon.wait_log("configuration reloaded number=2")
    up.channel.publish("", "in", b"2")
    up.channel.confirms(2)
    assert (channel.get_wait(a).body, channel.get_wait(b).body) == (b"1", b"2")


def test_the_command_waits_and_says_what_is_in_use(bellhop, two):
    _, a, b = two
    daemon = bellhop({"routes": route("r", a)})
    assert reload(daemon) == (0, "configuration number 2 is in use\n")
    rewrite(daemon, routes=route("r", b))
    done = run_cli("reload", "--config", daemon.config_path, "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["generation"] == 3
    assert run_cli("reload", "--help").returncode == 0
    daemon.sigterm()
    daemon.wait()
    code, said = reload(daemon)
    assert code == 1 and "there is no admin socket" in said


def test_a_bad_file_changes_nothing_and_says_where_it_is_bad(bellhop, two):
    channel, a, b = two
    daemon = bellhop({"routes": route("r", a)})
    admin = Admin(daemon.admin_socket)
    rewrite(daemon, routes=[{"name": "r", "match": {"exchnge": ""}}])
    code, said = reload(daemon)
    assert code == 2
    assert f"{daemon.config_path}:" in said and "routes[0].match" in said and "exchnge" in said
    assert said.endswith("bellhop: not reloaded: configuration number 1 stays in use\n")
    assert "exchnge" in daemon.log
    metrics = admin.metrics()
    assert (metrics["bellhop_config_last_reload_successful", ""], metrics["bellhop_config_generation", ""]) == (0, 1)
    assert "exchnge" in admin.status()["config"]["problems"][0]
    up = publisher(daemon)
    up.channel.publish("", "in", b"still")
    up.channel.confirms(1)
    assert channel.get_wait(a).body == b"still"
    rewrite(daemon, routes=route("r", b))
    assert reload(daemon)[0] == 0
    metrics = admin.metrics()
    assert (metrics["bellhop_config_last_reload_successful", ""], metrics["bellhop_config_generation", ""]) == (1, 2)
    assert metrics["bellhop_config_last_reload_success_timestamp_seconds", ""] > time.time() - 60
    daemon.config_path.unlink()
    code, said = reload(daemon)
    assert code == 2 and "cannot be read: No such file" in said


@pytest.mark.parametrize("key, sections", [
    ("listen", {"listen": [{"unix": "/tmp/elsewhere.sock"}]}),
    ("admin.tcp", {"admin": {"tcp": "127.0.0.1:1"}}),
    ("stores.claims", {"stores": {"claims": {"type": "memory"}}}),
    ("log.format", {"log": {"format": "json"}}),
])
def test_what_cannot_change_while_it_runs_is_named(bellhop, key, sections):
    daemon = bellhop()
    rewrite(daemon, **sections)
    code, said = reload(daemon)
    assert code == 2
    assert f"{daemon.config_path}: {key}: " in said and "restart bellhop for that" in said
    assert generation(daemon) == 1


# -- under load


def test_200_reloads_under_load_lose_nothing_and_each_message_follows_one_configuration(bellhop, two):
    """Two configurations take turns. Each has its own queue, header and store, so a message tells which one it followed."""
    channel, a, b = two
    daemon = bellhop()
    stores = daemon.folder / "a", daemon.folder / "b"
    for store in stores:
        store.mkdir()

    def sections(which):
        return {"stores": {each.name: {"type": "filesystem", "path": str(each), "fsync": False} for each in stores},
                "claim_check": {"store": which, "threshold": "1000B"},
                "routes": route("r-" + which, {"a": a, "b": b}[which], headers={"conf": which})}

    rewrite(daemon, **sections("a"))
    daemon.restart()
    ended = threading.Event()
    sent, failures = [], []

    def publish(seed):
        try:
            up = publisher(daemon)
            number = 0
            while not ended.is_set():
                for size in (10, 5000, 200_000):
                    number += 1
                    up.channel.publish("", "in", b"%d.%d." % (seed, number) + b"x" * size)
                confirms = up.channel.confirms(number)
                assert set(confirms.values()) == {"ack"}
            sent.append(number)
            up.client.close()
        except Exception as error:
            failures.append(error)

    got = {"a": [], "b": []}

    def consume(which, queue):
        try:
            consumer = Consumer(daemon, queue, prefetch=20)
            while True:
                try:
                    message = consumer.deliver(timeout=5 if ended.is_set() else 60)
                except amqp.Timeout:
                    return
                assert message.properties["headers"]["conf"] == which
                got[which].append((message.body.split(b"x")[0], len(message.body) > 1000))
                consumer.ack(message.delivery_tag)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=publish, args=(seed,)) for seed in range(2)]
    threads += [threading.Thread(target=consume, args=("a", a)), threading.Thread(target=consume, args=("b", b))]
    for thread in threads:
        thread.start()

    def reload_often(times):
        for i in range(times):
            rewrite(daemon, **sections("ab"[i % 2]))
            look = int(Admin(daemon.admin_socket).post("/reload").body)
            wait_until(lambda: Admin(daemon.admin_socket).status()["config"]["looks"] >= look, 60, "a reload")
            if failures:
                return

    reload_often(200)
    ended.set()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]
    assert Admin(daemon.admin_socket).status()["config"]["generation"] == 201
    everything = got["a"] + got["b"]
    assert len(everything) == len(set(everything)) == sum(sent), "lost, or delivered twice"
    for store in stores:
        objects = [each for each in store.iterdir() if not each.name.startswith(".")]
        assert len(objects) == sum(is_large for _, is_large in got[store.name]), "a payload went to the other one's store"
    assert min(len(got["a"]), len(got["b"])) > 50, "both configurations were used"
    assert Admin(daemon.admin_socket).status()["config"]["last_reload_successful"]
    resident = lambda: int(pathlib.Path(f"/proc/{daemon.pid}/status").read_text().split("VmRSS:")[1].split()[0])  # noqa: E731
    before = resident()
    reload_often(100)
    if TIME_FACTOR == 1:
        assert resident() < before + 2048, "resident memory grows with each reload"
    statuses = {each["name"]: each for each in Admin(daemon.admin_socket).status()["routes"]}
    assert set(statuses) == {"(no route)", "r-a", "r-b"}, "and no name twice"
    assert sum(statuses[each]["publishes"]["confirmed"] for each in ("r-a", "r-b")) == sum(sent)


# -- stores


def test_a_store_that_is_removed_while_a_claim_of_it_is_fetched_still_gives_it(bellhop, broker, name, gate):
    daemon = bellhop(env=gate.env)
    other = daemon.folder / "other"
    other.mkdir()
    side = Side(broker, name())
    payload = body_of(300_000)
    key = put_object(daemon, payload)
    consumer = Consumer(daemon, side.queue)
    gate.close(call="pread")
    side.send(claim(key), headers={"bellhop-claim-key": key, "bellhop-claim-store": "claims"})
    threads = lambda: len(os.listdir(f"/proc/{daemon.pid}/task"))  # noqa: E731
    wait_until(lambda: Admin(daemon.admin_socket).status() and threads() > 3, 10, "the fetch")
    rewrite(daemon, stores={"other": {"type": "filesystem", "path": str(other)}})
    assert reload(daemon)[0] == 0
    gate.open()
    assert consumer.deliver().body == payload


def test_a_claim_of_a_store_that_is_not_configured_is_held_until_it_is_again(bellhop, broker, name):
    daemon = bellhop()
    other = daemon.folder / "other"
    other.mkdir()
    before = json.loads(daemon.config_path.read_text())["stores"]
    side = Side(broker, name())
    key = put_object(daemon, b"payload")
    rewrite(daemon, stores={"other": {"type": "filesystem", "path": str(other)}})
    assert reload(daemon)[0] == 0
    consumer = Consumer(daemon, side.queue)
    side.send(claim(key), headers={"bellhop-claim-key": key, "bellhop-claim-store": "claims"})
    admin = Admin(daemon.admin_socket)
    wait_until(lambda: admin.status()["held"] == 1, 20, "the held delivery")
    daemon.wait_log("store 'claims' is not configured")
    rewrite(daemon, stores=before)
    assert reload(daemon)[0] == 0
    assert consumer.deliver(timeout=30).body == b"payload"
    assert admin.status()["held"] == 0 and not side.exists(side.parked)


def test_a_removed_store_ends_when_nothing_needs_it(bellhop, broker, name):
    daemon = bellhop({"claim_check": {"store": "claims"}})
    other = daemon.folder / "other"
    other.mkdir()
    stores = json.loads(daemon.config_path.read_text())["stores"]
    up = publisher(daemon)  # a session that has nothing to do must not keep it
    threads = lambda: len(os.listdir(f"/proc/{daemon.pid}/task"))  # noqa: E731
    up.channel.publish("", name(), b"x" * 100_000)
    up.channel.confirms(1)
    rewrite(daemon, stores={**stores, "other": {"type": "filesystem", "path": str(other), "retention": "1h"}})
    assert reload(daemon)[0] == 0
    with_other = threads()
    rewrite(daemon, stores=stores)
    assert reload(daemon)[0] == 0
    wait_until(lambda: threads() < with_other, 30, "the end of the removed store's threads")
    up.channel.publish("", name(), b"x" * 100_000)
    up.channel.confirms(2)


def old_object(folder):
    """An object that is five minutes old."""
    key = put_object(folder, b"old")
    os.utime(folder / key, (time.time() - 300, time.time() - 300))
    return folder / key


def test_a_retention_that_was_taken_away_removes_nothing_more(bellhop, tmp_path):
    claims = tmp_path / "claims"
    claims.mkdir()
    store = {"type": "filesystem", "path": str(claims)}
    daemon = bellhop({"stores": {"claims": {**store, "retention": "1m"}}})
    first = old_object(claims)
    wait_until(lambda: not first.exists(), 20, "retention")
    rewrite(daemon, stores={"claims": store})
    assert reload(daemon)[0] == 0
    names = lambda: [pathlib.Path(each, "comm").read_text().strip() for each in pathlib.Path(f"/proc/{daemon.pid}/task").iterdir()]  # noqa: E731
    wait_until(lambda: "retention" not in names(), 30, "the end of the former retention")
    assert old_object(claims).exists()


def test_a_configuration_that_is_not_taken_removes_nothing(bellhop, tmp_path):
    claims = tmp_path / "claims"
    claims.mkdir()
    (tmp_path / "file").write_text("")
    store = {"type": "filesystem", "path": str(claims)}
    daemon = bellhop({"stores": {"claims": store}, "claim_check": {"store": "claims"}})
    kept = old_object(claims)
    rewrite(daemon, stores={"claims": {**store, "retention": "1m"}, "second": {"type": "filesystem", "path": str(tmp_path / "file")}})
    for _ in range(5):
        code, said = reload(daemon)
        assert code == 2 and "is not a directory" in said
    assert kept.exists()
    assert not [each for each in pathlib.Path(f"/proc/{daemon.pid}/task").iterdir() if (each / "comm").read_text().strip() == "retention"]


def test_a_broken_store_that_is_removed_says_nothing_of_readiness(bellhop, broker, name, tmp_path):
    good = tmp_path / "good"
    good.mkdir()
    stores = {"bad": {"type": "filesystem", "path": str(tmp_path / "nowhere")}, "good": {"type": "filesystem", "path": str(good)}}
    daemon = bellhop({"stores": stores, "claim_check": {"store": "bad"}})
    admin = Admin(daemon.admin_socket)
    up = publisher(daemon)
    for tag in (1, 2, 3):
        up.channel.publish("", name(), b"x" * 100_000)
        up.channel.expect("basic.nack", delivery_tag=tag)
    assert "store 'bad'" in admin.get("/readyz").body
    rewrite(daemon, stores={"good": stores["good"]}, claim_check={"store": "good"})
    assert reload(daemon)[0] == 0
    assert admin.get("/readyz").status == 200
    assert [each["name"] for each in admin.status()["stores"]] == ["good"]


def test_what_a_memory_store_has_is_not_thrown_away(bellhop):
    daemon = bellhop({"stores": {"m": {"type": "memory"}}})
    rewrite(daemon, stores=None)
    code, said = reload(daemon)
    assert code == 2 and "stores.m: a memory store and its payloads would be gone" in said


# -- what counts from the next connection on


def test_users_limits_and_allow_lists_count_from_the_next_connection_on(bellhop, tmp_path):
    port = free_port()
    secret = tmp_path / "secret"
    secret.write_text("first\n")
    users = {"tcp": f"127.0.0.1:{port}", "users": {"app": f"${{file:{secret}}}"}}
    daemon = bellhop({"listen": [{"unix": "{socket}"}, users], "broker": {"username": "guest", "password": "guest"}})
    address = ("127.0.0.1", port)
    before = amqp.connect(address, username="app", password="first")
    secret.write_text("second\n")
    assert reload(daemon)[0] == 0
    with pytest.raises(amqp.ConnectionClosed) as refused:
        amqp.connect(address, username="app", password="first")
    assert refused.value.code == 403
    amqp.connect(address, username="app", password="second").close()
    before.channel()  # it stays
    rewrite(daemon, listen=[{"unix": daemon.socket, "allow_uids": [os.getuid() + 1]}, users])
    assert reload(daemon)[0] == 0
    with pytest.raises(amqp.AmqpError):
        amqp.connect(daemon.socket)
    before.close()


def test_a_smaller_message_limit_counts_from_the_next_message_on(bellhop, broker, name):
    daemon = bellhop({"claim_check": {"enabled": False}})
    queue = name()
    declare(broker, queue)
    up = publisher(daemon)
    up.channel.publish("", queue, b"x" * 2000)
    up.channel.confirms(1)
    rewrite(daemon, limits={"message_bytes": "1KiB"})
    assert reload(daemon)[0] == 0
    up.channel.publish("", queue, b"x" * 2000)
    up.channel.expect_close(406)


def test_tls_files_that_rotate_are_read(bellhop, tls_rabbit, tmp_path):
    ca = tmp_path / "ca.pem"
    (tmp_path / "other").mkdir()
    wrong = Authority(tmp_path / "other")
    ca.write_text(pathlib.Path(wrong.ca).read_text())
    daemon = bellhop({"broker": {"url": f"amqps://{tls_rabbit.tls_address}", "tls": {"ca": str(ca)}, "connect_timeout": "2s"}})
    with pytest.raises(amqp.AmqpError):
        amqp.connect(daemon.socket)
    ca.write_text(pathlib.Path(shared_authority().ca).read_text())
    assert reload(daemon)[0] == 0
    client = amqp.connect(daemon.socket)
    client.channel()
    ca.write_text("no certificate")
    code, said = reload(daemon)
    assert code == 2 and "broker.tls.ca" in said
    client.channel()
    amqp.connect(daemon.socket).close()
    client.close()


def test_new_pipelines_are_declared_and_a_message_under_way_goes_on(bellhop, broker, name):
    one, other = name("p"), name("o")
    credentials = {"username": "guest", "password": "guest"}
    daemon = bellhop({"broker": credentials, "pipelines": {one: {"steps": ["a", "b"], "declare": True}}})
    channel = broker.channel()
    daemon.wait_log("pipelines declared")
    consumer = Consumer(daemon, f"{one}.a")
    channel.publish(one, "a", b"input")
    message = consumer.deliver()
    begin = len(daemon.log)
    rewrite(daemon, pipelines={one: {"steps": ["a", "c", "b"], "declare": True}, other: {"steps": ["z"], "declare": True}})
    assert reload(daemon)[0] == 0
    daemon.wait_log("pipelines declared", begin=begin)
    assert count(channel, f"{other}.z") == 0
    worker = consumer.channel
    worker.call("confirm.select")
    worker.publish("bellhop.next", "", b"result", headers={"bellhop-ack": message.delivery_tag})
    worker.confirms(1)
    assert channel.get_wait(f"{one}.c").body == b"result"


def test_routes_to_a_new_pipeline_count_when_it_is_declared(bellhop, broker, name):
    """Else a client that publishes all the time would lose messages: they would be confirmed, and no queue would have them."""
    pipeline = name("p")
    daemon = bellhop({"broker": {"username": "guest", "password": "guest"}, "routes": route("r", name("before"))})
    up = publisher(daemon)
    numbers, ended = [], threading.Event()
    sent = broker.channel()
    sent.declare(json.loads(daemon.config_path.read_text())["routes"][0]["to"]["routing_key"])

    def publish():
        while not ended.is_set():
            numbers.append(len(numbers) + 1)
            up.channel.publish("", "in", b"%d" % numbers[-1])
            up.channel.confirms(numbers[-1])

    thread = threading.Thread(target=publish)
    thread.start()
    rewrite(daemon, pipelines={pipeline: {"steps": ["a"], "declare": True}},
            routes=[{"name": "r", "match": {"exchange": "", "routing_key": "in"}, "slip": {"pipeline": pipeline}}])
    assert reload(daemon)[0] == 0
    wait_until(lambda: count(broker.channel(), f"{pipeline}.a") > 20, 20, "messages of the new pipeline")
    ended.set()
    thread.join()
    queue = json.loads(daemon.config_path.read_text())
    before = sent.call("queue.declare", queue=name("before"), passive=True).message_count
    assert before + count(broker.channel(), f"{pipeline}.a") == len(numbers), queue["routes"]


def test_the_log_level_of_the_file_counts_when_it_changes(bellhop):
    daemon = bellhop()
    admin = Admin(daemon.admin_socket)
    assert admin.post("/log-level", "warn").status == 200
    assert reload(daemon)[0] == 0
    assert admin.status()["log_level"] in ("warn", "warning"), "the file says nothing new"
    rewrite(daemon, log={"level": "debug"})
    assert reload(daemon)[0] == 0
    assert admin.status()["log_level"] == "debug"


# -- admin.watch


@pytest.fixture
def watching(bellhop, two, tmp_path):
    """A daemon that watches its file; a secret stands in another folder."""
    _, a, _ = two
    (tmp_path / "secrets").mkdir()
    secret = tmp_path / "secrets" / "password"
    secret.write_text("guest\n")
    daemon = bellhop({"admin": {"watch": True}, "routes": route("r", a),
                      "broker": {"username": "guest", "password": f"${{file:{secret}}}"}})
    return daemon, secret


def settled_at(daemon, number):
    wait_until(lambda: generation(daemon) == number, 20, f"configuration number {number}; the log: {daemon.log[-2000:]}")


def test_watched_an_editors_rename_and_a_write_in_two_steps(watching, two):
    daemon, _ = watching
    _, a, b = two
    rewrite(daemon, routes=route("r", b))
    settled_at(daemon, 2)
    text = daemon.config_path.read_text().replace(f'"{b}"', f'"{a}"')
    with open(daemon.config_path, "w") as file:
        file.write(text[:200])
        file.flush()
        os.fsync(file.fileno())
        file.write(text[200:])
    settled_at(daemon, 3)
    assert "not reloaded" not in daemon.log, "the half file was read"


def test_watched_what_is_written_again_without_a_change_is_no_reload(watching):
    daemon, _ = watching
    looks = Admin(daemon.admin_socket).status()["config"]["looks"]
    daemon.config_path.write_text(daemon.config_path.read_text())
    wait_until(lambda: Admin(daemon.admin_socket).status()["config"]["looks"] > looks, 20, "a look")
    assert generation(daemon) == 1


def test_watched_a_secret_that_rotates_and_a_file_that_appears_late(watching, two):
    daemon, secret = watching
    secret.write_text("another\n")
    settled_at(daemon, 2)
    with pytest.raises(amqp.ConnectionClosed) as refused:
        amqp.connect(daemon.socket)
    assert refused.value.code == 403
    secret.unlink()
    daemon.wait_log("configuration not reloaded: the one before stays in use number=2")
    assert daemon.log.count("not reloaded") == 1
    secret.write_text("guest\n")
    settled_at(daemon, 3)
    amqp.connect(daemon.socket).close()


def test_watched_a_config_map_whose_link_is_swapped(bellhop, two, tmp_path):
    _, a, b = two
    daemon = bellhop({"admin": {"watch": True}, "routes": route("r", a)})
    text = daemon.config_path.read_text()
    daemon.sigterm()
    daemon.wait()
    mount = tmp_path / "mount"
    for version, queue in (("..1", a), ("..2", b)):
        (mount / version).mkdir(parents=True)
        (mount / version / "bellhop.yaml").write_text(text.replace(f'"{a}"', f'"{queue}"'))
    (mount / "..data").symlink_to("..1")
    (mount / "bellhop.yaml").symlink_to("..data/bellhop.yaml")
    daemon.config_path = mount / "bellhop.yaml"
    daemon.start()
    wait_until(lambda: Admin(daemon.admin_socket).status()["config"]["looks"] >= 1, 20, "the first look")
    (mount / "..data_tmp").symlink_to("..2")
    (mount / "..data_tmp").rename(mount / "..data")
    settled_at(daemon, 2)
    up = publisher(daemon)
    up.channel.publish("", "in", b"x")
    up.channel.confirms(1)
    assert two[0].get_wait(b).body == b"x"


def test_watched_a_file_that_is_put_back_is_in_use_again(watching):
    daemon, _ = watching
    good = daemon.config_path.read_text()
    daemon.config_path.write_text("brokr: {}")
    daemon.wait_log("configuration not reloaded")
    daemon.config_path.write_text(good)
    wait_until(lambda: Admin(daemon.admin_socket).status()["config"]["last_reload_successful"], 20, "the end of the trouble")
    assert generation(daemon) == 1 and Admin(daemon.admin_socket).status()["config"]["problems"] == []


def has_ended(process, within_s):
    """Without the pause a SIGHUP would always be pending, and the kernel hands it over before any SIGTERM."""
    try:
        process.wait(within_s)
        return True
    except subprocess.TimeoutExpired:
        return False


def test_sighup_at_any_moment_of_the_end_is_harmless(bellhop):
    for _ in range(8):
        daemon = bellhop()
        daemon.sigterm()
        while not has_ended(daemon.process, 0.0003):
            daemon.process.send_signal(signal.SIGHUP)
        assert daemon.wait() == 0


def test_a_reload_that_is_asked_for_while_it_drains_is_refused(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    side.send(b"held")
    consumer = Consumer(daemon, side.queue)
    message = consumer.deliver()
    daemon.sigterm()
    daemon.wait_log("draining")
    code, said = reload(daemon)
    assert code == 2 and "bellhop is shutting down" in said
    consumer.ack(message.delivery_tag)
    assert daemon.wait() == 0


def test_sighup_while_it_drains_changes_nothing(bellhop, broker, name):
    daemon = bellhop()
    side = Side(broker, name())
    side.send(b"held")
    consumer = Consumer(daemon, side.queue)
    message = consumer.deliver()
    daemon.sigterm()
    daemon.wait_log("draining")
    daemon.process.send_signal(signal.SIGHUP)
    consumer.ack(message.delivery_tag)
    assert daemon.wait() == 0
