#include "daemon/wire/tls_errors.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <memory>

#include "config/problems.h"

namespace bellhop {
namespace {

constexpr int names_max = 8;  // of a certificate, in a message

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(GENERAL_NAMES* names) const { GENERAL_NAMES_free(names); }
};

std::string text_of(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return size > 0 ? std::string(data, static_cast<size_t>(size)) : "";
}

// What a peer put into a certificate may be anything: it is quoted.
std::string show(const X509_NAME* name) {
  const std::unique_ptr<BIO, Free> out(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(out.get(), name, 0, XN_FLAG_RFC2253);
  return config::quoted(text_of(out.get()));
}

std::string show(const ASN1_TIME* time) {
  const std::unique_ptr<BIO, Free> out(BIO_new(BIO_s_mem()));
  ASN1_TIME_print(out.get(), time);
  return text_of(out.get());
}

std::string show(const GENERAL_NAME* name) {
  int type = 0;
  const void* const value = GENERAL_NAME_get0_value(name, &type);
  if (type != GEN_DNS && type != GEN_IPADD) return "";
  const auto* const text = static_cast<const ASN1_STRING*>(value);
  const auto* const bytes = reinterpret_cast<const char*>(ASN1_STRING_get0_data(text));
  const auto size = static_cast<size_t>(ASN1_STRING_length(text));
  if (type == GEN_DNS) return "the DNS name " + config::quoted({bytes, size});
  char address[INET6_ADDRSTRLEN] = "";
  if (size == 4 || size == 16) ::inet_ntop(size == 4 ? AF_INET : AF_INET6, bytes, address, sizeof address);
  return "the IP address " + config::quoted(address);
}

// The names that a broker's certificate is for; its subject when it has none.
std::string names_of(const X509* certificate) {
  const std::unique_ptr<GENERAL_NAMES, Free> names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::string out;
  for (int i = 0; names != nullptr && i < std::min(names_max, sk_GENERAL_NAME_num(names.get())); ++i) {
    const std::string name = show(sk_GENERAL_NAME_value(names.get(), i));
    if (!name.empty()) out += (out.empty() ? "" : ", ") + name;
  }
  return out.empty() ? show(X509_get_subject_name(certificate)) : out;
}

const char* hint_of(int alert, bool has_certificate) {
  switch (alert) {
    case SSL_AD_PROTOCOL_VERSION:
      return " (bellhop speaks TLS 1.2 and 1.3)";
    case SSL_AD_UNRECOGNIZED_NAME:
      return " (the name that was asked for is broker.tls.server_name, or the URL's host)";
    case SSL_AD_CERTIFICATE_REQUIRED:
    case SSL_AD_HANDSHAKE_FAILURE:
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_REVOKED:
    case SSL_AD_CERTIFICATE_EXPIRED:
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_UNKNOWN_CA:
    case SSL_AD_ACCESS_DENIED:
      return has_certificate ? " (it may not accept the client certificate broker.tls.cert)"
                             : " (it may want a client certificate: broker.tls.cert and key)";
    default:
      return "";
  }
}

}  // namespace

std::string verify_failure(X509_STORE_CTX* checked, const std::string& name) {
  const int error = X509_STORE_CTX_get_error(checked);
  const X509* const certificate = X509_STORE_CTX_get_current_cert(checked);
  if (certificate == nullptr) return X509_verify_cert_error_string(error);
  const std::string subject = show(X509_get_subject_name(certificate));
  const std::string issuer = show(X509_get_issuer_name(certificate));
  switch (error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return "the certificate of " + subject + " expired on " + show(X509_get0_notAfter(certificate));
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return "the certificate of " + subject + " is not valid before " +
             show(X509_get0_notBefore(certificate));
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return "the broker's certificate is for " + names_of(certificate) + " and not for " +
             (error == X509_V_ERR_IP_ADDRESS_MISMATCH ? "the IP address " : "the DNS name ") +
             config::quoted(name) + " (broker.tls.server_name, or the URL's host)";
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
      return "the broker's certificate, of " + subject + ", is self-signed and not in broker.tls.ca";
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
      return "the certificate of " + subject + " was issued by an unknown CA, " + issuer +
             " (broker.tls.ca has others)";
    default:
      return "the certificate of " + subject + " is not accepted: " + X509_verify_cert_error_string(error);
  }
}

std::string openssl_reason() {
  const unsigned long error = ERR_peek_last_error();
  const char* const reason = ERR_reason_error_string(error);
  return reason != nullptr ? reason : "OpenSSL gives no reason";
}

std::string tls_failure(Bytes answer, bool in_handshake, bool has_certificate) {
  const unsigned long error = ERR_peek_error();
  const std::string reason = openssl_reason();
  ERR_clear_error();
  // Reasons from 1000 on are alerts that the peer sent.
  const int alert = ERR_GET_LIB(error) == ERR_LIB_SSL ? ERR_GET_REASON(error) - SSL_AD_REASON_OFFSET : -1;
  if (alert >= 0)
    return std::string("the broker refused with the TLS alert \"") + SSL_alert_desc_string_long(alert) +
           "\"" + hint_of(alert, has_certificate);
  if (in_handshake && !answer.empty()) {
    if (as_text(answer).starts_with("AMQP")) return "there is no TLS: a broker without TLS answered";
    constexpr uint8_t alert_record = 21, handshake_record = 22;
    if (answer[0] != alert_record && answer[0] != handshake_record)
      return "there is no TLS: something else answered";
  }
  return "TLS failed: " + reason;
}

}  // namespace bellhop
