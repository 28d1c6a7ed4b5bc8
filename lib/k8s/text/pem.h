// Just enough of PEM and DER to tell whether bytes are certificates or certificate requests. Nothing is
// verified: no signature, no chain, no date.
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

// The next block, and takes it and what stands before it off `text`; nullopt when there is none.
std::optional<PemBlock> NextPemBlock(std::string_view& text);

// The block without headers, 64 characters a line.
std::string PemText(std::string_view type, std::string_view der);

// The shapes of RFC 2986 and RFC 5280.
bool IsCertificateRequest(std::string_view der);
bool IsCertificate(std::string_view der);

}  // namespace keelson::k8s
