#include "controlplane/apiserver/authn/jwt.h"

#include <cmath>

#include <boost/json.hpp>

#include "lib/base/base64.h"

namespace keelson::apiserver {
namespace {

namespace json = boost::json;

Result<json::object> DecodePart(std::string_view part) {
  KEELSON_ASSIGN_OR_RETURN(std::string text, DecodeBase64(part, Base64::kRawUrl));
  boost::system::error_code error;
  json::value value = json::parse(text, error);
  if (error || !value.is_object()) return Error(Code::kBadRequest, "token part is no JSON object");
  return std::move(value.get_object());
}

}  // namespace

std::string_view TextClaim(const json::object& claims, std::string_view name) {
  const json::value* value = claims.if_contains(name);
  return value && value->is_string() ? std::string_view(value->get_string()) : std::string_view();
}

int64_t SecondsClaim(const json::object& claims, std::string_view name) {
  // A limit far beyond real dates that avoids overflow.
  constexpr double kMost = 1e15;
  const json::value* value = claims.if_contains(name);
  if (!value) return 0;
  if (value->is_double()) {
    double seconds = value->get_double();
    return std::abs(seconds) < kMost ? static_cast<int64_t>(seconds) : 0;
  }
  boost::system::error_code error;
  int64_t seconds = value->to_number<int64_t>(error);
  return error || std::abs(static_cast<double>(seconds)) > kMost ? 0 : seconds;
}

std::vector<std::string> AudienceClaim(const json::object& claims) {
  std::vector<std::string> out;
  const json::value* value = claims.if_contains("aud");
  if (value && value->is_string()) out.emplace_back(value->get_string());
  if (value && value->is_array()) {
    for (const json::value& one : value->get_array()) {
      if (one.is_string()) out.emplace_back(one.get_string());
    }
  }
  return out;
}

Result<Jwt> DecodeJwt(std::string_view token) {
  auto first = token.find('.');
  auto second = first == std::string_view::npos ? first : token.find('.', first + 1);
  if (second == std::string_view::npos || token.find('.', second + 1) != std::string_view::npos) {
    return Error(Code::kBadRequest, "token is no JWT");
  }
  Jwt out;
  KEELSON_ASSIGN_OR_RETURN(json::object header, DecodePart(token.substr(0, first)));
  KEELSON_ASSIGN_OR_RETURN(out.payload, DecodePart(token.substr(first + 1, second - first - 1)));
  KEELSON_ASSIGN_OR_RETURN(out.signature, DecodeBase64(token.substr(second + 1), Base64::kRawUrl));
  if (header.contains("crit")) return Error(Code::kBadRequest, "token has critical headers");
  out.signed_part = token.substr(0, second);
  out.algorithm = TextClaim(header, "alg");
  out.key_id = TextClaim(header, "kid");
  return out;
}

}  // namespace keelson::apiserver
