#include "daemon/claims/s3/s3_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "daemon/claims/s3/digest.h"
#include "daemon/claims/s3/s3_doubt.h"
#include "daemon/ops/log_line.h"
#include "daemon/ops/waits.h"

namespace bellhop {

namespace {

constexpr Backoff probe_backoff{1000, 60000};
constexpr const char* probe_text = "bellhop writes, reads and removes this at its start";

// One probe after another, on the store's thread. The calls keep it.
class S3Probe : public std::enable_shared_from_this<S3Probe> {
 public:
  explicit S3Probe(const std::shared_ptr<S3Core>& core)
      : core_(core),
        key_(".bellhop-probe-" + core->keys.next()),
        wait_("store '" + core->name + "'"),
        random_(std::random_device{}()) {}

  void start() { step("PUT"); }

 private:
  void step(const char* method) {
    const auto core = core_.lock();
    if (!core || !core->client) return;
    const auto call = core->call(method, core->address.object_url(key_));
    if (std::string_view(method) == "PUT") {
      core->set_body(*call, probe_text);
      core->add_checksum(call->request, md5_of(as_bytes(probe_text)));
      core->add_encryption(call->request);
      call->doubt = doubt_of_put;
    } else if (std::string_view(method) == "DELETE") {
      call->doubt = doubt_of_delete;
    }
    call->once = true;
    call->done = [self = shared_from_this(), method](const S3Answer& answer) { self->done(method, answer); };
    core->client->start(call);
  }

  void done(const std::string& method, const S3Answer& answer) {
    const auto core = core_.lock();
    if (!core) return;
    if (!answer.ok()) {
      // libcurl's words have times in them: they are no cause.
      return failed(*core,
                    fmt::format("{} {} {}", static_cast<int>(answer.code), answer.status, s3_code(answer)),
                    core->problem(answer, method), retry_after_ms(answer));
    }
    if (method == "PUT") return step("GET");
    if (method == "GET") {
      if (answer.body != probe_text)
        return failed(*core, "another object",
                      fmt::format("bucket '{}' at {}: GET: another object than was written",
                                  core->address.bucket(), core->address.endpoint()),
                      0);
      return step("DELETE");
    }
    wait_.over();
    if (failures_ == 0)
      log_info("store can be written, read and removed from", {{"store", core->name},
                                                               {"bucket", core->address.bucket()},
                                                               {"endpoint", core->address.endpoint()}});
    else
      log_info("store is available again", {{"store", core->name}});
  }

  // Told once for each cause, not once for each attempt.
  void failed(S3Core& core, const std::string& cause, const std::string& why, uint64_t wait_ms) {
    failures_++;
    wait_.begin();
    if (cause != told_)
      log_warn(
          "store is unavailable: until it is back bellhop nacks publishes that need it, and holds "
          "deliveries",
          {{"store", core.name}, {"key", "stores." + core.name}, {"reason", why}});
    told_ = cause;
    core.client->after(std::max<uint64_t>(probe_backoff.wait_ms(failures_, random_), wait_ms),
                       [self = shared_from_this()] { self->start(); });
  }

  const std::weak_ptr<S3Core> core_;
  const std::string key_;
  Wait wait_;
  std::minstd_rand random_;
  uint32_t failures_ = 0;
  std::string told_;
};

}  // namespace

void probe_until_it_works(const std::shared_ptr<S3Core>& core) {
  core->loop->post([probe = std::make_shared<S3Probe>(core)] { probe->start(); });
}

}  // namespace bellhop
