// Finds multipart uploads that were begun under an S3 store's prefix and never completed. They are no
// objects, but they take (and cost) space until somebody aborts them.
#pragma once

#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/claims/s3/s3_core.h"

namespace bellhop {

struct UnfinishedUpload {
  std::string name;  // the object's, with the prefix
  std::string id;
  std::string initiated;  // as the service wrote it
  std::optional<std::time_t> initiated_at;
};

// One page of the service's list. It leaves out other programs' uploads: those whose name is not the prefix
// and a key that a store issues.
struct UploadPage {
  std::vector<UnfinishedUpload> uploads;
  bool is_truncated = false;
  std::string next_key_marker, next_upload_id_marker;
};
UploadPage read_upload_page(std::string_view xml, std::string_view prefix);

// Not the store's thread; blocking. Lists all of them. Error: the service cannot say.
Result<std::vector<UnfinishedUpload>> list_unfinished_uploads(const std::shared_ptr<S3Core>& core);
// Not the store's thread; blocking. One that is gone already is no error.
Result<void> abort_unfinished_upload(const std::shared_ptr<S3Core>& core, const UnfinishedUpload& upload);

}  // namespace bellhop
