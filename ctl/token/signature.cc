#include <boost/json.hpp>

#include "ctl/token/token.h"
#include "lib/base/base64.h"
#include "lib/crypto/key_derivation.h"

namespace keelson::ctl {

namespace json = boost::json;

namespace {

bool HasText(const json::object& header, std::string_view member, std::string_view wanted) {
  const json::value* found = header.if_contains(member);
  return found && found->is_string() && std::string_view(found->get_string()) == wanted;
}

// The time it takes says nothing of where two texts differ.
bool SameBytes(std::string_view one, std::string_view other) {
  if (one.size() != other.size()) return false;
  unsigned char different = 0;
  for (size_t i = 0; i < one.size(); ++i) different |= static_cast<unsigned char>(one[i] ^ other[i]);
  return different == 0;
}

}  // namespace

bool HasSigned(const TokenParts& token, std::string_view content, std::string_view signature) {
  const size_t gap = signature.find("..");
  if (gap == signature.npos) return false;
  const std::string header(signature.substr(0, gap));
  const Result<std::string> header_text = DecodeBase64(header, Base64::kRawUrl);
  const Result<std::string> given = DecodeBase64(signature.substr(gap + 2), Base64::kRawUrl);
  if (!header_text || !given) return false;
  json::error_code malformed;
  const json::value parsed = json::parse(*header_text, malformed);
  if (malformed || !parsed.is_object()) return false;
  if (!HasText(parsed.get_object(), "alg", "HS256")) return false;
  if (!HasText(parsed.get_object(), "kid", token.id)) return false;
  const std::string signed_text = header + "." + EncodeBase64(content, Base64::kRawUrl);
  return SameBytes(crypto::HmacSha256(token.secret, signed_text), *given);
}

}  // namespace keelson::ctl
