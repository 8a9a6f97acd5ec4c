#include "daemon/cli/admin_side.h"

#include <utility>

#include "daemon/ops/log_line.h"

namespace bellhop {

AdminSide::AdminSide(AdminSources sources, std::function<void()> asked)
    : endpoints_(std::move(sources)),
      server_([this](const HttpRequest& request) { return endpoints_.answer(request); }),
      asked_(std::move(asked)) {}

std::vector<config::Listen> AdminSide::entries_of(const config::Admin& admin) {
  std::vector<config::Listen> entries;
  if (!admin.socket.empty()) {
    config::UnixListen socket;
    socket.path = admin.socket;
    socket.mode = 0600;  // who may open it may do everything
    entries.emplace_back(std::move(socket));
  }
  if (admin.tcp) {
    config::TcpListen tcp;
    tcp.host = admin.tcp->host;
    tcp.port = admin.tcp->port;
    entries.emplace_back(std::move(tcp));
  }
  return entries;
}

Result<std::unique_ptr<AdminSide>> AdminSide::open(uv_loop_t* loop, const config::Admin& admin,
                                                   InheritedSockets& inherited, AdminSources sources,
                                                   std::function<void()> asked) {
  std::unique_ptr<AdminSide> side(new AdminSide(std::move(sources), std::move(asked)));
  for (config::Listen& entry : entries_of(admin)) {
    const bool is_socket = std::holds_alternative<config::UnixListen>(entry);
    const auto listens = side->listen(loop, inherited, std::move(entry));
    if (listens) continue;
    if (!is_socket) return Error{"admin.tcp: " + listens.error()};
    if (!admin.is_default_socket) return Error{"admin.socket: " + listens.error()};
    log_warn("there is no admin socket; to have one, set admin.socket", {{"reason", listens.error()}});
  }
  return side;
}

Result<void> AdminSide::listen(uv_loop_t* loop, InheritedSockets& inherited, config::Listen where) {
  entries_.push_back(
      std::make_unique<const std::vector<config::Listen>>(std::vector<config::Listen>{std::move(where)}));
  auto listener = Listener::open(loop, *entries_.back(), inherited, [this](Accepted accepted) {
    asked_();
    server_.accept(accepted.fd.release(), accepted.tcp == nullptr);
  });
  if (!listener) return Error{listener.error()};
  listeners_.push_back(std::move(listener.value()));
  return {};
}

void AdminSide::close() {
  for (const auto& listener : listeners_) listener->close();
}

std::vector<std::string> AdminSide::addresses() const {
  std::vector<std::string> all;
  for (const auto& listener : listeners_) {
    for (std::string& address : listener->addresses()) all.push_back(std::move(address));
  }
  return all;
}

}  // namespace bellhop
