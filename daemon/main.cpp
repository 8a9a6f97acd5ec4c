// bellhop's command line: run, check, sweep, the commands of cli/inspect, those that ask the bellhop that
// runs,
// --version. Exit codes: 0 ok, 1 failure, 2 usage or configuration.
#include <CLI/CLI.hpp>
#include <iostream>

#include "daemon/cli/admin_commands.h"
#include "daemon/cli/check.h"
#include "daemon/cli/commit.h"
#include "daemon/cli/inspect/inspect_commands.h"
#include "daemon/cli/run.h"
#include "daemon/cli/sweep.h"
#include "daemon/cli/version.h"
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
  std::cerr
      << "\nUsage: bellhop run --config FILE\n"
         "       bellhop check [--broker] FILE\n"
         "       bellhop sweep STORE --config FILE [--older-than TIME] [--dry-run]\n"
         "       bellhop peek | replay QUEUE --config FILE\n"
         "       bellhop where KEY | --queue QUEUE --config FILE\n"
         "       bellhop status [--json] [--watch] | health [--ready] | reload | drain | log-level LEVEL\n"
         "       bellhop tap [--route ROUTE] [--limit N] [--json]\n"
         "       bellhop --version | --help\n";
  return 2;
}

// The commands that ask the bellhop that runs.
class AdminCommands {
 public:
  explicit AdminCommands(CLI::App& app)
      : status_(add(app, "status", "Show what the running bellhop does: trouble first, then its numbers")),
        health_(add(app, "health", "Say whether the running bellhop is alive; answers within a second")),
        reload_(add(app, "reload", "Make the running bellhop read its configuration again, and wait for it")),
        tap_(add(app, "tap", "Print a line for each message that goes through the running bellhop")),
        drain_(add(app, "drain", "End the running bellhop as SIGTERM does: each session when it is settled")),
        log_level_(add(app, "log-level", "Change what the running bellhop logs, until it ends")) {
    status_->add_flag("--json", as_json_, "Print what /status of the admin socket answers");
    status_->add_flag("--watch", watch_, "Print it again every two seconds");
    reload_->add_flag("--json", as_json_, "Print the result as JSON");
    health_->add_flag(
        "--ready", ready_,
        "Also ask whether a publish made now would be taken: the broker is reached, the stores work");
    tap_->add_option("--route", tapped_.route, "Only what is published on this route of the configuration")
        ->type_name("ROUTE");
    tap_->add_option("--limit", tapped_.lines_max, "End after so many messages")
        ->type_name("N")
        ->check(CLI::PositiveNumber);
    tap_->add_flag("--json", tapped_.as_json, "Print each as a JSON object");
    log_level_->add_option("LEVEL", level_, "trace, debug, info, warn or error")->required()->type_name("");
  }
  bool is_chosen() const {
    return status_->parsed() || health_->parsed() || reload_->parsed() || tap_->parsed() ||
           drain_->parsed() || log_level_->parsed();
  }
  int run() const {
    if (status_->parsed()) return bellhop::show_status(place_, as_json_, watch_, std::cout, std::cerr);
    if (health_->parsed()) return bellhop::show_health(place_, ready_, std::cout, std::cerr);
    if (reload_->parsed()) return bellhop::reload(place_, as_json_, std::cout, std::cerr);
    if (tap_->parsed()) return bellhop::show_messages(place_, tapped_, std::cout, std::cerr);
    if (drain_->parsed()) return bellhop::begin_drain(place_, std::cout, std::cerr);
    return bellhop::change_log_level(place_, level_, std::cout, std::cerr);
  }

 private:
  CLI::App* add(CLI::App& app, const char* name, const char* help) {
    CLI::App* command = app.add_subcommand(name, help);
    CLI::Option* socket =
        command->add_option("--socket", place_.socket, "Its admin socket (/run/bellhop/admin.sock)");
    socket->type_name("PATH");
    command->add_option("--config", place_.config_file, "Its configuration, which says where the socket is")
        ->type_name("FILE")
        ->excludes(socket);
    return command;
  }

  bellhop::AdminPlace place_;
  bellhop::TapOptions tapped_;
  bool as_json_ = false, watch_ = false, ready_ = false;
  std::string level_;
  CLI::App *status_, *health_, *reload_, *tap_, *drain_, *log_level_;
};

}  // namespace

int main(int argc, char** argv) {
  if (!bellhop::open_standard_descriptors()) return 1;
  CLI::App app{"bellhop: a RabbitMQ sidecar that keeps large payloads in a store and writes routing slips",
               "bellhop"};
  app.set_version_flag(
      "--version", [] { return bellhop::version_text(bellhop::commit()); },
      "Print the version, the commit, the compiler and the libraries, and exit");
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
  const AdminCommands admin(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return error.get_exit_code() == 0 ? app.exit(error) : wrong_usage(app, error);
  }
  if (const auto code = inspect.run()) return *code;
  if (admin.is_chosen()) return admin.run();
  if (run->parsed()) return bellhop::run(file);
  if (sweep->parsed()) return bellhop::sweep(file, store, options, std::cout, std::cerr);
  return bellhop::check(file, at_broker, std::cout, std::cerr);
}
