#include "daemon/ops/service_environment.h"

#include <unistd.h>

#include <cstdlib>
#include <map>
#include <string>

#include "test/support/catch.h"

using namespace bellhop;

namespace {

constexpr pid_t self = 4242;

Result<ServiceEnvironment> parse(const std::map<std::string, std::string>& variables) {
  return parse_service_environment(
      [&variables](const char* name) -> const char* {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
      },
      self);
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("without a service manager there is nothing to do", "[service]") {
  const auto none = parse({});
  REQUIRE(none);
  CHECK(none.value().notify_socket.empty());
  CHECK(none.value().watchdog_us == 0);
  CHECK(none.value().inherited.empty());
  CHECK(none.value().warnings.empty());
}

TEST_CASE("the watchdog is for whom it names, or for everybody", "[service]") {
  CHECK(parse({{"WATCHDOG_USEC", "30000000"}}).value().watchdog_us == 30'000'000);
  CHECK(parse({{"WATCHDOG_USEC", "30000000"}, {"WATCHDOG_PID", "4242"}}).value().watchdog_us == 30'000'000);
  for (const char* pid : {"4243", "424", "42420", "x", "-4242", " 4242"})
    CHECK(parse({{"WATCHDOG_USEC", "30000000"}, {"WATCHDOG_PID", pid}}).value().watchdog_us == 0);
  CHECK(parse({{"WATCHDOG_USEC", ""}}).value().warnings.empty());
  for (const char* time : {"0", "30s", "-1", "99999999999999999999999", "0x10"}) {
    const auto odd = parse({{"WATCHDOG_USEC", time}});
    CHECK(odd.value().watchdog_us == 0);
    CHECK(odd.value().warnings == Names{"WATCHDOG_USEC=" + std::string(time) +
                                        " is no number of microseconds: no signs of life are sent"});
  }
}

TEST_CASE("inherited sockets are counted, with their names", "[service]") {
  const auto inherited = [](const std::string& count, const std::string& names) {
    return parse({{"LISTEN_FDS", count}, {"LISTEN_PID", "4242"}, {"LISTEN_FDNAMES", names}})
        .value()
        .inherited;
  };
  CHECK(inherited("0", "").empty());
  CHECK(inherited("1", "bellhop.socket") == Names{"bellhop.socket"});
  CHECK(inherited("2", "") == Names{"", ""});
  CHECK(inherited("3", "a::c") == Names{"a", "", "c"});
  CHECK(inherited("3", "a") == Names{"a", "", ""});
  CHECK(inherited("1", "a:b") == Names{"a"});
  CHECK(parse({{"LISTEN_FDS", "2"}, {"LISTEN_PID", "4242"}}).value().inherited == Names{"", ""});
}

TEST_CASE("sockets of another process are not ours", "[service]") {
  CHECK(parse({{"LISTEN_FDS", "1"}}).value().inherited.empty());
  for (const char* pid : {"", "1", "4242 ", "+4242"})
    CHECK(parse({{"LISTEN_FDS", "1"}, {"LISTEN_PID", pid}}).value().inherited.empty());
}

TEST_CASE("a number of sockets that is none is an error", "[service]") {
  for (const char* count : {"one", "-1", "1.5", "1025", "99999999999999999999", "1 "}) {
    const auto odd = parse({{"LISTEN_FDS", count}, {"LISTEN_PID", "4242"}});
    REQUIRE_FALSE(odd);
    CHECK(odd.error() ==
          "LISTEN_FDS=" + std::string(count) + " is no number of inherited sockets, allowed: 0 to 1024");
  }
}

TEST_CASE("the variables are taken out of the environment", "[service]") {
  const std::map<std::string, std::string> variables{
      {"NOTIFY_SOCKET", "/run/n"}, {"WATCHDOG_USEC", "5"},  {"WATCHDOG_PID", std::to_string(::getpid())},
      {"LISTEN_FDS", "1"},         {"LISTEN_FDNAMES", "a"}, {"LISTEN_PID", std::to_string(::getpid())}};
  for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
  const auto taken = take_service_environment();
  CHECK(taken.value().notify_socket == "/run/n");
  CHECK(taken.value().watchdog_us == 5);
  CHECK(taken.value().inherited == Names{"a"});
  for (const auto& [name, value] : variables) CHECK(std::getenv(name.c_str()) == nullptr);
  CHECK(take_service_environment().value().inherited.empty());
}
