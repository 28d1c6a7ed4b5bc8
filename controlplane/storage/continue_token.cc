#include "controlplane/storage/continue_token.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

namespace keelson::storage {
namespace {

constexpr std::string_view kVersion = "meta.k8s.io/v1";
constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::string ToBase64(std::string_view bytes) {
  std::string out;
  uint32_t bits = 0;
  int have = 0;
  for (unsigned char byte : bytes) {
    bits = bits << 8 | byte;
    for (have += 8; have >= 6; have -= 6) out += kAlphabet[bits >> (have - 6) & 63];
  }
  if (have > 0) out += kAlphabet[bits << (6 - have) & 63];
  return out;
}

constexpr size_t kGood = std::string_view::npos;

// Unpadded; where it goes wrong, or kGood.
size_t FromBase64(std::string_view text, std::string& out) {
  uint32_t bits = 0;
  int have = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    size_t value = kAlphabet.find(text[i]);
    if (value == std::string_view::npos) return i;
    bits = bits << 6 | static_cast<uint32_t>(value);
    have += 6;
    if (have < 8) continue;
    have -= 8;
    out += static_cast<char>(bits >> have & 255);
  }
  return text.size() % 4 == 1 ? text.size() - 1 : kGood;
}

// A key that stays below the prefix it is appended to: no empty segments, no "." and "..".
bool IsClean(std::string_view key) {
  if (!key.empty() && key.front() == '/') key.remove_prefix(1);
  while (true) {
    size_t slash = key.find('/');
    std::string_view segment = key.substr(0, slash);
    if (segment.empty() || segment == "." || segment == "..") return false;
    if (slash == std::string_view::npos) return true;
    key.remove_prefix(slash + 1);
  }
}

}  // namespace

std::string Encode(const ContinueToken& token) {
  boost::json::object json;
  json["v"] = kVersion;
  json["rv"] = token.revision;
  json["start"] = token.start;
  return ToBase64(boost::json::serialize(json));
}

Result<ContinueToken> DecodeContinue(std::string_view text) {
  auto invalid = [](std::string_view why) {
    return Error(Code::kBadRequest, "continue key is not valid: " + std::string(why));
  };
  std::string decoded;
  if (size_t at = FromBase64(text, decoded); at != kGood)
    return invalid("illegal base64 data at input byte " + std::to_string(at));
  boost::system::error_code error;
  boost::json::value parsed = boost::json::parse(decoded, error);
  if (error || !parsed.is_object()) {
    if (decoded.empty() || decoded.front() == '{') return invalid("unexpected end of JSON input");
    return invalid(std::string("invalid character '") + decoded.front() + "' looking for beginning of value");
  }
  const boost::json::object& json = parsed.get_object();
  const auto* version = json.if_contains("v");
  const auto* revision = json.if_contains("rv");
  const auto* start = json.if_contains("start");
  std::string given = version && version->is_string() ? std::string(version->get_string()) : "";
  if (given != kVersion) return invalid("server does not recognize this encoded version " + given);
  if (!revision || !revision->is_int64() || revision->get_int64() == 0 || revision->get_int64() < -1)
    return invalid("incorrect encoded start resourceVersion (version meta.k8s.io/v1)");
  if (!start || !start->is_string() || start->get_string().empty())
    return invalid("encoded start key empty (version meta.k8s.io/v1)");
  std::string key(start->get_string());
  if (!IsClean(key)) return invalid(key);
  if (key.front() == '/') key.erase(0, 1);
  return ContinueToken{revision->get_int64(), std::move(key)};
}

std::string InconsistentToken(std::string_view text) {
  Result<ContinueToken> token = DecodeContinue(text);
  return token ? Encode({-1, token->start}) : "";
}

}  // namespace keelson::storage
