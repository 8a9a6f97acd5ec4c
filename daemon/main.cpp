// bellhop's command line: run, check, sweep, the commands of cli/inspect, --version. Exit codes: 0 ok, 1
// failure, 2 usage or configuration.
#include <CLI/CLI.hpp>
#include <iostream>

#include "daemon/cli/check.h"
#include "daemon/cli/inspect/inspect_commands.h"
#include "daemon/cli/run.h"
#include "daemon/cli/sweep.h"
#include "daemon/ops/standard_descriptors.h"

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
               "       bellhop check [--broker] FILE\n"
               "       bellhop sweep STORE --config FILE [--older-than TIME] [--dry-run]\n"
               "       bellhop peek | replay QUEUE --config FILE\n"
               "       bellhop where KEY | --queue QUEUE --config FILE\n"
               "       bellhop --version | --help\n";
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (!bellhop::open_standard_descriptors()) return 1;
  CLI::App app{"bellhop: a RabbitMQ sidecar that keeps large payloads in a store and writes routing slips",
               "bellhop"};
  app.set_version_flag("--version", std::string("bellhop ") + BELLHOP_VERSION, "Print the version and exit");
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 success, 1 failure, 2 wrong usage or configuration. config/README.md "
      "describes the configuration.");
  std::string file;
  CLI::App* run = app.add_subcommand("run", "Serve in the foreground until SIGTERM (run --config FILE)");
  run->add_option("--config", file, "The YAML configuration")->required()->type_name("FILE");
  CLI::App* check = app.add_subcommand(
      "check", "Say what a configuration means, or all that is wrong with it (check FILE)");
  check->add_option("FILE", file, "The YAML configuration")->required()->type_name("");
  bool at_broker = false;
  check->add_flag("--broker", at_broker,
                  "Also compare the pipelines with what the broker has; changes nothing there. Exit code 1: "
                  "something differs, or the broker cannot be asked");
  CLI::App* sweep = app.add_subcommand(
      "sweep", "Remove what a store holds and nobody needs any more (sweep STORE --config FILE)");
  std::string store;
  bellhop::SweepOptions options;
  sweep->add_option("STORE", store, "A store's name in the configuration")->required()->type_name("");
  sweep->add_option("--config", file, "The YAML configuration")->required()->type_name("FILE");
  sweep
      ->add_option("--older-than", options.older_than,
                   "Only what is older (objects: the store's retention; unfinished S3 uploads: 24h)")
      ->type_name("TIME");
  sweep->add_flag("--dry-run", options.dry_run, "Only say what would be removed");
  bellhop::InspectCommands inspect(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return error.get_exit_code() == 0 ? app.exit(error) : wrong_usage(app, error);
  }
  if (const auto code = inspect.run()) return *code;
  if (run->parsed()) return bellhop::run(file);
  if (sweep->parsed()) return bellhop::sweep(file, store, options, std::cout, std::cerr);
  return bellhop::check(file, at_broker, std::cout, std::cerr);
}
