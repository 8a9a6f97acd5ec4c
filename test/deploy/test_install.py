"""`cmake --install`: which files it puts where, and what depends on the prefix."""

import os
import pathlib
import re
import stat
import subprocess

import pytest

from support.bellhop import ROOT, run_cli
from support.documents import text_of, without_code

DEPLOY = ROOT / "deploy"
FILES = """
    etc/bellhop/bellhop.yaml
    usr/bin/bellhop
    usr/lib/systemd/system/bellhop.service
    usr/lib/systemd/system/bellhop.socket
    usr/lib/sysusers.d/bellhop.conf
    usr/share/bash-completion/completions/bellhop
    usr/share/fish/vendor_completions.d/bellhop.fish
    usr/share/man/man5/bellhop.yaml.5
    usr/share/man/man8/bellhop.8
    usr/share/zsh/site-functions/_bellhop
    """.split()
DOCUMENTS = """
    ARCHITECTURE.md CHANGELOG.md LICENSE README.md
    config/README.md config/bellhop.schema.json config/bellhop.yaml
    daemon/claims/README.md deploy/README.md deploy/operations.md proto/README.md
    test/clients/README.md test/clients/java_amqp_client/UnixSocketFactory.java test/clients/php_amqplib/UnixConnection.php
    test/clients/python_kombu/unix_transport.py test/clients/ruby_bunny/unix_session.rb test/packages
    """.split()


def build_folder():
    """CTest runs the tests in it."""
    here = pathlib.Path.cwd()
    return here if (here / "cmake_install.cmake").is_file() else ROOT / "build" / "dev"


def install(folder, prefix):
    """What is there after `cmake --install` into a folder that stands for the root."""
    subprocess.run(["cmake", "--install", build_folder(), "--prefix", prefix], env={**os.environ, "DESTDIR": str(folder)},
                   check=True, stdout=subprocess.DEVNULL)
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


def examples():
    """Of Compose, Kubernetes and Prometheus: every file that the repository has, and what Compose's service needs."""
    names = subprocess.run(["git", "ls-files", "compose*", "kubernetes", "prometheus", "pika_unix.py", "publish.py"], cwd=DEPLOY, capture_output=True, text=True, check=True)
    return {f"deploy/{name}" for name in names.stdout.split()}


def commands_of(unit):
    """The programs and files that a unit's Exec lines name."""
    return re.findall(r"(?<=[= ])/[\w./-]+", "\n".join(re.findall(r"^Exec(?:Start|Reload|StartPre)=.*", unit.read_text(), flags=re.M)))


def test_it_puts_exactly_these_files(tmp_path):
    documents = {f"usr/share/doc/bellhop/{name}" for name in {*DOCUMENTS, *examples()}}
    assert install(tmp_path, "/usr") == {*FILES, *documents}
    executable = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file() and path.stat().st_mode & 0o111}
    assert executable == {"usr/bin/bellhop"}


def test_every_link_of_the_installed_documents_leads_somewhere(tmp_path):
    install(tmp_path, "/usr")
    links = [(path, target) for path in tmp_path.rglob("*.md")
             for target in re.findall(r"\]\(([^)\s#]+)[^)\s]*\)", without_code(text_of(path))) if not re.match(r"[a-z]+:", target)]
    assert len(links) > 50
    assert not [(str(path.relative_to(tmp_path)), target) for path, target in links if not (path.parent / target).exists()]


@pytest.mark.parametrize("prefix, configuration", [("/usr", "/etc/bellhop/bellhop.yaml"), ("/usr/local", "/etc/bellhop/bellhop.yaml"),
                                                   ("/opt/bellhop", "/opt/bellhop/etc/bellhop/bellhop.yaml")])
def test_what_the_units_start_is_where_it_was_put(tmp_path, prefix, configuration):
    install(tmp_path, prefix)
    units = tmp_path / prefix[1:] / "lib" / "systemd" / "system"
    named = commands_of(units / "bellhop.service")
    assert {f"{prefix}/bin/bellhop", configuration} == set(named)
    assert all((tmp_path / path[1:]).is_file() for path in named)
    for unit in units.iterdir():
        text = unit.read_text()
        assert not re.search(r"(?<!\w)/etc/bellhop", text) or configuration.startswith("/etc")
        assert "/usr/bin/bellhop" not in text or prefix == "/usr"


def test_the_root_and_a_folder_beside_are_prefixes_too(tmp_path):
    install(tmp_path / "root", "/")
    assert "ExecStart=/bin/bellhop run --config /etc/bellhop/bellhop.yaml" in (tmp_path / "root/lib/systemd/system/bellhop.service").read_text()
    subprocess.run(["cmake", "--install", build_folder(), "--prefix", "beside"], cwd=tmp_path, env={**os.environ, "PWD": str(tmp_path)}, check=True,
                   stdout=subprocess.DEVNULL)
    assert f"ExecStart={tmp_path}/beside/bin/bellhop run" in (tmp_path / "beside/lib/systemd/system/bellhop.service").read_text()


def test_a_prefix_that_no_unit_can_name_is_refused(tmp_path):
    done = subprocess.run(["cmake", "--install", build_folder(), "--prefix", "/opt/two words"], env={**os.environ, "DESTDIR": str(tmp_path)},
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert done.returncode != 0 and "Use a path without blanks, quotes, % and $." in " ".join(done.stderr.split())


def test_a_configuration_that_is_there_stays(tmp_path):
    edited = tmp_path / "etc" / "bellhop" / "bellhop.yaml"
    edited.parent.mkdir(parents=True)
    edited.write_text("broker: { url: amqp://rabbitmq.internal }\n")
    install(tmp_path, "/usr/local")
    assert edited.read_text() == "broker: { url: amqp://rabbitmq.internal }\n"


def test_the_configuration_to_begin_with_is_refused_until_it_is_edited(tmp_path):
    """Nobody else may read it: it will hold a password. And the only thing that is wrong with it is the broker's address."""
    install(tmp_path, "/usr")
    file = tmp_path / "etc" / "bellhop" / "bellhop.yaml"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    done = run_cli("check", file)
    assert done.returncode == 2
    assert re.fullmatch(rf"{re.escape(str(file))}:\d+:\d+: broker\.url: has still to be edited: write your broker's address here, allowed: .*\n",
                        done.stderr)
    text = file.read_text()
    assert text.count("EDIT-ME") == 1
    file.write_text(text.replace("EDIT-ME", "amqp://app:secret@rabbitmq.internal"))
    done = run_cli("check", file)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_sysusers_file_names_the_units_user():
    user = re.search(r"^u (\S+) ", (DEPLOY / "systemd" / "sysusers.conf").read_text(), flags=re.M)[1]
    service = (DEPLOY / "systemd" / "bellhop.service").read_text()
    assert f"\nUser={user}\n" in service and f"\nGroup={user}\n" in service


@pytest.mark.parametrize("arguments, code, said", [(["--help"], 0, "Makes bellhop's Debian package"), (["--rpm"], 2, "unknown option --rpm"),
                                                   (["a", "b"], 2, "at most one folder")])
def test_the_script_that_makes_the_package_says_how_it_is_used(arguments, code, said):
    done = subprocess.run([DEPLOY / "package", *arguments], capture_output=True, text=True)
    assert done.returncode == code and said in done.stdout + done.stderr
