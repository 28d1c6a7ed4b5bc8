// Just enough PEM and DER to tell whether bytes are certificates or certificate requests. Verifies no
// signature, chain or date.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace keelson::k8s {

struct PemBlock {
  std::string type;   // CERTIFICATE
  std::string bytes;  // DER
  bool has_headers = false;
};

// Removes the next block and everything before it from `text`; nullopt when there is none.
std::optional<PemBlock> NextPemBlock(std::string_view& text);

// A PEM block without headers, 64 characters per line.
std::string PemText(std::string_view type, std::string_view der);

// Check the structure of RFC 2986 (requests) and RFC 5280 (certificates).
bool IsCertificateRequest(std::string_view der);
bool IsCertificate(std::string_view der);

}  // namespace keelson::k8s
