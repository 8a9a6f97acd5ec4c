// Endpoints: what each path of the admin listeners answers and does.
//
//   GET  /healthz            the main loop runs. It says nothing of the broker
//   GET  /readyz[?verbose]   a publish made now would be taken; with a line for each check
//   GET  /metrics  /status   numbers, for Prometheus and as JSON
//   GET  /                   the page
//   GET  /tap[?route=R]      a line for each message that goes by, by the admin socket only
//   POST /log-level /drain /reload   by the admin socket only
#pragma once

#include "daemon/admin/http_server.h"
#include "daemon/admin/sources.h"

namespace bellhop {

class Endpoints {
 public:
  explicit Endpoints(AdminSources sources) : sources_(std::move(sources)) {}
  // The server's thread.
  HttpAnswer answer(const HttpRequest& request) const;

 private:
  HttpAnswer look(const HttpRequest& request, bool& known) const;
  HttpAnswer act(const HttpRequest& request, bool& known) const;
  HttpAnswer ready(bool verbose) const;
  HttpAnswer change_log_level(const std::string& wanted) const;
  HttpAnswer drain() const;
  HttpAnswer reload() const;
  HttpAnswer tap(const HttpRequest& request) const;

  const AdminSources sources_;
};

}  // namespace bellhop
