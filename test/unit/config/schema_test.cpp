// The JSON Schema that editors use, held against the sample and against files that it has to refuse. The
// validator is Debian's python3-jsonschema.
#include <cstdlib>

#include "test/support/catch.h"

TEST_CASE("the schema accepts the sample and refuses bad files", "[config]") {
  CHECK(std::system("/usr/bin/python3 test/unit/config/schema_check.py config/bellhop.schema.json "
                    "config/bellhop.yaml") == 0);
}
