#include "lib/crypto/server_identity.h"

#include <unistd.h>

#include "lib/crypto/digest.h"

namespace keelson::crypto {
namespace {

// RFC 4648 base 32, lower case, without padding.
std::string Base32(std::string_view bytes) {
  constexpr char kDigits[] = "abcdefghijklmnopqrstuvwxyz234567";
  std::string out;
  unsigned buffer = 0;
  int bits = 0;
  for (char c : bytes) {
    buffer = buffer << 8 | static_cast<unsigned char>(c);
    for (bits += 8; bits >= 5; bits -= 5) out += kDigits[buffer >> (bits - 5) & 31];
    buffer &= (1u << bits) - 1;
  }
  if (bits > 0) out += kDigits[buffer << (5 - bits) & 31];
  return out;
}

}  // namespace

std::string ApiServerIdentity() {
  char host[256] = {};
  (void)gethostname(host, sizeof host - 1);
  constexpr size_t kKept = 16;
  return "apiserver-" + Base32(Sha256(host).substr(0, kKept));
}

const std::string& ApiServerIdHash() {
  static const std::string hash = "sha256:" + Sha256Hex(ApiServerIdentity());
  return hash;
}

}  // namespace keelson::crypto
