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

bool FromBase64(std::string_view text, std::string& out) {
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  uint32_t bits = 0;
  int have = 0;
  for (char c : text) {
    size_t value = kAlphabet.find(c);
    if (value == std::string_view::npos) return false;
    bits = bits << 6 | static_cast<uint32_t>(value);
    have += 6;
    if (have < 8) continue;
    have -= 8;
    out += static_cast<char>(bits >> have & 255);
  }
  return true;
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
  const Error invalid(Code::kBadRequest, "continue key is not valid");
  std::string decoded;
  if (!FromBase64(text, decoded)) return invalid;
  boost::system::error_code error;
  boost::json::value parsed = boost::json::parse(decoded, error);
  if (error || !parsed.is_object()) return invalid;
  const boost::json::object& json = parsed.get_object();
  const auto* version = json.if_contains("v");
  const auto* revision = json.if_contains("rv");
  const auto* start = json.if_contains("start");
  if (!version || !version->is_string() || std::string_view(version->get_string()) != kVersion) {
    return Error(Code::kBadRequest,
                 "continue key is not valid: server does not recognize this encoded version");
  }
  if (!revision || !revision->is_int64() || revision->get_int64() == 0 || revision->get_int64() < -1)
    return Error(
        Code::kBadRequest,
        "continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)");
  if (!start || !start->is_string() || start->get_string().empty())
    return Error(Code::kBadRequest,
                 "continue key is not valid: encoded start key empty (version meta.k8s.io/v1)");
  return ContinueToken{revision->get_int64(), std::string(std::string_view(start->get_string()))};
}

}  // namespace keelson::storage
