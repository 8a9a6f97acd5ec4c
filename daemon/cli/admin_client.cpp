#include "daemon/cli/admin_client.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "daemon/claims/s3/curl_library.h"
#include "daemon/ops/file_descriptor.h"

namespace bellhop {

namespace {

size_t append(char* bytes, size_t one, size_t count, void* out) {
  static_cast<std::string*>(out)->append(bytes, one * count);
  return one * count;
}

// 0: somebody listens there. libcurl does not tell why it could not connect to a Unix socket.
int try_to_connect(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return ENAMETOOLONG;
  std::memcpy(address.sun_path, path.data(), path.size());
  const FileDescriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe.is_open()) return errno;
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return 0;
  return errno;
}

struct Followed {
  const CurlLibrary& curl;
  CURL* request;
  const AdminClient::OnBytes& on_bytes;
  AdminClient::Answer answer;
  bool was_ended = false;  // by on_bytes
};

size_t follow_bytes(char* bytes, size_t one, size_t count, void* raw) {
  auto& followed = *static_cast<Followed*>(raw);
  const std::string_view text(bytes, one * count);
  followed.curl.easy_getinfo(followed.request, CURLINFO_RESPONSE_CODE, &followed.answer.status);
  if (followed.answer.status != 200) {
    followed.answer.body += text;
    return text.size();
  }
  if (followed.on_bytes(text)) return text.size();
  followed.was_ended = true;
  return 0;
}

}  // namespace

std::string AdminClient::what_is_in_the_way(int error) const {
  switch (error) {
    case ENOENT:
      return "there is no admin socket " + socket_ +
             ": bellhop does not run, or its socket is elsewhere (--config FILE or --socket PATH says where)";
    case ECONNREFUSED:
      return "nobody listens on the admin socket " + socket_ +
             ": bellhop was killed. Start it again; it replaces the socket";
    case EACCES:
    case EPERM:
      return "no permission for the admin socket " + socket_ + ": ask as bellhop's own user, or as root";
    case EAGAIN:
      return "the admin socket " + socket_ +
             " takes no connection: bellhop stands still, or is asked too much";
    default:
      return "the admin socket " + socket_ + ": " + std::strerror(error);
  }
}

Result<AdminClient::Answer> AdminClient::ask(const std::string& path, const std::string* body,
                                             uint64_t within_ms) const {
  if (const int error = try_to_connect(socket_); error != 0) return Error{what_is_in_the_way(error)};
  const auto library = CurlLibrary::load();
  if (!library) return Error{library.error()};
  const CurlLibrary& curl = *library.value();
  const std::unique_ptr<CURL, decltype(curl.easy_cleanup)> request(curl.easy_init(), curl.easy_cleanup);
  if (request == nullptr) return Error{"libcurl makes no request"};
  Answer answer;
  const std::string url = "http://bellhop" + path;
  curl.easy_setopt(request.get(), CURLOPT_UNIX_SOCKET_PATH, socket_.c_str());
  curl.easy_setopt(request.get(), CURLOPT_URL, url.c_str());
  curl.easy_setopt(request.get(), CURLOPT_PROXY, "");  // whatever the environment says
  curl.easy_setopt(request.get(), CURLOPT_NOSIGNAL, 1L);
  curl.easy_setopt(request.get(), CURLOPT_TIMEOUT_MS, static_cast<long>(within_ms));
  curl.easy_setopt(request.get(), CURLOPT_WRITEFUNCTION, append);
  curl.easy_setopt(request.get(), CURLOPT_WRITEDATA, &answer.body);
  if (body != nullptr) {
    curl.easy_setopt(request.get(), CURLOPT_POSTFIELDSIZE, static_cast<long>(body->size()));
    curl.easy_setopt(request.get(), CURLOPT_POSTFIELDS, body->c_str());
  }
  const CURLcode code = curl.easy_perform(request.get());
  if (code == CURLE_OPERATION_TIMEDOUT) {
    return Error{
        fmt::format("no answer by {} within {} s: bellhop stands still, or this host has too much to do",
                    socket_, static_cast<double>(within_ms) / 1000)};
  }
  if (code != CURLE_OK) {
    return Error{
        fmt::format("no answer by {}: {}; bellhop may have just ended", socket_, curl.easy_strerror(code))};
  }
  curl.easy_getinfo(request.get(), CURLINFO_RESPONSE_CODE, &answer.status);
  return answer;
}

Result<AdminClient::Answer> AdminClient::follow(const std::string& path, const OnBytes& on_bytes) const {
  if (const int error = try_to_connect(socket_); error != 0) return Error{what_is_in_the_way(error)};
  const auto library = CurlLibrary::load();
  if (!library) return Error{library.error()};
  const CurlLibrary& curl = *library.value();
  const std::unique_ptr<CURL, decltype(curl.easy_cleanup)> request(curl.easy_init(), curl.easy_cleanup);
  if (request == nullptr) return Error{"libcurl makes no request"};
  Followed followed{curl, request.get(), on_bytes, {}};
  const std::string url = "http://bellhop" + path;
  curl.easy_setopt(request.get(), CURLOPT_UNIX_SOCKET_PATH, socket_.c_str());
  curl.easy_setopt(request.get(), CURLOPT_URL, url.c_str());
  curl.easy_setopt(request.get(), CURLOPT_PROXY, "");
  curl.easy_setopt(request.get(), CURLOPT_NOSIGNAL, 1L);
  curl.easy_setopt(request.get(), CURLOPT_WRITEFUNCTION, follow_bytes);
  curl.easy_setopt(request.get(), CURLOPT_WRITEDATA, &followed);
  const CURLcode code = curl.easy_perform(request.get());
  if (code != CURLE_OK && !followed.was_ended)
    return Error{fmt::format("the answer by {} broke off: {}; bellhop has ended, or was killed", socket_,
                             curl.easy_strerror(code))};
  curl.easy_getinfo(request.get(), CURLINFO_RESPONSE_CODE, &followed.answer.status);
  return std::move(followed.answer);
}

}  // namespace bellhop
