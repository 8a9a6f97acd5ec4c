#include "daemon/cli/inspect/inspect_commands.h"

#include <CLI/CLI.hpp>
#include <iostream>

#include "daemon/cli/inspect/where.h"

namespace bellhop {

struct InspectCommands::Parsed {
  std::string config_file;
  CLI::App* where = nullptr;
  WhereOptions where_options;
};

namespace {

constexpr const char* where_footer =
    "Looks into every store of the configuration and says of the payload: store, place, size, age, whether "
    "its\n"
    "checksum is right, and what is left of its retention. Changes nothing.\n"
    "Exit codes: 0 the payload is there and right, 1 it is not, or a store cannot be asked, 2 wrong usage "
    "or\n"
    "configuration.";

void add_where(CLI::App& app, std::string& config_file, WhereOptions& options, CLI::App*& command) {
  command = app.add_subcommand("where", "Say where a payload is (where KEY --config FILE)");
  command->add_option("KEY", options.key, "A claim's key")->required()->type_name("");
  command->add_option("--config", config_file, "The YAML configuration")->required()->type_name("FILE");
  command
      ->add_option("--xxh128", options.xxh128,
                   "The checksum that it should have (header bellhop-claim-xxh128)")
      ->type_name("HEX");
  command->add_flag("--json", options.json, "For programs");
  command->footer(where_footer);
}

}  // namespace

InspectCommands::InspectCommands(CLI::App& app) : parsed_(std::make_unique<Parsed>()) {
  add_where(app, parsed_->config_file, parsed_->where_options, parsed_->where);
}

InspectCommands::~InspectCommands() = default;

std::optional<int> InspectCommands::run() {
  if (parsed_->where->parsed())
    return where(parsed_->config_file, parsed_->where_options, std::cout, std::cerr);
  return std::nullopt;
}

}  // namespace bellhop
