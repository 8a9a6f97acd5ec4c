// AdminSide: the admin listeners of a running bellhop, wired to what they show. Main thread; requests are
// answered on a thread of the HTTP server's.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/admin/endpoints.h"
#include "daemon/admin/http_server.h"
#include "daemon/door/listener.h"

namespace bellhop {

class AdminSide {
 public:
  // The listeners that `admin` asks for, as entries: what a Listener and inherited sockets know.
  static std::vector<config::Listen> entries_of(const config::Admin& admin);
  // A socket that the configuration names, and the TCP address, must be had; the default socket need not.
  // `asked` is called for each connection, on the main thread.
  static Result<std::unique_ptr<AdminSide>> open(uv_loop_t* loop, const config::Admin& admin,
                                                 InheritedSockets& inherited, AdminSources sources,
                                                 std::function<void()> asked);
  // Accepts nothing more, and removes the socket's file. Answers under way go on. Again is harmless.
  void close();
  std::vector<std::string> addresses() const;

 private:
  AdminSide(AdminSources sources, std::function<void()> asked);
  Result<void> listen(uv_loop_t* loop, InheritedSockets& inherited, config::Listen where);

  const Endpoints endpoints_;
  HttpServer server_;
  const std::function<void()> asked_;
  // A listener borrows its entry.
  std::vector<std::unique_ptr<const std::vector<config::Listen>>> entries_;
  std::vector<std::unique_ptr<Listener>> listeners_;
};

}  // namespace bellhop
