// A JSON Web Token taken apart (RFC 7519, compact form). Internal to authn/.
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
// Checks nothing but the form. Tokens that ask for what is not understood (crit) are errors.
Result<Jwt> DecodeJwt(std::string_view token);

// Members of claims; empty or 0 when absent or of another kind.
std::string_view TextClaim(const boost::json::object& claims, std::string_view name);
int64_t SecondsClaim(const boost::json::object& claims, std::string_view name);
std::vector<std::string> AudienceClaim(const boost::json::object& claims);  // a text or a list of them

}  // namespace keelson::apiserver
