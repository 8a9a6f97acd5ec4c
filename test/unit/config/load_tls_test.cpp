// broker.tls: which files are taken, and what is said of those that are not.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "config/load.h"
#include "test/support/catch.h"
#include "test/support/certificates.h"

using namespace bellhop;
using namespace bellhop::config;
using bellhop::test::Identity;

namespace {

using Lines = std::vector<std::string>;

struct Folder {
  std::filesystem::path path;
  Folder() {
    std::string name = std::filesystem::temp_directory_path() / "bellhop-tls-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path = name;
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string put(const std::string& name, const std::string& text) const {
    std::ofstream(path / name) << text;
    return path / name;
  }
};

// The file whose broker.tls is `tls`, beside an amqps:// URL.
Loaded load_tls_text(const std::string& tls) {
  return load_text("broker:\n  url: amqps://rabbit\n  tls: " + tls + "\n", "f");
}

}  // namespace

TEST_CASE("the files of broker.tls are read with the configuration", "[config]") {
  const Folder folder;
  const Identity authority = test::make_authority(), other = test::make_authority("another");
  const Identity own = test::make_identity({}, &authority);
  const std::string bundle = "# comment\n" + authority.cert_pem() + other.cert_pem();
  const std::string chain = own.cert_pem() + authority.cert_pem();
  const Loaded loaded =
      load_tls_text("{ ca: " + folder.put("ca", bundle) + ", cert: " + folder.put("cert", chain) + ", key: " +
                    folder.put("key", own.key_pem()) + ", verify: false, server_name: rabbit.example }");
  REQUIRE(loaded.errors == Lines{});
  const Broker& broker = loaded.config.broker;
  CHECK(broker.uses_tls());
  CHECK(broker.tls.ca.text == bundle);
  CHECK(broker.tls.cert.text == chain);
  CHECK(broker.tls.key.text == own.key_pem());
  CHECK_FALSE(broker.tls.verify);
  CHECK(broker.tls.server_name == "rabbit.example");
  CHECK(broker.has_certificate_login(broker.urls[0]));
}

TEST_CASE("without broker.tls, and with empty names in it, the defaults hold", "[config]") {
  for (const char* text :
       {"broker: { url: amqps://a }", "broker: { url: amqps://a, tls: { ca: '', cert: '', key: '' } }"}) {
    const Loaded loaded = load_text(text, "f");
    REQUIRE(loaded.errors == Lines{});
    CHECK(loaded.config.broker.tls.ca.path.empty());
    CHECK(loaded.config.broker.tls.verify);
    CHECK_FALSE(loaded.config.broker.has_certificate_login());
  }
}

TEST_CASE("a client certificate is a login only beside no credentials, and only over TLS", "[config]") {
  const Folder folder;
  const Identity own = test::make_identity({});
  const std::string tls = "tls: { cert: " + folder.put("cert", own.cert_pem()) +
                          ", key: " + folder.put("key", own.key_pem()) + " } }";
  const Loaded mixed = load_text("broker: { url: [amqps://a, amqp://b], " + tls, "f");
  REQUIRE(mixed.errors == Lines{});
  CHECK(mixed.config.broker.has_certificate_login(mixed.config.broker.urls[0]));
  CHECK_FALSE(mixed.config.broker.has_certificate_login(mixed.config.broker.urls[1]));
  const Loaded named = load_text("broker: { url: 'amqps://u:p@a', " + tls, "f");
  CHECK_FALSE(named.config.broker.has_certificate_login(named.config.broker.urls[0]));
  // Whoever reaches a TCP listener would be the certificate's user.
  const Loaded open = load_text("listen: [{ tcp: '127.0.0.1:1' }]\nbroker: { url: amqps://a, " + tls, "f");
  REQUIRE(open.errors.size() == 1);
  CHECK(open.errors[0].starts_with("f:1:17: listen[0].tcp: lets everybody in as the broker's user"));
}

TEST_CASE("what is wrong with a file of broker.tls is told at its key", "[config]") {
  const Folder folder;
  const Identity authority = test::make_authority();
  const Identity own = test::make_identity({}, &authority), other = test::make_identity({}, &authority);
  const std::string cert = folder.put("cert", own.cert_pem()), key = folder.put("key", own.key_pem());
  const std::string wrong_key = folder.put("other", other.key_pem()), none = folder.put("none", "nothing\n");
  const std::string locked = folder.put("locked", own.key_pem("secret"));
  const std::string cut = folder.put("cut", authority.cert_pem() + own.cert_pem().substr(0, 200));
  const auto errors_of = [](const std::string& tls) { return load_tls_text(tls).errors; };

  CHECK(errors_of("{ ca: /nowhere/ca.pem }") ==
        Lines{"f:3:14: broker.tls.ca: file '/nowhere/ca.pem' cannot "
              "be read: No such file or directory; create or mount it first, allowed: a "
              "readable PEM file"});
  for (const std::string& file : {none, cut, key})
    CHECK(errors_of("{ ca: " + file + " }") ==
          Lines{"f:3:14: broker.tls.ca: file '" + file +
                "' has a damaged certificate or none in it, allowed: a PEM file "
                "with certificates"});
  CHECK(errors_of("{ cert: " + cert + " }") ==
        Lines{"f:3:16: broker.tls.cert: stands without broker.tls.key, allowed: both or none"});
  CHECK(errors_of("{ key: " + key + " }") ==
        Lines{"f:3:15: broker.tls.key: stands without broker.tls.cert, allowed: both or none"});
  const auto own_errors = [&errors_of](const std::string& certificate, const std::string& private_key) {
    return errors_of("\n    cert: " + certificate + "\n    key: " + private_key);
  };
  CHECK(own_errors(none, key) ==
        Lines{"f:4:11: broker.tls.cert: file '" + none +
              "' has no certificate in it, allowed: a PEM file, the chain below it"});
  CHECK(own_errors(cert, none) ==
        Lines{"f:5:10: broker.tls.key: file '" + none +
              "' has no private key in it, allowed: a PEM file with a private key without a passphrase"});
  CHECK(own_errors(cert, locked) ==
        Lines{"f:5:10: broker.tls.key: file '" + locked +
              "' has a key with a passphrase, allowed: a PEM file with a private key without a passphrase"});
  CHECK(own_errors(cert, wrong_key) == Lines{"f:5:10: broker.tls.key: file '" + wrong_key +
                                             "' has another key than that of the certificate in '" + cert +
                                             "', allowed: the certificate's own"});
  CHECK(own_errors(cert, "/nowhere/k").size() == 1);
  CHECK(errors_of("{ server_name: 'a b' }") == Lines{"f:3:23: broker.tls.server_name: is no host's name, "
                                                     "allowed: a name or an IP address as the broker's "
                                                     "certificate has it"});
  CHECK(errors_of("{ certificate: x }").size() == 1);
}

TEST_CASE("broker.tls beside no amqps URL is an error: it would encrypt nothing", "[config]") {
  const Loaded loaded = load_text("broker: { url: amqp://a, tls: { verify: true } }", "f");
  CHECK(loaded.errors ==
        Lines{"f:1:31: broker.tls: stands beside no amqps:// URL in broker.url, allowed: with one"});
}
