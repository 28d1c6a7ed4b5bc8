#include "controlplane/storage/continue_token.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "lib/base/base64.h"

namespace keelson::storage {
namespace {

constexpr std::string_view kVersion = "meta.k8s.io/v1";
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
  return EncodeBase64(boost::json::serialize(json), Base64::kRawUrl);
}

Result<ContinueToken> DecodeContinue(std::string_view text) {
  auto invalid = [](std::string_view why) {
    return Error(Code::kBadRequest, "continue key is not valid: " + std::string(why));
  };
  const Result<std::string> bytes = DecodeBase64(text, Base64::kRawUrl);
  if (!bytes) return invalid(bytes.error().message());
  const std::string& decoded = *bytes;
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
  if (!revision || !revision->is_int64() || revision->get_int64() == 0 || revision->get_int64() < -1) {
    return invalid("incorrect encoded start resourceVersion (version meta.k8s.io/v1)");
  }
  if (!start || !start->is_string() || start->get_string().empty()) {
    return invalid("encoded start key empty (version meta.k8s.io/v1)");
  }
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
