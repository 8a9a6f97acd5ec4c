// The commands that look into queues and stores and need no running bellhop, only the configuration: what
// they are called, what they take, and what --help says.
#pragma once

#include <memory>
#include <optional>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}

namespace bellhop {

class InspectCommands {
 public:
  // Adds them to the program's own. `app` must outlive it.
  explicit InspectCommands(CLI::App& app);
  ~InspectCommands();
  InspectCommands(const InspectCommands&) = delete;
  InspectCommands& operator=(const InspectCommands&) = delete;

  // Once the command line is parsed: the exit code of the one that was asked for, or nothing when it was none
  // of them.
  std::optional<int> run();

 private:
  struct Parsed;
  const std::unique_ptr<Parsed> parsed_;
};

}  // namespace bellhop
