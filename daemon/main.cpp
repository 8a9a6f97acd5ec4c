// bellhop's command line: run, check, --version. Exit codes: 0 ok, 1 failure, 2 usage or configuration.
#include <CLI/CLI.hpp>
#include <iostream>

#include "daemon/cli/check.h"
#include "daemon/cli/run.h"

int main(int argc, char** argv) {
  CLI::App app{
      "bellhop: a RabbitMQ sidecar that checks large payloads in at a store and stamps routing slips"};
  app.set_version_flag("--version", std::string("bellhop ") + BELLHOP_VERSION);
  app.require_subcommand(1);
  std::string file;
  CLI::App* run = app.add_subcommand("run", "Serve in the foreground until SIGTERM");
  run->add_option("--config", file, "The YAML configuration")->required();
  CLI::App* check =
      app.add_subcommand("check", "Say what a configuration means, or all that is wrong with it");
  check->add_option("FILE", file, "The YAML configuration")->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (run->parsed()) return bellhop::run(file);
  return bellhop::check(file, std::cout, std::cerr);
}
