#include "proto/xml_scan.h"

#include "test/support/catch.h"

using namespace bellhop::proto;

namespace {
const std::string error_answer =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
    "<Error><Code>NoSuchBucket</Code><Message>The &quot;bucket&quot; a&amp;b is &#x6E;o&#116; there</Message>"
    "<RequestId/></Error>";
}

TEST_CASE("an error answer's code and message", "[xml]") {
  CHECK(xml_text(error_answer, "Code") == "NoSuchBucket");
  CHECK(xml_text(error_answer, "Message") == "The \"bucket\" a&b is not there");
  CHECK(xml_text(error_answer, "RequestId") == "");
  CHECK_FALSE(xml_text(error_answer, "HostId"));
}

TEST_CASE("an element is found by its local name, whatever stands around it", "[xml]") {
  CHECK(xml_text("<s3:Code a='1'>\n  SlowDown \n</s3:Code>", "Code") == "SlowDown");
  CHECK(xml_text("<!-- <Code>no</Code> --><Code>yes</Code>", "Code") == "yes");
  CHECK(xml_text("<Codes>no</Codes><Code>yes</Code>", "Code") == "yes");
  CHECK(xml_text("<!DOCTYPE x><?php <Code>?><Code>yes</Code>", "Code") == "yes");
}

TEST_CASE("entities that are not known stay as they are", "[xml]") {
  CHECK(xml_text("<a>&nbsp; & &amp;lt; &#xZ; &#0;&#xD800;&#1114112; &amp</a>", "a") ==
        "&nbsp; & &lt; &#xZ;  &amp");
  CHECK(xml_text("<a>&#228;&#x20AC;&#x1F600;</a>", "a") == "\u00e4\u20ac\U0001F600");
}

TEST_CASE("many ampersands without an end cost no more than their number", "[xml]") {
  const std::string many(1 << 20, '&');
  CHECK(xml_text("<a>" + many + "</a>", "a") == many);
}

TEST_CASE("each element of a list", "[xml]") {
  const auto found = xml_elements("<L><U><K>a</K></U><U/><U><K>b</K></U></L>", "U");
  REQUIRE(found.size() == 3);
  CHECK(xml_text(found[0], "K") == "a");
  CHECK(found[1].empty());
  CHECK(xml_text(found[2], "K") == "b");
}

TEST_CASE("an answer that breaks off at any byte gives what is whole, or nothing", "[xml]") {
  for (size_t size = 0; size < error_answer.size(); ++size) {
    const auto code = xml_text(std::string_view(error_answer).substr(0, size), "Code");
    CHECK((!code || *code == "NoSuchBucket"));
  }
}
