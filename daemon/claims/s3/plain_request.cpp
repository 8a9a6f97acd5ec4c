#include "daemon/claims/s3/plain_request.h"

#include <utility>

namespace bellhop {

struct PlainRequests::Running {
  S3Request request;
  std::unique_ptr<S3Transfer> transfer;
};

PlainRequests::PlainRequests(CurlLoop& loop, std::string ca_bundle) : loop_(loop) {
  settings_.ca_bundle = std::move(ca_bundle);
}

PlainRequests::~PlainRequests() = default;

void PlainRequests::start(PlainRequest request, std::function<void(const S3Answer& answer)> done) {
  const auto running = std::make_shared<Running>();
  running_.insert(running);
  running->request.method = std::move(request.method);
  running->request.url = std::move(request.url);
  running->request.headers = std::move(request.headers);
  if (!request.body.empty()) running->request.body = std::make_shared<TextBody>(std::move(request.body));
  running->request.within_ms = request.within_ms;
  running->request.is_direct = request.is_direct;
  running->transfer = std::make_unique<S3Transfer>(
      loop_, settings_, nullptr, running->request,
      [this, raw = running.get(), done = std::move(done)](const S3Answer& answer) {
        // `done` may start another, or end all of this.
        std::shared_ptr<Running> kept;
        std::erase_if(running_, [&](const auto& each) {
          if (each.get() == raw) kept = each;
          return each.get() == raw;
        });
        done(answer);
      });
}

}  // namespace bellhop
