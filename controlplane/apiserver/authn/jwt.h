// JSON Web Tokens (RFC 7519, compact form). Internal to authn/.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>

#include "lib/base/error.h"

namespace keelson::apiserver {

struct Jwt {
  std::string algorithm, key_id, signature;
  std::string_view signed_part;  // points into the token
  boost::json::object payload;
};
// Parses a token without verifying it. A token with critical extensions (crit) is an error.
Result<Jwt> DecodeJwt(std::string_view token);

// Claims by name; empty or 0 when missing or of another type.
std::string_view TextClaim(const boost::json::object& claims, std::string_view name);
int64_t SecondsClaim(const boost::json::object& claims, std::string_view name);
std::vector<std::string> AudienceClaim(const boost::json::object& claims);  // a string or a list of strings

}  // namespace keelson::apiserver
