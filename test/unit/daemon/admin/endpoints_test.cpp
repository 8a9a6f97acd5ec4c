// What each path answers, without a socket: who may act, when bellhop is ready, what the numbers look like.
#include "daemon/admin/endpoints.h"

#include <nlohmann/json.hpp>

#include "config/load.h"
#include "daemon/cli/status_text.h"
#include "test/support/catch.h"

using namespace bellhop;

namespace {

struct Daemon {
  Daemon() {
    sources.config = [config = std::make_shared<const config::Config>(configured())] { return config; };
    sources.version = "1.2.3";
    sources.meter = &meter;
    sources.reload = &reload;
    sources.taps = &taps;
    sources.routes = [] { return std::vector<std::string>{"a \"b\""}; };
    sources.inflight_bytes = [] { return uint64_t{7}; };
    sources.scratch_bytes = [] { return uint64_t{8}; };
    sources.is_draining = [this] { return drains != 0; };
    sources.drain = [this] { ++drains; };
    sources.request_reload = [this] { return drains != 0 ? uint64_t{0} : ++reloads; };
  }
  static config::Config configured() {
    return config::load_text(R"(
broker: { url: amqp://localhost }
stores: { claims: { type: memory } }
routes: [{ name: "a \"b\"", match: { exchange: orders } }]
)",
                             "f")
        .config;
  }
  HttpAnswer ask(const std::string& method, const std::string& path, bool may_act = true,
                 const std::string& body = "") {
    return Endpoints(sources).answer({method, path, body, false, may_act});
  }

  Meter meter{configured()};
  ReloadState reload;
  Taps taps;
  int drains = 0;
  uint64_t reloads = 0;
  AdminSources sources;
};

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

}  // namespace

TEST_CASE("messages are shown by the admin socket only, and to four at once", "[admin]") {
  Daemon daemon;
  CHECK(daemon.ask("GET", "/tap", false).status == 403);
  CHECK(daemon.ask("HEAD", "/tap").status == 405);
  CHECK(daemon.ask("POST", "/tap").status == 405);
  HttpRequest request{"GET", "/tap", "", false, true, "nope"};
  const HttpAnswer unknown = Endpoints(daemon.sources).answer(request);
  CHECK(unknown.status == 404);
  CHECK(unknown.body == "There is no route 'nope'. There is: a \"b\".\n");
  CHECK_FALSE(daemon.taps.is_on());
  request.route = "a \"b\"";
  HttpAnswer tap = Endpoints(daemon.sources).answer(request);
  REQUIRE(tap.stream != nullptr);
  daemon.taps.tell("other", "{}");
  daemon.taps.tell("a \"b\"", "{\"a\":1}");
  char out[16];
  REQUIRE(std::string(out, tap.stream->read(out, 5)) + std::string(out, tap.stream->read(out, sizeof out)) ==
          "{\"a\":1}\n");
  REQUIRE(tap.stream->read(out, sizeof out) == 0);
  std::vector<HttpAnswer> others;
  for (size_t i = 1; i < Taps::taps_max; ++i) others.push_back(daemon.ask("GET", "/tap"));
  REQUIRE(others.back().stream != nullptr);
  CHECK(daemon.ask("GET", "/tap").status == 503);
  tap = {};
  CHECK(daemon.ask("GET", "/tap").status == 200);
}

TEST_CASE("a tap says what was missed where it was missed", "[admin]") {
  Daemon daemon;
  const HttpAnswer tap = daemon.ask("GET", "/tap");
  for (size_t i = 0; i < TapRing::lines_max + 7; ++i) daemon.taps.tell("", "x");
  std::string text;
  char out[100];
  while (const size_t bytes = tap.stream->read(out, sizeof out)) text.append(out, bytes);
  std::string expected;
  for (size_t i = 0; i < TapRing::lines_max; ++i) expected += "x\n";
  CHECK(text == expected + "{\"missed\":7}\n");
}

TEST_CASE("who may act, and by which method", "[admin]") {
  Daemon daemon;
  CHECK(daemon.ask("GET", "/healthz").status == 200);
  CHECK(daemon.ask("POST", "/healthz").status == 405);
  CHECK(daemon.ask("GET", "/drain").status == 405);
  CHECK(daemon.ask("POST", "/drain", false).status == 403);
  CHECK(daemon.ask("GET", "/drain", false).status == 403);
  CHECK(daemon.ask("PUT", "/nowhere").status == 404);
  CHECK(daemon.drains == 0);
  CHECK(daemon.ask("POST", "/drain").status == 202);
  CHECK(daemon.ask("POST", "/drain").body == "bellhop is draining already\n");
  CHECK(daemon.drains == 1);
  CHECK(daemon.ask("POST", "/log-level", true, " loud\n").status == 400);
}

TEST_CASE("a reload is asked for by the admin socket, and /status says how it went", "[admin]") {
  Daemon daemon;
  CHECK(daemon.ask("GET", "/reload").status == 405);
  CHECK(daemon.ask("POST", "/reload", false).status == 403);
  CHECK(daemon.ask("POST", "/reload").body == "1\n");
  const auto config = [&] { return nlohmann::json::parse(daemon.ask("GET", "/status").body)["config"]; };
  CHECK(config()["looks"] == 0);
  daemon.reload.failed({"f:1:1: broker: is missing"});
  daemon.reload.looked(1);
  CHECK(config()["looks"] == 1);
  CHECK(config()["generation"] == 1);
  CHECK(config()["last_reload_successful"] == false);
  CHECK(config()["problems"] == std::vector<std::string>{"f:1:1: broker: is missing"});
  daemon.reload.succeeded(2, {}, std::chrono::system_clock::now());
  daemon.reload.looked(2);
  CHECK(config()["generation"] == 2);
  CHECK(config()["problems"].empty());
  daemon.drains = 1;
  CHECK(daemon.ask("POST", "/reload").status == 409);
}

TEST_CASE("ready is when a publish made now would be taken", "[admin]") {
  Daemon daemon;
  CHECK(daemon.ask("GET", "/readyz").body == "[-] broker: not reached yet, bellhop is trying\nnot ready\n");
  daemon.meter.saw_broker(false);
  CHECK(daemon.ask("GET", "/readyz").body ==
        "[-] broker: no broker can be reached; the log says why\nnot ready\n");
  daemon.meter.saw_broker(true);
  CHECK(daemon.ask("GET", "/readyz").status == 200);
  for (int i = 0; i < 3; ++i) daemon.meter.store(0).upload_failed(1);
  CHECK(daemon.ask("GET", "/readyz").body ==
        "[-] store 'claims': its last three operations failed; the log says why\nnot ready\n");
  daemon.meter.store(0).uploaded(1, 1);
  daemon.drains = 1;
  CHECK(daemon.ask("GET", "/readyz").status == 503);
  CHECK(daemon.ask("GET", "/healthz").status == 200);
}

TEST_CASE("the numbers as Prometheus reads them", "[admin]") {
  Daemon daemon;
  SessionMeter session(daemon.meter, 1, Door::tcp, "tcp 127.0.0.1:1");
  session.now_ms = 100;
  const PublishMark publish = session.begin_publish(1, 0);
  session.now_ms = 103;
  session.answer(publish, PublishOutcome::confirmed, 1);
  daemon.meter.store(0).uploaded(1000, 30);
  const std::string text = daemon.ask("GET", "/metrics").body;
  CHECK(has_line(text, "bellhop_build_info{version=\"1.2.3\"} 1"));
  CHECK(has_line(text, "# TYPE bellhop_publishes_total counter"));
  for (const char* line :
       {R"_(bellhop_publishes_total{route="a \"b\"",outcome="confirmed"} 1)_",
        R"_(bellhop_publishes_total{route="(no route)",outcome="confirmed"} 0)_",
        R"_(bellhop_publish_seconds_bucket{route="a \"b\"",le="0.002"} 0)_",
        R"_(bellhop_publish_seconds_bucket{route="a \"b\"",le="0.005"} 1)_",
        R"_(bellhop_publish_seconds_bucket{route="a \"b\"",le="+Inf"} 1)_",
        R"_(bellhop_offload_bytes_total{store="claims"} 1000)_", R"_(bellhop_sessions{door="tcp"} 1)_"}) {
    INFO(line);
    CHECK(has_line(text, line));
  }
  CHECK(has_line(text, "bellhop_inflight_bytes 7"));
}

TEST_CASE("a client's name cannot break /status, nor the terminal it is printed on", "[admin]") {
  Daemon daemon;
  SessionMeter session(daemon.meter, 5, Door::unix_socket, "unix uid=1");
  session.set_client(std::string("shop\x1b[2J\"\xff") + std::string(1000, 'x'));
  session.held.set(2);
  const std::string json = daemon.ask("GET", "/status").body;
  const auto status = nlohmann::json::parse(json);
  CHECK(status["sessions"][0]["client"].get<std::string>().substr(0, 9) == "shop\x1b[2J\"");
  CHECK(status["sessions"][0]["id"] == 5);
  const auto text = status_text(json);
  REQUIRE(text);
  CHECK(text.value().find('\x1b') == std::string::npos);
  CHECK(text.value().find("shop?[2J") != std::string::npos);
  CHECK(text.value().starts_with("NOT READY     broker: not reached yet, bellhop is trying\n"));
  CHECK_FALSE(status_text("{}"));
  CHECK_FALSE(status_text("<html>"));
}

TEST_CASE("a reload that failed is told everywhere", "[admin]") {
  Daemon daemon;
  daemon.reload.succeeded(2, {}, std::chrono::system_clock::now());
  daemon.reload.failed({"f:3:1: routes: is wrong"});
  CHECK(has_line(daemon.ask("GET", "/metrics").body, "bellhop_config_last_reload_successful 0"));
  CHECK(has_line(daemon.ask("GET", "/metrics").body, "bellhop_config_generation 2"));
  CHECK(status_text(daemon.ask("GET", "/status").body).value().find("RELOAD FAILED") != std::string::npos);
}
