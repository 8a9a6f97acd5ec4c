// The log: spdlog's default logger on stderr, one line for each event, as text or JSON. Elsewhere:
// spdlog::info("session opened peer={}", …). What a peer sent may be logged: control characters are escaped,
// so a line stays a line.
#pragma once

#include <spdlog/formatter.h>

#include <memory>
#include <string>

#include "config/config.h"

namespace bellhop {

// Replaces the default logger. Before threads that log exist.
void set_up_log(const config::Config& config);

// `2026-01-31T10:00:00.123Z info session opened peer=…`
std::unique_ptr<spdlog::formatter> text_log_formatter();
// `{"time":"2026-01-31T10:00:00.123Z","level":"info","service":"orders","message":"session opened peer=…"}`
std::unique_ptr<spdlog::formatter> json_log_formatter(std::string service);

}  // namespace bellhop
