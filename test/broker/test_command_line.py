"""What bellhop says on the command line, and how it exits."""

import pytest

from support.bellhop import run_cli


def test_help_names_every_command_and_goes_to_standard_output():
    done = run_cli("--help")
    assert done.returncode == 0 and done.stderr == ""
    for word in ("run", "check", "peek", "where", "replay", "status", "health", "tap", "drain", "log-level", "--config FILE", "check FILE", "--version",
                 "Exit codes"):
        assert word in done.stdout, word


def test_the_version_is_one_line():
    done = run_cli("--version")
    assert done.returncode == 0 and done.stdout.startswith("bellhop ") and done.stdout.count("\n") == 1


@pytest.mark.parametrize("words, says", [
    ((), "subcommand is required"),
    (("run",), "--config is required"),
    (("check",), "FILE is required"),
    (("serve",), "unknown argument 'serve'"),
    (("run", "--conf", "x.yaml"), "unknown argument '--conf'"),
    (("check", "a.yaml", "b.yaml"), "unknown argument 'b.yaml'"),
    (("--verbose",), "unknown argument '--verbose'"),
])
def test_wrong_usage_is_named_with_the_right_usage_beside_it(words, says):
    done = run_cli(*words)
    assert done.returncode == 2 and done.stdout == ""
    assert says in done.stderr.splitlines()[0]
    assert "bellhop run --config FILE" in done.stderr


@pytest.mark.parametrize("command", [("run", "--config"), ("check",)])
def test_a_file_that_is_not_there_is_named(command, tmp_path):
    done = run_cli(*command, tmp_path / "none.yaml")
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith(f"{tmp_path}/none.yaml: cannot be read: No such file or directory")


def test_a_socket_in_a_folder_that_is_not_there_is_explained(tmp_path):
    config = tmp_path / "bellhop.yaml"
    config.write_text(f"listen: [{{ unix: {tmp_path}/none/bellhop.sock }}]\nbroker: {{ url: amqp://127.0.0.1:1 }}\n")
    done = run_cli("run", "--config", config)
    assert done.returncode == 1
    assert "none/bellhop.sock: cannot bind: No such file or directory; create the socket's folder" in done.stderr
