// Whom a TLS stream takes for the broker, and what it says of those that it does not.
#include <cerrno>

#include "test/support/catch.h"
#include "test/support/tls_peer.h"

using namespace bellhop;
using bellhop::test::TlsRig;
using bellhop::test::Wanted;
using Step = bellhop::TlsStream::Step;

namespace {

Wanted certificate_for(const std::string& names) {
  Wanted wanted;
  wanted.names = names;
  return wanted;
}

std::string refusal(TlsRig& rig) {
  REQUIRE(rig.shake_hands() == Step::failed);
  return rig.stream->error();
}

}  // namespace

TEST_CASE("the certificate must be for the host, or for server_name", "[tls]") {
  struct Case {
    const char *names, *host, *server_name;
    bool good;
    const char* asked;  // by SNI
  };
  const Case each = GENERATE(
      Case{"DNS:rabbit.example", "rabbit.example", "", true, "rabbit.example"},
      Case{"DNS:rabbit.example", "RABBIT.example.", "", true, "RABBIT.example"},
      Case{"DNS:*.prod.example", "rabbit.prod.example", "", true, "rabbit.prod.example"},
      Case{"DNS:r*.prod.example", "rabbit.prod.example", "", false, "rabbit.prod.example"},
      Case{"DNS:rabbit.example", "10.0.0.1", "rabbit.example", true, "rabbit.example"},
      Case{"DNS:rabbit.example", "rabbit.example", "other.example", false, "other.example"},
      Case{"DNS:rabbit.example", "bit.example", "", false, "bit.example"},
      Case{"IP:127.0.0.1", "127.0.0.1", "", true, ""}, Case{"IP:127.0.0.1", "127.0.0.2", "", false, ""},
      Case{"DNS:127.0.0.1", "127.0.0.1", "", false, ""}, Case{"IP:::1", "::1", "", true, ""},
      Case{"IP:::1", "::1%lo", "", true, ""}, Case{"DNS:rabbit.example", ".", "", false, ""});
  CAPTURE(each.names, each.host, each.server_name);
  TlsRig rig(certificate_for(each.names), each.host);
  rig.tls.server_name = each.server_name;
  REQUIRE((rig.shake_hands() == Step::done) == each.good);
  REQUIRE(rig.peer->asked_name() == each.asked);
}

TEST_CASE("a wrong name is told with both names", "[tls]") {
  TlsRig rig(certificate_for("DNS:one.example,DNS:two.example,IP:10.0.0.1,IP:::1"), "three.example");
  REQUIRE(
      refusal(rig) ==
      "the broker's certificate is for the DNS name 'one.example', the DNS name 'two.example', the IP "
      "address "
      "'10.0.0.1', the IP address '::1' and not for the DNS name 'three.example' (broker.tls.server_name, or "
      "the URL's host)");
}

TEST_CASE("an address that the certificate has as a name only is told apart from it", "[tls]") {
  TlsRig rig(certificate_for("DNS:127.0.0.1"), "127.0.0.1");
  REQUIRE(refusal(rig) ==
          "the broker's certificate is for the DNS name '127.0.0.1' and not for the IP address '127.0.0.1' "
          "(broker.tls.server_name, or the URL's host)");
}

TEST_CASE("a certificate without names is known by its subject, which a message escapes", "[tls]") {
  Wanted wanted = certificate_for("");
  wanted.common_name = "bro\nker";
  TlsRig rig(wanted, "broker");
  REQUIRE(refusal(rig).starts_with(
      "the broker's certificate is for 'CN=bro\\0Aker' and not for the DNS name 'broker'"));
}

TEST_CASE("a certificate out of its time says when its time is", "[tls]") {
  Wanted wanted;
  SECTION("over") {
    wanted.ends_s = -60;
    TlsRig rig(wanted);
    REQUIRE(refusal(rig).starts_with("the certificate of 'CN=broker' expired on "));
    REQUIRE(rig.stream->error().ends_with(" GMT"));
  }
  SECTION("not begun") {
    wanted.begins_s = 3000;
    TlsRig rig(wanted);
    REQUIRE(refusal(rig).starts_with("the certificate of 'CN=broker' is not valid before "));
  }
}

TEST_CASE("an authority that is not trusted is named", "[tls]") {
  TlsRig rig;
  rig.tls.ca.text = test::make_authority("another").cert_pem();
  REQUIRE(refusal(rig) ==
          "the certificate of 'CN=broker' was issued by an unknown CA, 'CN=test authority' (broker.tls.ca "
          "has others)");
}

TEST_CASE("a self-signed certificate is called so, unless it is trusted itself", "[tls]") {
  TlsRig rig;
  rig.identity = test::make_identity({});
  rig.peer = std::make_unique<test::TlsPeer>(rig.identity);
  SECTION("unknown") {
    REQUIRE(refusal(rig) ==
            "the broker's certificate, of 'CN=broker', is self-signed and not in broker.tls.ca");
  }
  SECTION("trusted") {
    rig.tls.ca.text = rig.identity.cert_pem();
    REQUIRE(rig.shake_hands() == Step::done);
  }
}

TEST_CASE("verify: false takes anybody, and still asks for the name", "[tls]") {
  Wanted wanted = certificate_for("DNS:other.example");
  wanted.ends_s = -60;
  TlsRig rig(wanted, "rabbit.example");
  rig.tls.ca.text = "";
  rig.tls.verify = false;
  REQUIRE(rig.shake_hands() == Step::done);
  REQUIRE(rig.peer->asked_name() == "rabbit.example");
}

TEST_CASE("an answer that is no TLS is told as what it is", "[tls]") {
  TlsRig rig;
  rig.open();
  REQUIRE(rig.step() == Step::waiting);
  SECTION("a broker without TLS") {
    rig.give(as_bytes(std::string_view("AMQP\0\0\x09\x01", 8)));
    REQUIRE(rig.step() == Step::failed);
    REQUIRE(rig.stream->error() == "there is no TLS: a broker without TLS answered");
  }
  SECTION("something else") {
    rig.give(as_bytes("HTTP/1.1 400 Bad Request\r\n\r\n"));
    REQUIRE(rig.step() == Step::failed);
    REQUIRE(rig.stream->error() == "there is no TLS: something else answered");
  }
}

TEST_CASE("a broker that refuses the client's certificate, or wants one, is understood", "[tls]") {
  const int version = GENERATE(TLS1_2_VERSION, TLS1_3_VERSION);
  const bool has_certificate = GENERATE(false, true);
  CAPTURE(version, has_certificate);
  TlsRig rig({}, "localhost", version);
  const test::Identity stranger = test::make_identity({});
  rig.peer->want_certificate_of(rig.authority);
  if (has_certificate) {
    rig.tls.cert.text = stranger.cert_pem();
    rig.tls.key.text = stranger.key_pem();
  }
  // In TLS 1.3 the handshake is over before the broker has looked.
  if (rig.shake_hands() == Step::done) {
    ssize_t last = 0;
    rig.receive_all(4096, &last);
    REQUIRE((last == -1 && errno == EPROTO));
  }
  const std::string error = rig.stream->error();
  CAPTURE(error);
  REQUIRE(error.starts_with("the broker refused with the TLS alert \""));
  REQUIRE(error.ends_with(has_certificate ? " (it may not accept the client certificate broker.tls.cert)"
                                          : " (it may want a client certificate: broker.tls.cert and key)"));
}

TEST_CASE("a client certificate is shown with the chain behind it", "[tls]") {
  TlsRig rig;
  Wanted between;
  between.common_name = "between";
  between.is_authority = true;
  const test::Identity issuer = test::make_identity(between, &rig.authority);
  const test::Identity own = test::make_identity({}, &issuer);
  rig.peer->want_certificate_of(rig.authority);
  rig.tls.cert.text = own.cert_pem() + issuer.cert_pem();
  rig.tls.key.text = own.key_pem();
  REQUIRE(rig.shake_hands() == Step::done);
  rig.peer->says("welcome");
  rig.give(rig.peer->output());
  REQUIRE(rig.receive_all() == "welcome");
}
