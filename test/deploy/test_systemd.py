"""The units of deploy/systemd: what systemd itself says about them."""

import re
import shutil
import subprocess

import pytest

from support.bellhop import ROOT, binary

UNITS = ROOT / "deploy" / "systemd"
EXPOSURE_MAX = 1.5  # of 10, by systemd's own count


@pytest.fixture
def units(tmp_path):
    """Both units as a host has them, but with the program where the build put it: a command that is not there would be a finding."""
    folder = tmp_path / "units"
    folder.mkdir()
    for name in ("bellhop.service", "bellhop.socket"):
        (folder / name).write_text((UNITS / name).read_text().replace("/usr/bin/bellhop", str(binary())))
    return folder


def analyze(*args):
    assert shutil.which("systemd-analyze"), "systemd is not installed (test/run installs it)"
    return subprocess.run(["systemd-analyze", *map(str, args)], capture_output=True, text=True, timeout=60)


def test_systemd_finds_nothing_wrong_with_the_units(units):
    done = analyze("--man=no", "verify", units / "bellhop.service", units / "bellhop.socket")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_mistake_in_a_unit_would_be_found(units):
    service = units / "bellhop.service"
    service.write_text(service.read_text().replace("WatchdogSec=", "WatchdogSecond="))
    assert "WatchdogSecond" in analyze("--man=no", "verify", service).stderr


def test_the_service_may_do_little_beside_its_work(units):
    done = analyze("--no-pager", "security", "--offline=true", units / "bellhop.service")
    assert float(re.search(r"exposure level for bellhop.service: ([\d.]+)", done.stdout).group(1)) <= EXPOSURE_MAX


def settings(name):
    """[(key, value)] of a unit, in its order."""
    lines = (UNITS / name).read_text().splitlines()
    return [tuple(line.split("=", 1)) for line in lines if "=" in line and not line.startswith("#")]


def test_the_commands_are_ones_that_bellhop_has():
    for key, command in settings("bellhop.service"):
        if key in ("ExecStart", "ExecReload"):
            program, word, *_ = command.lstrip("-").split()
            assert program == "/usr/bin/bellhop"
            assert subprocess.run([binary(), word, "--help"], capture_output=True).returncode == 0, command


def test_the_units_agree_about_the_folder_of_the_sockets():
    service, socket = dict(settings("bellhop.service")), dict(settings("bellhop.socket"))
    assert socket["ListenStream"] == "/run/bellhop/bellhop.sock"
    assert socket["ExecStartPre"] == (f"/usr/bin/install -d -o {service['User']} -g {service['Group']} -m {service['RuntimeDirectoryMode']} "
                                      f"/run/{service['RuntimeDirectory']}")
    assert service["RuntimeDirectoryPreserve"] == "yes" and socket["RemoveOnStop"] == "no"
