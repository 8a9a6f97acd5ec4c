#include "daemon/cli/sweep_s3.h"

#include <cstdlib>
#include <ctime>

#include "daemon/claims/s3/s3_sweep.h"

namespace bellhop {

namespace {

void print_lifecycle_rule(const S3Address& address, std::ostream& out) {
  out << "A lifecycle rule that does this by itself, and removes objects after 30 days (more than the "
         "longest time\n"
         "that a message waits in its queue), for put-bucket-lifecycle-configuration:\n"
      << R"({"Rules": [{"ID": "bellhop", "Status": "Enabled", "Filter": {"Prefix": ")" << address.prefix()
      << R"("}, "Expiration": {"Days": 30}, "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1}}]})"
      << '\n';
}

}  // namespace

int sweep_s3(const std::string& name, const config::S3Store& store, uint64_t older_than_ms, bool dry_run,
             std::ostream& out, std::ostream& err) {
  const auto core = S3Core::open(name, store, [](const char* variable) { return std::getenv(variable); });
  if (!core) {
    err << core.error() << '\n';
    return 1;
  }
  const S3Address& address = core.value()->address;
  int exit_code = 0;
  size_t aborted = 0, younger = 0;
  const auto found = list_unfinished_uploads(core.value());
  if (!found) {
    err << "store '" << name << "': " << found.error() << '\n';
    exit_code = 1;
  } else {
    const std::time_t now = std::time(nullptr);
    for (const UnfinishedUpload& upload : found.value()) {
      // One whose age is not known is let alone.
      const bool is_old =
          upload.initiated_at && now - *upload.initiated_at >= static_cast<std::time_t>(older_than_ms / 1000);
      if (!is_old) {
        younger++;
        continue;
      }
      out << upload.name << " begun " << upload.initiated;
      if (!dry_run) {
        if (auto done = abort_unfinished_upload(core.value(), upload); !done) {
          out << ": not aborted\n";
          err << "store '" << name << "': " << done.error() << '\n';
          exit_code = 1;
          continue;
        }
      }
      out << (dry_run ? ": would be aborted\n" : ": aborted\n");
      aborted++;
    }
    out << "store '" << name << "', bucket '" << address.bucket() << "', prefix '" << address.prefix()
        << "': " << aborted
        << (dry_run ? " unfinished uploads would be aborted, " : " unfinished uploads aborted, ") << younger
        << " younger ones left\n";
    print_lifecycle_rule(address, out);
  }
  S3Core::close(core.value(), 0);
  return exit_code;
}

}  // namespace bellhop
