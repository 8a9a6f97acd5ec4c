#include "daemon/cli/inspect/inspect_commands.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <limits>

#include "daemon/cli/inspect/peek.h"
#include "daemon/cli/inspect/replay.h"
#include "daemon/cli/inspect/where.h"

namespace bellhop {

struct InspectCommands::Parsed {
  std::string config_file;
  CLI::App* peek = nullptr;
  PeekOptions peek_options;
  CLI::App* where = nullptr;
  WhereOptions where_options;
  CLI::App* replay = nullptr;
  ReplayOptions replay_options;
};

namespace {

constexpr const char* peek_footer =
    "Shows the messages in front of a queue: why they were parked, how they died, the slip with its current "
    "step in\n"
    "[brackets], the claim with its object, properties and headers. The queue keeps them all, in their "
    "order; they\n"
    "are marked as redelivered. A stream is read from --offset, and nothing is taken off it.\n"
    "\n"
    "On a quorum queue before RabbitMQ 4.3 each look counts as a delivery, and the broker drops or "
    "dead-letters what\n"
    "came back too often (20 times, from RabbitMQ 4.0 on, where nothing else is set). peek says so before it "
    "looks,\n"
    "and does not show what is close to that: --force does. A message that could not come back once more is "
    "put to\n"
    "the end of the queue instead, so it is never lost.\n"
    "\n"
    "Exit codes: 0 done (an empty queue too), 1 the queue cannot be looked at, or something cannot be shown "
    "or saved,\n"
    "2 wrong usage or configuration.";

constexpr const char* where_footer =
    "Says of a payload: store, place, size, age, whether its checksum is right, and what is left of its "
    "retention. A\n"
    "KEY is looked for in every store of the configuration. With --queue the claims of the messages in front "
    "of a\n"
    "queue are looked for, each until a store has it; the queue is looked at as `bellhop peek` does. Changes "
    "nothing.\n"
    "\n"
    "Exit codes: 0 every payload is there and right, 1 one is not, or a store or the queue cannot be looked "
    "at,\n"
    "2 wrong usage or configuration.";

constexpr const char* replay_footer =
    "Mend the cause first: mount the store, put the payload back under its key, repair the worker. Try "
    "--dry-run.\n"
    "\n"
    "Each message goes back to the step that its slip says; else to the queue in which it died (x-death), or "
    "that the\n"
    "queue's name has in front of .parked or .dlq; or to --to. It goes as it is: a claim stays a claim. What "
    "parking\n"
    "changed is undone (expiration, CC, BCC, user-id; a message with CC goes to those keys once more, unless "
    "you say\n"
    "--without-cc). x-death and x-acemq-error go, x-acemq-attempt becomes 1, and acemq-replayed-from, "
    "-replayed-at and\n"
    "acemq-replay-count are added.\n"
    "\n"
    "No message is lost: each is acknowledged when the broker has confirmed it at its new place. What no "
    "queue takes,\n"
    "or has no object in a store, stays and is listed. No more are taken than were there at the start. If "
    "replay is\n"
    "killed, or loses the broker, run it again: at most 256 messages that had just been sent then come "
    "twice, with\n"
    "the same message-id.\n"
    "\n"
    "Exit codes: 0 every message taken is back where it came from, 1 something stays or went wrong, 2 wrong "
    "usage or\n"
    "configuration.";

CLI::App* add(CLI::App& app, const char* name, const char* what, const char* footer,
              std::string& config_file) {
  CLI::App* const command = app.add_subcommand(name, what);
  command->add_option("--config", config_file, "The YAML configuration")->required()->type_name("FILE");
  command->footer(footer);
  return command;
}

void add_visit(CLI::App& command, VisitOptions& visit) {
  command.add_option("-n", visit.count, "At most so many messages")
      ->capture_default_str()
      ->check(CLI::Range(uint64_t{1}, uint64_t{1000000}))
      ->type_name("N");
  command.add_option("--vhost", visit.vhost, "Another virtual host than the configuration leads to")
      ->type_name("NAME");
  command
      .add_option("--offset", visit.offset,
                  "Where to begin in a stream: first (the default), last, next, or a number")
      ->check(CLI::IsMember({"first", "last", "next"}) | CLI::Number)
      ->type_name("OFFSET");
  command.add_flag("--force", visit.force, "Also what is close to its queue's delivery limit");
}

}  // namespace

InspectCommands::InspectCommands(CLI::App& app) : parsed_(std::make_unique<Parsed>()) {
  Parsed& to = *parsed_;
  to.peek = add(app, "peek", "Show the messages in front of a queue (peek QUEUE --config FILE)", peek_footer,
                to.config_file);
  to.peek->add_option("QUEUE", to.peek_options.visit.queue, "A queue's or stream's name")
      ->required()
      ->type_name("");
  add_visit(*to.peek, to.peek_options.visit);
  to.peek->add_flag("--body", to.peek_options.body, "Also the first 4 KiB of the payload");
  to.peek
      ->add_option("--save", to.peek_options.save_dir,
                   "Keep each payload, and what is said of its message, as new files in this folder")
      ->type_name("DIR");
  to.peek->add_flag("--json", to.peek_options.json, "For programs");

  to.where = add(app, "where", "Say where payloads are (where KEY | --queue QUEUE --config FILE)",
                 where_footer, to.config_file);
  to.where->add_option("KEY", to.where_options.key, "A claim's key")->type_name("");
  to.where->add_option("--queue", to.where_options.visit.queue, "Of the messages in front of this queue")
      ->type_name("QUEUE");
  to.where_options.visit.count = 100;
  add_visit(*to.where, to.where_options.visit);
  to.where
      ->add_option("--xxh128", to.where_options.xxh128,
                   "The checksum that KEY's payload should have (header bellhop-claim-xxh128)")
      ->type_name("HEX");
  to.where->add_flag("--json", to.where_options.json, "For programs");

  ReplayOptions& replay = to.replay_options;
  to.replay = add(app, "replay",
                  "Send parked or dead messages back to where they came from (replay QUEUE --config FILE)",
                  replay_footer, to.config_file);
  to.replay->add_option("QUEUE", replay.queue, "A .parked, .dlq or other dead-letter queue")
      ->required()
      ->type_name("");
  to.replay->add_option("--to", replay.to, "Send all of them there; /QUEUE is a queue")
      ->type_name("EXCHANGE/KEY");
  to.replay->add_option("--limit", replay.limit, "At most so many")
      ->check(CLI::Range(uint64_t{1}, std::numeric_limits<uint64_t>::max()))
      ->type_name("N");
  to.replay->add_option("--match", replay.match, "Only messages with this header; the others stay")
      ->type_name("HEADER=TEXT");
  to.replay->add_option("--rate", replay.rate, "No faster than this")->type_name("N/s");
  to.replay->add_flag("--dry-run", replay.dry_run, "Only say where each would go");
  to.replay->add_flag("--without-cc", replay.without_cc,
                      "Send no copies: CC and BCC stay in bellhop-cc, bellhop-bcc");
  to.replay->add_option("--vhost", replay.vhost, "Another virtual host than the configuration leads to")
      ->type_name("NAME");
  to.replay->add_flag("--json", replay.json, "The report for programs");
}

InspectCommands::~InspectCommands() = default;

std::optional<int> InspectCommands::run() {
  const Parsed& from = *parsed_;
  if (from.peek->parsed()) return peek(from.config_file, from.peek_options, std::cout, std::cerr);
  if (from.where->parsed()) return where(from.config_file, from.where_options, std::cout, std::cerr);
  if (from.replay->parsed())
    return replay(from.config_file, from.replay_options, std::cout, std::cerr,
                  ::isatty(2) == 1 ? &std::cerr : nullptr);
  return std::nullopt;
}

}  // namespace bellhop
