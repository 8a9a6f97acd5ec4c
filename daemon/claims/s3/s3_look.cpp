#include "daemon/claims/s3/s3_look.h"

#include <fmt/format.h>

#include "daemon/claims/s3/s3_doubt.h"

namespace bellhop {

namespace {

using Done = std::function<void(ObjectLook)>;

ObjectLook unavailable(const S3Core& core, const S3Answer& answer, const std::string& method) {
  return {ObjectLook::Kind::unavailable,
          fmt::format("store '{}' is unavailable: {}", core.name, core.problem(answer, method)),
          0,
          {},
          {}};
}

// The answer to a HEAD has no body that would say what is not there, the object or the whole bucket.
void ask_what_is_missing(const std::shared_ptr<S3Core>& core, const std::string& key, Done done) {
  const auto call = core->call("GET", core->address.object_url(key));
  call->request.headers = {"range: bytes=0-0"};
  call->done = [core, done = std::move(done)](const S3Answer& answer) {
    if (outcome_of(answer) == S3Outcome::missing)
      done({ObjectLook::Kind::missing, "removed by retention, or stored elsewhere", 0, {}, {}});
    else
      done(unavailable(*core, answer, "GET"));
  };
  core->client->start(call);
}

}  // namespace

void look_at_object(const std::shared_ptr<S3Core>& core, const std::string& key, Done done) {
  core->loop->post([core, key, done = std::move(done)]() mutable {
    const auto call = core->call("HEAD", core->address.object_url(key));
    call->doubt = doubt_of_head;
    call->done = [core, key, done = std::move(done)](const S3Answer& answer) mutable {
      if (answer.ok())
        done({ObjectLook::Kind::present,
              {},
              *answer.content_bytes,
              http_date(answer.last_modified),
              shown(answer.expiration)});
      else if (answer.status == 404)
        ask_what_is_missing(core, key, std::move(done));
      else
        done(unavailable(*core, answer, "HEAD"));
    };
    core->client->start(call);
  });
}

}  // namespace bellhop
