// The scan of an S3 service's XML. Promised: what is found stands in the input and is no longer than it.
#include "proto/xml_scan.h"

#include "proto/bytes.h"
#include "test/fuzz/fuzz.h"

using namespace bellhop;
using fuzz::check;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view xml = as_text({data, size});
  for (const char* name : {"Code", "Message", "Upload", "Key", ""}) {
    size_t total = 0;
    for (const std::string_view each : proto::xml_elements(xml, name)) {
      total += each.size();
      if (each.empty()) continue;
      check(each.data() > xml.data() && each.data() + each.size() < xml.data() + xml.size());
    }
    check(total <= size);
    const auto text = proto::xml_text(xml, name);
    check(!text || text->size() <= size);
  }
  return 0;
}
