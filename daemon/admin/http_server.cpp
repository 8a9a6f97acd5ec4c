#include "daemon/admin/http_server.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>

#include "daemon/ops/log_line.h"
#include "daemon/ops/trouble.h"

namespace bellhop {

namespace {

// A request whose body is coming. `too_large`: what is past the bound was dropped.
struct Pending {
  HttpRequest request;
  bool too_large = false;
};

void say_nothing(void*, const char*, va_list) {}

}  // namespace

HttpServer::~HttpServer() {
  if (daemon_ == nullptr) return;
  streams_->end();  // libmicrohttpd ends the process when it is stopped with one suspended
  http_->stop_daemon(daemon_);
}

bool HttpServer::start() {
  if (daemon_ != nullptr) return true;
  if (failed_) return false;
  failed_ = true;
  auto library = MicrohttpdLibrary::load();
  if (!library) {
    log_error("admin connections are closed", {{"reason", library.error()}});
    return false;
  }
  http_ = library.value();
  streams_ = std::make_unique<HttpStreams>(*http_);
  // Signals are for the threads that wait for them.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  daemon_ = http_->start_daemon(
      MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ITC | MHD_ALLOW_SUSPEND_RESUME, 0,
      nullptr, nullptr, on_request, this, MHD_OPTION_CONNECTION_LIMIT, library_connections_max,
      MHD_OPTION_CONNECTION_TIMEOUT, idle_s_max, MHD_OPTION_CONNECTION_MEMORY_LIMIT, head_bytes_max,
      MHD_OPTION_NOTIFY_CONNECTION, on_connection, this, MHD_OPTION_NOTIFY_COMPLETED, on_completed, this,
      MHD_OPTION_EXTERNAL_LOGGER, say_nothing, nullptr, MHD_OPTION_END);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (daemon_ == nullptr) {
    log_error("admin connections are closed",
              {{"reason", std::string("libmicrohttpd cannot be started: ") + std::strerror(errno)}});
    return false;
  }
  failed_ = false;
  return true;
}

void HttpServer::accept(int fd, bool is_unix) {
  if (open_ >= burst_max || !start()) {
    ::close(fd);
    return;
  }
  // All that the server's thread wants to know of the address is its family.
  sockaddr_storage from{};
  from.ss_family = is_unix ? AF_UNIX : AF_INET;
  ++open_;
  if (http_->add_connection(daemon_, fd, reinterpret_cast<const sockaddr*>(&from),
                            is_unix ? sizeof(sockaddr_un) : sizeof(sockaddr_in)) != MHD_YES)
    --open_;  // it closed the descriptor
}

bool HttpServer::is_unix(MHD_Connection* connection) const {
  const auto* info = http_->get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  return info != nullptr && info->client_addr != nullptr && info->client_addr->sa_family == AF_UNIX;
}

void HttpServer::on_connection(void* self, MHD_Connection* connection, void**,
                               MHD_ConnectionNotificationCode what) {
  auto& server = *static_cast<HttpServer*>(self);
  if (what == MHD_CONNECTION_NOTIFY_STARTED) {
    server.began(connection);
  } else {
    --server.open_;
    server.connections_.remove_if([&](const Connection& each) { return each.connection == connection; });
  }
}

void HttpServer::began(MHD_Connection* connection) {
  const auto* info = http_->get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  const bool by_unix = is_unix(connection);
  connections_.push_back({connection, info != nullptr ? info->connect_fd : -1, by_unix});
  const auto taken = std::count_if(connections_.begin(), connections_.end(), [&](const Connection& each) {
    return each.is_unix == by_unix && !each.gives_way && !each.is_stream;
  });
  if (static_cast<size_t>(taken) <= connections_max) return;
  const auto oldest = std::find_if(connections_.begin(), connections_.end(), [&](const Connection& each) {
    return each.is_unix == by_unix && !each.gives_way && !each.is_stream;
  });
  // The server's thread alone closes descriptors, and this is it: the number is still that connection's.
  oldest->gives_way = true;
  ::shutdown(oldest->fd, SHUT_RDWR);
}

MHD_Result HttpServer::on_request(void* self, MHD_Connection* connection, const char* path,
                                  const char* method, const char*, const char* body, size_t* body_bytes,
                                  void** context) {
  auto& server = *static_cast<HttpServer*>(self);
  auto* pending = static_cast<Pending*>(*context);
  if (pending == nullptr) {
    auto* const made = new Pending;
    *context = made;
    made->request.method = method;
    made->request.path = path;
    made->request.may_act = server.is_unix(connection);
    const char* route = nullptr;
    size_t route_bytes = 0;
    if (server.http_->lookup_connection_value_n(connection, MHD_GET_ARGUMENT_KIND, "route", 5, &route,
                                                &route_bytes) == MHD_YES &&
        route != nullptr)
      made->request.route.assign(route, route_bytes);
    made->request.is_verbose =
        server.http_->lookup_connection_value_n(connection, MHD_GET_ARGUMENT_KIND, "verbose", 7, nullptr,
                                                nullptr) == MHD_YES;
    return MHD_YES;
  }
  if (*body_bytes != 0) {
    std::string& kept = pending->request.body;
    if (kept.size() + *body_bytes > body_bytes_max)
      pending->too_large = true;
    else
      kept.append(body, *body_bytes);
    *body_bytes = 0;
    return MHD_YES;
  }
  if (pending->too_large)
    return server.send(connection, {413, "The body is too large: at most 1024 bytes.\n"});
  return server.answer(connection, pending->request);
}

void HttpServer::on_completed(void*, MHD_Connection*, void** context, MHD_RequestTerminationCode) {
  delete static_cast<Pending*>(*context);
  *context = nullptr;
}

MHD_Result HttpServer::answer(MHD_Connection* connection, const HttpRequest& request) {
  try {
    return send(connection, handle_(request));
  } catch (const std::exception& error) {
    tell_trouble("admin request failed", subject_of_reason(error.what()), "admin request failed",
                 {{"method", request.method}, {"path", request.path}, {"reason", error.what()}},
                 spdlog::level::err);
    return send(connection, {500, "bellhop could not make the answer; its log says why.\n"});
  }
}

MHD_Response* HttpServer::response_of(MHD_Connection* connection, const HttpAnswer& answer) {
  if (answer.stream == nullptr)
    return http_->create_response_from_buffer(answer.body.size(), const_cast<char*>(answer.body.data()),
                                              MHD_RESPMEM_MUST_COPY);
  for (Connection& each : connections_) each.is_stream = each.is_stream || each.connection == connection;
  return streams_->response_of(connection, answer.stream);
}

MHD_Result HttpServer::send(MHD_Connection* connection, const HttpAnswer& answer) {
  MHD_Response* const response = response_of(connection, answer);
  if (response == nullptr) return MHD_NO;
  const auto header = [&](const char* name, const char* value) {
    http_->add_response_header(response, name, value);
  };
  header("Content-Type", answer.content_type.c_str());
  header("Cache-Control", "no-store");
  header("X-Content-Type-Options", "nosniff");
  header("Content-Security-Policy",
         "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; "
         "frame-ancestors 'none'");
  header("Connection", "close");
  if (!answer.allow.empty()) header("Allow", answer.allow.c_str());
  const MHD_Result queued = http_->queue_response(connection, answer.status, response);
  http_->destroy_response(response);
  return queued;
}

}  // namespace bellhop
