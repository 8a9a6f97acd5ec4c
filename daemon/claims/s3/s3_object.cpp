#include "daemon/claims/s3/s3_object.h"

#include <fmt/format.h>

namespace bellhop {

namespace {

// Says `result` to who asked, unless the object was dropped.
void say(const std::shared_ptr<Executor>& executor, std::weak_ptr<int> alive, Result<Buffer> result,
         std::function<void(Result<Piece>)> done) {
  executor->post([alive = std::move(alive), result = std::move(result), done = std::move(done)]() mutable {
    if (alive.expired()) return;
    if (result)
      done(piece_of(std::move(result.value())));
    else
      done(Error{result.error()});
  });
}

}  // namespace

void ScratchObject::read(uint64_t offset, size_t count, std::shared_ptr<Executor> executor,
                         std::function<void(Result<Piece>)> done) {
  core_->loop->post([alive = std::weak_ptr<int>(alive_), file = file_, check = check_, key = key_, offset,
                     count, executor = std::move(executor), done = std::move(done)]() mutable {
    Result<Buffer> result = Buffer(count);
    const auto got = file->read(offset, result.value().data(), count);
    if (!got)
      result = Error{fmt::format("claim {}: {}", key, got.error())};
    else if (got.value() != count)
      result = Error{fmt::format("claim {}: its scratch file ended at {} bytes", key, offset + got.value())};
    else if (const auto taken = check->take(offset, result.value()); !taken)
      result = Error{fmt::format("claim {}: its scratch file is {}", key, taken.error())};
    say(executor, std::move(alive), std::move(result), std::move(done));
  });
}

void RemoteObject::read(uint64_t offset, size_t count, std::shared_ptr<Executor> executor,
                        std::function<void(Result<Piece>)> done) {
  core_->loop->post([alive = std::weak_ptr<int>(alive_), core = core_, check = check_, etag = etag_,
                     key = key_, offset, count, executor = std::move(executor),
                     done = std::move(done)]() mutable {
    if (!core->client || alive.expired()) return;
    const auto call = core->call("GET", core->address.object_url(key));
    call->owner = executor.get();
    call->work = Work::read;
    const auto bytes = std::make_shared<Buffer>();
    bytes->reserve(count);
    call->request.headers = {fmt::format("range: bytes={}-{}", offset, offset + count - 1),
                             "if-match: " + etag};
    call->before_attempt = [bytes](uint32_t) { bytes->clear(); };
    const std::string range = fmt::format("bytes {}-{}/", offset, offset + count - 1);
    call->request.sink = [bytes, count, range](const S3Answer& head, Bytes piece) {
      if (head.status != 206 || !head.content_range.starts_with(range) ||
          bytes->size() + piece.size() > count)
        return false;
      put(*bytes, piece);
      return true;
    };
    call->doubt = [bytes, count, range](const S3Answer& answer) -> std::string {
      if (answer.status != 206 || !answer.content_range.starts_with(range))
        return "without the range that was asked for";
      return bytes->size() == count ? "" : "with a piece of another size than was asked for";
    };
    call->done = [core, check, key, offset, bytes, alive = std::move(alive), executor = std::move(executor),
                  done = std::move(done)](const S3Answer& answer) mutable {
      Result<Buffer> result = std::move(*bytes);
      if (!answer.ok())
        result =
            Error{fmt::format("claim {}: store '{}': {}", key, core->name, core->problem(answer, "GET"))};
      else if (const auto taken = check->take(offset, result.value()); !taken)
        result = Error{fmt::format("claim {}: store '{}': the object is {}", key, core->name, taken.error())};
      say(executor, std::move(alive), std::move(result), std::move(done));
    };
    core->client->start(call);
  });
}

}  // namespace bellhop
