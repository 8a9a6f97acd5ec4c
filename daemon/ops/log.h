// The log: spdlog's default logger on stderr, one line for each event, as text or JSON. Lines are made with
// ops/log_line.h. A line may hold what a peer sent: control characters are escaped, so a line stays a line.
// Logging never blocks (ops/log_queue.h). Trouble that can repeat goes through ops/trouble.h.
#pragma once

#include <spdlog/formatter.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "config/config.h"
#include "daemon/ops/log_line.h"

namespace bellhop {

// Replaces the default logger. Call it before any thread that logs exists.
void set_up_log(const config::Config& config);
// Any thread, after set_up_log(). Waits until everything logged before is written, but no longer than
// `at_most`: nobody may be reading. The last act of a process that ends.
void finish_log(std::chrono::milliseconds at_most);
// Any thread. The number of lines dropped because nobody read them fast enough.
uint64_t log_lines_dropped();

// Any thread. The least important lines that are logged; false: there is no level of that name.
bool set_log_level(std::string_view name);
void set_log_level(config::LogLevel level);
std::string_view log_level();

// Fields outside of the log, in its own forms: `session=7 peer="unix uid=1000"`, and the members of a JSON
// object, without its braces. Then the time now, as a line has it.
std::string fields_as_text(const LogFields& fields);
std::string fields_as_json(const LogFields& fields);
std::string log_time();

// `2026-01-31T10:00:00.123Z info session opened session=7 peer="unix uid=1000"`
std::unique_ptr<spdlog::formatter> text_log_formatter();
// `{"time":"2026-01-31T10:00:00.123Z","level":"info","service":"orders","message":"session
// opened","session":7}`
std::unique_ptr<spdlog::formatter> json_log_formatter(std::string service);

}  // namespace bellhop
