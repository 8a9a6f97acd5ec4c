// A carried itinerary, as JSON. Promised: what is read is written as JSON that is read again and then stays
// the same text.
#include "proto/itinerary.h"

#include "proto/table.h"
#include "test/fuzz/fuzz.h"

using namespace bellhop;
using namespace bellhop::proto;
using fuzz::check;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view json = as_text({data, size});
  (void)itinerary_text({data, size});
  auto itinerary = Itinerary::parse(json);
  if (!itinerary.ok()) {
    check(!itinerary.error().empty());
    return 0;
  }
  const std::string once = itinerary.value().to_json();
  // A rewrite may be longer than what was read: escapes of a stop's own fields are written out, empty stops
  // are filled.
  if (once.size() > itinerary_json_bytes_max) return 0;
  auto again = Itinerary::parse(once);
  check(again.ok());
  check(again.value().to_json() == once);
  check(again.value().steps().size() == itinerary.value().steps().size());
  check(again.value().done().size() == itinerary.value().done().size());

  const size_t stops = itinerary.value().steps().size() + itinerary.value().done().size();
  itinerary.value().advance("2026-09-09T16:18:09Z");
  check(itinerary.value().steps().size() + itinerary.value().done().size() == stops);
  return 0;
}
