#include "lib/crypto/alternative_names.h"

#include <arpa/inet.h>

#include "lib/crypto/x509_objects.h"

namespace keelson::crypto {
namespace {

using NamesPtr = OpenSslPtr<GENERAL_NAMES, GENERAL_NAMES_free>;

std::optional<std::string> AddressText(const ASN1_OCTET_STRING* from) {
  char text[INET6_ADDRSTRLEN];
  const int size = ASN1_STRING_length(from);
  const int family = size == 4 ? AF_INET : size == 16 ? AF_INET6 : 0;
  if (family == 0 || !inet_ntop(family, ASN1_STRING_get0_data(from), text, sizeof(text))) return std::nullopt;
  return std::string(text);
}

}  // namespace

Result<NamesOfHosts> ReadAlternativeNames(const STACK_OF(X509_EXTENSION) * extensions) {
  NamesOfHosts out;
  if (!extensions) return out;
  int critical = 0;
  NamesPtr names(
      static_cast<GENERAL_NAMES*>(X509V3_get_d2i(extensions, NID_subject_alt_name, &critical, nullptr)));
  if (!names) {
    if (critical == -1) return out;  // there are none
    return Error(Code::kBadRequest, "the subject alternative names cannot be read");
  }
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    const bool address = name->type == GEN_IPADD;
    std::vector<std::string>* list = name->type == GEN_DNS     ? &out.dns_names
                                     : name->type == GEN_EMAIL ? &out.emails
                                     : name->type == GEN_URI   ? &out.uris
                                     : address                 ? &out.ip_addresses
                                                               : nullptr;
    if (!list) continue;
    std::optional<std::string> text = address ? AddressText(name->d.iPAddress) : TextOf(name->d.ia5);
    if (!text) return Error(Code::kBadRequest, "a subject alternative name cannot be read");
    list->push_back(std::move(*text));
  }
  return out;
}

std::string AlternativeNames(const std::vector<std::string>& dns_names,
                             const std::vector<std::string>& ip_addresses) {
  std::string out;
  for (const std::string& name : dns_names) out += (out.empty() ? "DNS:" : ",DNS:") + name;
  for (const std::string& address : ip_addresses) out += (out.empty() ? "IP:" : ",IP:") + address;
  return out;
}

}  // namespace keelson::crypto
