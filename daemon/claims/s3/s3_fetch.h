// Getting an object of an S3 store: into memory (small) or a scratch file, its length and checksum worked out
// as it comes. A download that breaks off goes on where it was (Range, If-Match on the ETag, so that both
// halves are of one object). Only a whole and verified payload is handed over.
//
// An answer that is none to this request (a 204, a page, a range that was not asked for) is asked for again.
// So is a whole object that is not the message's, from its first byte: a proxy may have spoilt it. Only when
// the service gives the same wrong object twice in a row is it corrupt:
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

// Any thread. A download that nobody wants any more ends with its next piece. Precondition:
// proto::is_redeemable_key(request.key). Failures by daemon/claims/README.md, "Errors": only NoSuchKey is
// missing.
void fetch_object(const std::shared_ptr<S3Core>& core, FetchRequest request);

}  // namespace bellhop
