#include "daemon/door/amqp/session/http_refusal.h"

namespace bellhop {

bool is_http(Bytes start) {
  std::string_view text = as_text(start.first(4));
  for (std::string_view method : {"GET ", "HEAD", "POST", "PUT ", "DELE", "CONN", "OPTI", "TRAC", "PATC"}) {
    if (text == method) return true;
  }
  return false;
}

Bytes http_refusal() {
  static constexpr std::string_view response =
      "HTTP/1.1 501 Not Implemented\r\n"
      "Content-Type: application/json\r\n"
      "Content-Length: 62\r\n"
      "Connection: close\r\n"
      "\r\n"
      "{\"error\":\"this socket speaks AMQP 0-9-1; HTTP is not served\"}\n";
  return as_bytes(response);
}

}  // namespace bellhop
