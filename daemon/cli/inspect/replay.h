// `bellhop replay QUEUE`: messages out of a parked or dead-letter queue, back to where they came from.
#pragma once

#include <optional>
#include <ostream>
#include <string>

namespace bellhop {

struct ReplayOptions {
  std::string queue, vhost;
  std::optional<std::string> to, match, rate;  // as the command line has them (replay_words.h)
  uint64_t limit = 0;                          // at most so many messages; 0: all
  bool dry_run = false, without_cc = false, json = false;
};

// Takes no more messages than were there at the start. Each is published mandatory, and acknowledged when the
// broker has confirmed it; whatever cannot go stays, and is listed. `progress` is where a person watches:
// null when nobody does. Returns the exit code: 0 all that it took is back where it came from, 1 something
// stays or went wrong, 2 wrong usage or configuration.
int replay(const std::string& config_file, const ReplayOptions& options, std::ostream& out, std::ostream& err,
           std::ostream* progress);

}  // namespace bellhop
