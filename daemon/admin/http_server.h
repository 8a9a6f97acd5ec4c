// HttpServer: HTTP/1.1 for the admin listeners, by libmicrohttpd on a thread of its own that begins with the
// first connection. It knows connections and their bounds; what is answered is the Handle's.
//
//   main loop: accepted ─► accept() ─► the server's thread: request ─► Handle ─► answer ─► closed
//
// 1. A connection is one request, and is closed after the answer. The main loop accepts each, so an answer
//    proves that this loop is well.
// 2. Each door has connections_max places. When they are taken, the oldest connection gives way: who holds
//    places without asking anything cannot keep others out. A burst is cut at burst_max.
// 3. What stands still for idle_s_max is closed. A request's head has at most head_bytes_max, its body
//    body_bytes_max.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "daemon/admin/http_streams.h"
#include "daemon/admin/microhttpd_library.h"

namespace bellhop {

struct HttpRequest {
  std::string method, path, body;
  bool is_verbose = false;  // ?verbose
  bool may_act = false;     // it came by the admin socket
  std::string route{};      // ?route=
};

struct HttpAnswer {
  unsigned status = 200;
  std::string body;
  std::string content_type = "text/plain; charset=utf-8";
  std::string allow{};                   // for 405: what is allowed
  std::shared_ptr<HttpStream> stream{};  // then it is the body
};

class HttpServer {
 public:
  static constexpr size_t connections_max = 32;
  static constexpr size_t burst_max = 128;
  // libmicrohttpd 0.9.75 waits for itself for ever when its own limit is reached: it never is.
  static constexpr unsigned library_connections_max = 1024;
  static constexpr unsigned idle_s_max = 10;
  static constexpr size_t head_bytes_max = 16 * 1024, body_bytes_max = 1024;

  // The server's thread. May throw: then the answer is 500.
  using Handle = std::function<HttpAnswer(const HttpRequest&)>;

  explicit HttpServer(Handle handle) : handle_(std::move(handle)) {}
  // Main thread. Ends the server's thread and closes its connections.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Main thread. Takes the descriptor, a Unix socket's or a TCP one's.
  void accept(int fd, bool is_unix);

 private:
  struct Connection {
    MHD_Connection* connection;
    int fd;
    bool is_unix;
    bool gives_way = false;
    bool is_stream = false;  // has no place of the others, and keeps its own
  };
  bool start();
  static void on_connection(void* self, MHD_Connection* connection, void** context,
                            MHD_ConnectionNotificationCode what);
  static MHD_Result on_request(void* self, MHD_Connection* connection, const char* path, const char* method,
                               const char* version, const char* body, size_t* body_bytes, void** context);
  static void on_completed(void* self, MHD_Connection* connection, void** context,
                           MHD_RequestTerminationCode why);
  MHD_Result answer(MHD_Connection* connection, const HttpRequest& request);
  MHD_Result send(MHD_Connection* connection, const HttpAnswer& answer);
  MHD_Response* response_of(MHD_Connection* connection, const HttpAnswer& answer);
  bool is_unix(MHD_Connection* connection) const;
  void began(MHD_Connection* connection);

  const Handle handle_;
  const MicrohttpdLibrary* http_ = nullptr;
  MHD_Daemon* daemon_ = nullptr;
  bool failed_ = false;
  std::unique_ptr<HttpStreams> streams_;
  std::atomic<size_t> open_{0};        // handed over and not closed
  std::list<Connection> connections_;  // the server's thread, the oldest first
};

}  // namespace bellhop
