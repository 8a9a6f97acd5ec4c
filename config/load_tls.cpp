// broker.tls: how the connections of amqps:// URLs are made. The files are read and taken apart here, so that
// what is wrong with one is told at its key and not when the first client comes.
#include <openssl/err.h>

#include "config/load_sections.h"
#include "config/pem.h"
#include "config/read_file.h"

namespace bellhop::config {

namespace {

constexpr size_t file_bytes_max = 4 << 20;

// Every certificate of a bundle is good, and there is one.
bool is_bundle(const std::string& pem) {
  const PemSource source = pem_source(pem);
  size_t count = 0;
  while (next_certificate(source) != nullptr) ++count;
  return count > 0 && ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
}

// The file that a key names. An empty value, as an unset variable makes it, names none.
std::optional<Value> read_pem(Section& section, const char* key, PemFile& out) {
  auto value = section.find(key);
  if (!value) return {};
  const auto path = value->text();
  if (!path || path->empty()) return {};
  value->problems().note_file(*path);
  Result<std::string> text = read_file(*path, file_bytes_max);
  if (!text) {
    value->error_outside("file " + quoted(*path) + " " + text.error() + ", allowed: a readable PEM file");
    return {};
  }
  out = {*path, std::move(text.value())};
  return value;
}

void read_own(Section& section, Tls& tls) {
  const auto cert = read_pem(section, "cert", tls.cert);
  const auto key = read_pem(section, "key", tls.key);
  const auto is_given = [&section](const char* name) {
    const auto value = section.find(name);
    return value && !(value->is_scalar() && value->node().text.empty());
  };
  if (cert && !is_given("key")) cert->error("stands without broker.tls.key, allowed: both or none");
  if (key && !is_given("cert")) key->error("stands without broker.tls.cert, allowed: both or none");
  const Certificate certificate = cert ? next_certificate(pem_source(tls.cert.text)) : nullptr;
  const PrivateKey private_half = key ? private_key(tls.key.text) : nullptr;
  if (cert && certificate == nullptr)
    cert->error("file " + quoted(tls.cert.path) +
                " has no certificate in it, allowed: a PEM file, the chain below it");
  if (key && private_half == nullptr) {
    const bool encrypted = tls.key.text.find("ENCRYPTED") != std::string::npos;
    key->error("file " + quoted(tls.key.path) +
               (encrypted ? " has a key with a passphrase" : " has no private key in it") +
               ", allowed: a PEM file with a private key without a passphrase");
  }
  if (certificate != nullptr && private_half != nullptr &&
      X509_check_private_key(certificate.get(), private_half.get()) != 1)
    key->error("file " + quoted(tls.key.path) + " has another key than that of the certificate in " +
               quoted(tls.cert.path) + ", allowed: the certificate's own");
}

}  // namespace

void load_tls(Section& broker_section, Broker& broker) {
  const auto value = broker_section.find("tls");
  if (!value) return;
  Section section(*value);
  if (!section.ok()) return;
  Tls& tls = broker.tls;
  if (const auto ca = read_pem(section, "ca", tls.ca); ca && !is_bundle(tls.ca.text))
    ca->error("file " + quoted(tls.ca.path) +
              " has a damaged certificate or none in it, allowed: a PEM file with certificates");
  read_own(section, tls);
  section.read("verify", tls.verify);
  if (const auto name = section.find("server_name")) {
    if (auto text = name->text()) {
      if (text->find_first_of(std::string_view("\0 /@", 4)) != std::string::npos || text->size() > 253)
        name->error("is no host's name, allowed: a name or an IP address as the broker's certificate has it");
      else
        tls.server_name = std::move(*text);
    }
  }
  // Whoever wrote it expects encryption.
  if (!broker.urls.empty() && !broker.uses_tls())
    value->error("stands beside no amqps:// URL in broker.url, allowed: with one");
  section.finish();
  ERR_clear_error();
}

}  // namespace bellhop::config
