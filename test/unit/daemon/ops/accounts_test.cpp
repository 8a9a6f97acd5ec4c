#include "daemon/ops/accounts.h"

#include <grp.h>
#include <pwd.h>

#include <cerrno>
#include <string_view>

#include "test/support/catch.h"

using namespace bellhop;

namespace {

// A host with one group, 40 called "7", whose members need some space.
int host_with_group_7(const char* name, group* entry, char*, size_t bytes, group** found) {
  *found = nullptr;
  if (std::string_view(name) != "7") return 0;
  if (bytes < 100'000) return ERANGE;
  entry->gr_gid = 40;
  *found = entry;
  return 0;
}

int host_that_cannot_say(const char*, group*, char*, size_t, group** found) {
  *found = nullptr;
  return EIO;
}

}  // namespace

TEST_CASE("a group is found by its name", "[accounts]") {
  const group* const some = ::getgrnam("daemon");
  REQUIRE(some != nullptr);
  REQUIRE(group_id("daemon").value() == some->gr_gid);
  REQUIRE(group_name(some->gr_gid) == "daemon");
}

TEST_CASE("a number is a group's id, whether the host knows it or not", "[accounts]") {
  REQUIRE(group_id("0").value() == 0);
  REQUIRE(group_id("3999999999").value() == 3999999999);
}

TEST_CASE("a group whose name looks like a number is found by its name", "[accounts]") {
  REQUIRE(group_id("7", host_with_group_7).value() == 40);
  REQUIRE(group_id("40", host_with_group_7).value() == 40);
  REQUIRE(group_id("8", host_with_group_7).value() == 8);
}

TEST_CASE("where groups cannot be looked up a number is one all the same", "[accounts]") {
  REQUIRE(group_id("8", host_that_cannot_say).value() == 8);
  REQUIRE(group_id("app", host_that_cannot_say).error() == "cannot look up group 'app': Input/output error");
}

TEST_CASE("what is neither a group's name nor a number is an error that names it", "[accounts]") {
  const auto* const text =
      GENERATE("no-such-group", "", " 7", "7 ", "+7", "-1", "0x7", "7a", "4294967295", "4294967296");
  CAPTURE(text);
  const Result<gid_t> id = group_id(text);
  REQUIRE_FALSE(id);
  REQUIRE(id.error() == "this host has no group '" + std::string(text) + "'");
}

TEST_CASE("a number has a name, or is unknown", "[accounts]") {
  const passwd* const root = ::getpwuid(0);
  REQUIRE(root != nullptr);
  REQUIRE(user_name(0) == root->pw_name);
  REQUIRE(user_name(3999999999) == "unknown");
  REQUIRE(group_name(3999999999) == "unknown");
}
