#include "daemon/admin/endpoints.h"

#include <algorithm>

#include "daemon/admin/exposition.h"
#include "daemon/admin/page.h"
#include "daemon/admin/status.h"
#include "daemon/admin/tap_stream.h"
#include "daemon/ops/log.h"
#include "daemon/ops/log_line.h"

namespace bellhop {

namespace {

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::string unknown_route(const std::string& wanted, const std::vector<std::string>& routes) {
  std::string text = "There is no route '" + wanted + "'. ";
  if (routes.empty()) return text + "The configuration has none.\n";
  text += "There is: ";
  for (size_t i = 0; i < routes.size(); ++i) text += (i == 0 ? "" : ", ") + routes[i];
  return text + ".\n";
}

}  // namespace

HttpAnswer Endpoints::answer(const HttpRequest& request) const {
  bool is_look = true, is_act = true;
  const bool reads = request.method == "GET" || request.method == "HEAD";
  if (reads) {
    HttpAnswer looked = look(request, is_look);
    if (is_look) return looked;
  }
  if (request.method == "POST" && request.may_act) {
    HttpAnswer acted = act(request, is_act);
    if (is_act) return acted;
  }
  static constexpr const char* actions[] = {"/log-level", "/drain", "/reload"};
  static constexpr const char* looks[] = {"/healthz", "/readyz", "/metrics", "/status", "/tap", "/"};
  const auto is_path = [&](const char* path) { return request.path == path; };
  if (std::any_of(std::begin(looks), std::end(looks), is_path))
    return {405, "Only GET is allowed here.\n", "text/plain; charset=utf-8", "GET, HEAD"};
  if (std::any_of(std::begin(actions), std::end(actions), is_path)) {
    if (!request.may_act) return {403, "Actions are taken only by the admin socket (admin.socket).\n"};
    return {405, "Only POST is allowed here.\n", "text/plain; charset=utf-8", "POST"};
  }
  return {404,
          "There is: GET /healthz, /readyz?verbose, /metrics, /status, /; by the admin socket GET "
          "/tap?route=, POST /log-level, /drain, /reload.\n"};
}

HttpAnswer Endpoints::look(const HttpRequest& request, bool& known) const {
  if (request.path == "/healthz") return {200, "ok\n"};
  if (request.path == "/readyz") return ready(request.is_verbose);
  if (request.path == "/metrics") return {200, exposition(sources_), exposition_type};
  if (request.path == "/status") return {200, status_json(sources_), "application/json"};
  if (request.path == "/tap") return tap(request);
  if (request.path == "/") return {200, std::string(page()), "text/html; charset=utf-8"};
  known = false;
  return {};
}

// An action is one line here, and one word in answer()'s list and in its 404.
HttpAnswer Endpoints::act(const HttpRequest& request, bool& known) const {
  if (request.path == "/log-level") return change_log_level(trimmed(request.body));
  if (request.path == "/drain") return drain();
  if (request.path == "/reload") return reload();
  known = false;
  return {};
}

HttpAnswer Endpoints::ready(bool verbose) const {
  bool ok = true;
  std::string lines;
  for (const ReadyCheck& check : ready_checks(sources_)) {
    ok = ok && check.ok;
    if (verbose || !check.ok)
      lines += std::string(check.ok ? "[+] " : "[-] ") + check.name + ": " + check.text + "\n";
  }
  return {ok ? 200U : 503U, lines + (ok ? "ready\n" : "not ready\n")};
}

HttpAnswer Endpoints::change_log_level(const std::string& wanted) const {
  if (!set_log_level(wanted))
    return {400, "There is no such level. Allowed: trace, debug, info, warn, error.\n"};
  // A warning, so that it stands in the log whichever level it was.
  log_warn("log level changed by the admin socket", {{"to", wanted}});
  return {200, "log level " + wanted + "\n"};
}

HttpAnswer Endpoints::tap(const HttpRequest& request) const {
  if (!request.may_act) return {403, "Messages are shown only by the admin socket (admin.socket).\n"};
  if (request.method != "GET")
    return {405, "Only GET is allowed here.\n", "text/plain; charset=utf-8", "GET"};
  const std::vector<std::string> routes = sources_.routes();
  if (!request.route.empty() && std::find(routes.begin(), routes.end(), request.route) == routes.end())
    return {404, unknown_route(request.route, routes)};
  auto tap = sources_.taps->begin(request.route);
  if (tap == nullptr)
    return {503, "There are " + std::to_string(Taps::taps_max) +
                     " taps already, and no place for another: end one of them.\n"};
  log_info("tap begins", {if_known("route", request.route)});
  return {.body = {},
          .content_type = "application/x-ndjson",
          .stream = std::make_shared<TapStream>(std::move(tap))};
}

HttpAnswer Endpoints::drain() const {
  const bool already = sources_.is_draining();
  if (!already) sources_.drain();
  return {202, already ? "bellhop is draining already\n" : "bellhop drains\n"};
}

// The answer does not wait: whoever asked looks at /status until config.looks is that number.
HttpAnswer Endpoints::reload() const {
  const uint64_t look = sources_.request_reload();
  if (look == 0) return {409, "bellhop is shutting down\n"};
  return {202, std::to_string(look) + "\n"};
}

}  // namespace bellhop
