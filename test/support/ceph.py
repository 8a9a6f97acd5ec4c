"""Ceph's radosgw with one monitor and one object store daemon, all on loopback and in one folder: a complete S3 server, with the
interface of s3.S3Server. About fifteen seconds to start. Needs root, and Debian's radosgw, ceph-mon, ceph-osd, ceph-common."""

import os
import pathlib
import signal
import subprocess
import time
import urllib.error
import urllib.request
import uuid

from .rabbitmq import free_port, wait_until
from .s3 import S3Server

CONFIG = """\
[global]
fsid = {fsid}
mon_host = v1:127.0.0.1:{mon}
public_addr = 127.0.0.1
cluster_addr = 127.0.0.1
public_network = 127.0.0.0/8
cluster_network = 127.0.0.0/8
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_num = 8
osd_pool_default_pgp_num = 8
osd_pool_default_pg_autoscale_mode = off
osd_crush_chooseleaf_type = 0
mon_allow_pool_size_one = true
mon_data = {dir}/mon
mon_data_avail_crit = 1
mon_data_avail_warn = 2
mon_max_pg_per_osd = 1000
osd_data = {dir}/osd
osd_objectstore = memstore
memstore_device_bytes = 4294967296
osd_memory_target = 939524096
osd_numa_auto_affinity = false
osd_class_update_on_start = false
run_dir = {dir}/run
admin_socket = {dir}/run/$name.$pid.asok
log_file = {dir}/log/$name.log
pid_file = {dir}/run/$name.pid
[client.rgw]
rgw_frontends = beast endpoint=127.0.0.1:{rgw}
rgw_data = {dir}/rgw
rgw_dns_name = s3.localhost
rgw_enable_usage_log = false
rgw_run_sync_thread = false
"""


class Ceph(S3Server):
    access_key, secret_key = "TESTKEY", "TESTSECRET"

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.port, mon = free_port(), free_port()
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self.processes = []
        for name in ("mon", "osd", "rgw", "run", "log"):
            (self.folder / name).mkdir()
        self.config = self.folder / "ceph.conf"
        fsid = str(uuid.uuid4())
        self.config.write_text(CONFIG.format(dir=self.folder, fsid=fsid, mon=mon, rgw=self.port))
        try:
            self._start(fsid, mon)
            self.make_bucket(self.bucket)
        except BaseException:
            self.stop()
            raise

    def _run(self, *words, check=True, timeout=60):
        return subprocess.run([words[0], "-c", str(self.config), *words[1:]], cwd=self.folder, check=check, timeout=timeout,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout

    def _daemon(self, *words):
        log = open(self.folder / "log" / f"{words[0]}.out", "ab")
        process = subprocess.Popen([words[0], "-c", str(self.config), *words[1:], "-f"], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log,
                                   stderr=log)
        log.close()
        self.processes.append(process)
        return process

    def _start(self, fsid, mon):
        subprocess.run(["monmaptool", "--create", "--clobber", "--fsid", fsid, "--addv", "a", f"[v1:127.0.0.1:{mon}]", "monmap"], cwd=self.folder,
                       check=True, stdout=subprocess.DEVNULL)
        self._run("ceph-mon", "--mkfs", "-i", "a", "--monmap", "monmap")
        self._daemon("ceph-mon", "-i", "a")
        osd = str(uuid.uuid4())
        self._run("ceph", "osd", "new", osd)
        self._run("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", osd)
        # Now and then it ends at once because its first command is before the monitor's map: it is started again.
        deadline, process = time.monotonic() + 60, None
        while "1 up" not in self._run("ceph", "osd", "stat", check=False):
            assert time.monotonic() < deadline, "ceph-osd does not come up"
            if process is None or process.poll() is not None:
                process = self._daemon("ceph-osd", "-i", "0")
            time.sleep(0.2)
        rgw = self._daemon("radosgw", "-n", "client.rgw")

        def answers():
            assert rgw.poll() is None, (self.folder / "log" / "radosgw.out").read_text()[-2000:]
            try:
                urllib.request.urlopen(self.endpoint + "/", timeout=5)
                return True
            except urllib.error.HTTPError:
                return True
            except OSError:
                return False

        wait_until(answers, 90, "radosgw")
        self._run("radosgw-admin", "user", "create", "--uid=t", "--display-name=t", f"--access-key={self.access_key}", f"--secret-key={self.secret_key}")

    def stop(self):
        for process in reversed(self.processes):
            if process.poll() is None:
                os.kill(process.pid, signal.SIGKILL)
            process.wait()
