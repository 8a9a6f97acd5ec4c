// Time from a publish to its confirm, one at a time. All endpoints are measured in one run, message by
// message in turn, so that what the machine and the broker do meanwhile falls on each of them alike.
// "echo-tcp" and "echo-unix" are a thread of this process that answers as many bytes as a confirm has: the
// round trip that a socket alone costs.

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <thread>

#include "test/bench/client/connection.h"
#include "test/bench/client/fail.h"
#include "test/bench/client/modes.h"
#include "test/bench/client/stopwatch.h"

namespace bellhop::bench {
namespace {

constexpr size_t kConfirmBytes = 21;

// Something that takes a message and answers.
class Target {
 public:
  virtual ~Target() = default;
  virtual void round_trip() = 0;
  virtual void finish() {}
};

class Broker : public Target {
 public:
  Broker(const std::string& endpoint, const Options& options) : connection_(endpoint) {
    connection_.declare_queue(options.queue, options.queue_type);
    connection_.select_confirms();
    bytes_ = make_message(options.exchange, options.routing_key, options.properties, options.body_bytes,
                          connection_.frame_max())
                 .bytes;
  }
  void round_trip() override {
    connection_.send(bytes_);
    Reader reader(connection_.await_method(kBasicAck));
    if (reader.u64() != ++published_) fail("a confirm for another message");
  }
  void finish() override { connection_.close(); }

 private:
  Connection connection_;
  std::vector<uint8_t> bytes_;
  uint64_t published_ = 0;
};

// The echo's thread ends when the socket to it is closed.
class Echo : public Target {
 public:
  Echo(int family, size_t message_bytes) : bytes_(message_bytes, 'x') {
    int ends[2];
    family == AF_UNIX ? pair_unix(ends) : pair_tcp(ends);
    descriptor_ = ends[0];
    thread_ = std::thread([peer = ends[1], message_bytes] { serve(peer, message_bytes); });
  }
  ~Echo() override {
    ::shutdown(descriptor_, SHUT_RDWR);
    thread_.join();
    ::close(descriptor_);
  }
  void round_trip() override {
    if (::send(descriptor_, bytes_.data(), bytes_.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(bytes_.size()))
      fail_errno("echo send");
    uint8_t answer[kConfirmBytes];
    if (::recv(descriptor_, answer, sizeof answer, MSG_WAITALL) != sizeof answer) fail_errno("echo recv");
  }

 private:
  static void pair_unix(int ends[2]) {
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) fail_errno("socketpair");
  }
  static void pair_tcp(int ends[2]) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t address_bytes = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::bind(listener, generic, sizeof address) != 0 || ::listen(listener, 1) != 0 ||
        ::getsockname(listener, generic, &address_bytes) != 0)
      fail_errno("echo listener");
    ends[0] = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(ends[0], generic, sizeof address) != 0) fail_errno("echo connect");
    ends[1] = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    ::close(listener);
  }
  static void serve(int peer, size_t message_bytes) {
    std::vector<uint8_t> message(message_bytes);
    const uint8_t answer[kConfirmBytes] = {};
    // Waits by poll before each read, as every program on the measured path does.
    for (pollfd entry{peer, POLLIN, 0}; ::poll(&entry, 1, -1) == 1;) {
      if (::recv(peer, message.data(), message.size(), MSG_WAITALL) != static_cast<ssize_t>(message.size()))
        break;
      if (::send(peer, answer, sizeof answer, MSG_NOSIGNAL) != sizeof answer) break;
    }
    ::close(peer);
  }

  int descriptor_;
  std::vector<uint8_t> bytes_;
  std::thread thread_;
};

std::unique_ptr<Target> make_target(const std::string& endpoint, const Options& options) {
  if (endpoint == "echo-tcp") return std::make_unique<Echo>(AF_INET, options.body_bytes + 64);
  if (endpoint == "echo-unix") return std::make_unique<Echo>(AF_UNIX, options.body_bytes + 64);
  return std::make_unique<Broker>(endpoint, options);
}

double at_share(std::vector<double>& sorted, double share) {
  return sorted[std::min(sorted.size() - 1, static_cast<size_t>(share * static_cast<double>(sorted.size())))];
}

}  // namespace

void latency(const Options& options) {
  std::vector<std::unique_ptr<Target>> targets;
  for (const std::string& endpoint : options.endpoints) targets.push_back(make_target(endpoint, options));
  std::vector<std::vector<double>> times_us(targets.size());

  const uint64_t warm_up = std::min<uint64_t>(50, options.count);
  for (uint64_t round = 0; round < warm_up + options.count; ++round) {
    for (size_t step = 0; step < targets.size(); ++step) {
      const size_t at = (round + step) % targets.size();  // nobody is always the one behind the slowest
      const auto start = Clock::now();
      targets[at]->round_trip();
      if (round >= warm_up) times_us[at].push_back(seconds_since(start) * 1e6);
    }
  }

  for (auto& target : targets) target->finish();
  const std::string* broker = nullptr;
  uint64_t brokers = 0;
  for (const std::string& endpoint : options.endpoints)
    if (!endpoint.starts_with("echo-")) {
      broker = &endpoint;
      ++brokers;
    }
  if (broker != nullptr) {
    Connection connection(*broker);
    connection.await_messages(options.queue, brokers * (warm_up + options.count));
    connection.delete_queue(options.queue);
    connection.close();
  }
  std::printf("[");
  for (size_t i = 0; i < targets.size(); ++i) {
    std::sort(times_us[i].begin(), times_us[i].end());
    std::printf("%s{\"endpoint\": \"%s\", \"median_us\": %.2f, \"p99_us\": %.2f}", i == 0 ? "" : ", ",
                options.endpoints[i].c_str(), at_share(times_us[i], 0.5), at_share(times_us[i], 0.99));
  }
  std::printf("]\n");
}

}  // namespace bellhop::bench
