// bellhop's command line: run, check, --version. Exit codes: 0 ok, 1 failure, 2 usage or configuration.
#include <CLI/CLI.hpp>
#include <iostream>

#include "daemon/cli/check.h"
#include "daemon/cli/run.h"

namespace {

// What is not known is said before what is missing: after a mistyped word both are true.
int wrong_usage(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> unknown = app.remaining(true);
  std::cerr << "bellhop: ";
  if (unknown.empty())
    std::cerr << error.what();
  else
    std::cerr << "unknown argument '" << unknown.front() << '\'';
  std::cerr << "\nUsage: bellhop run --config FILE\n"
               "       bellhop check FILE\n"
               "       bellhop --version | --help\n";
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "bellhop: a RabbitMQ sidecar that checks large payloads in at a store and stamps routing slips",
      "bellhop"};
  app.set_version_flag("--version", std::string("bellhop ") + BELLHOP_VERSION, "Print the version and exit");
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 success, 1 failure, 2 wrong usage or configuration. README.md describes the "
      "configuration.");
  std::string file;
  CLI::App* run = app.add_subcommand("run", "Serve in the foreground until SIGTERM (run --config FILE)");
  run->add_option("--config", file, "The YAML configuration")->required()->type_name("FILE");
  CLI::App* check = app.add_subcommand(
      "check", "Say what a configuration means, or all that is wrong with it (check FILE)");
  check->add_option("FILE", file, "The YAML configuration")->required()->type_name("");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return error.get_exit_code() == 0 ? app.exit(error) : wrong_usage(app, error);
  }
  if (run->parsed()) return bellhop::run(file);
  return bellhop::check(file, std::cout, std::cerr);
}
