// Gets an object of an S3 store into memory (a small one) or a scratch file, and works out its length and
// checksum as it comes. A download that breaks off goes on where it was (Range, with If-Match on the ETag, so
// that both halves are of one object). Only a whole and verified payload is handed over.
//
// When an answer does not fit the request (a 204, a page, a range that bellhop did not ask for) bellhop asks
// again. It also does when a whole object is not the message's, from the first byte: a proxy may have spoilt
// it. The object is corrupt only when the service gives the same wrong one twice in a row:
//
//   GET ─┬─ as the message says ─────────────────────────────► handed over
//    ▲   ├─ odd ───────────────┬─ too often ───────────────► unavailable
//    │   │                     │
//    │   ├─ another object ──┬─┴─ pause ─┐
//    │   │                   └─ the same as before ────────► corrupt
//    └───┼───────────────────────────────┘
//        └─ NoSuchKey ─────────────────────────────────────► missing
#pragma once

#include <memory>

#include "daemon/claims/claim_store.h"
#include "daemon/claims/s3/s3_core.h"

namespace bellhop {

// Any thread. ClaimStore::fetch's contract. A download that nobody waits for any more ends with its next
// piece. Precondition: proto::is_redeemable_key(request.key). Failures are those of daemon/claims/README.md,
// "Errors": only NoSuchKey is missing.
void fetch_object(const std::shared_ptr<S3Core>& core, FetchRequest request);

}  // namespace bellhop
