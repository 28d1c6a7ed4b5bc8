#include "controlplane/apiserver/authn/config.h"

#include <algorithm>
#include <set>

#include "controlplane/apiserver/webhook/config_reader.h"

namespace keelson::apiserver {
namespace {

void RefuseExpression(ConfigReader& reader, const char* field) {
  if (reader.Has(field)) reader.Fail(field, "expressions are not supported");
}

// {claim, prefix}; a claim requires a prefix, which may be empty.
void ReadClaim(ConfigReader reader, ConfigReader& parent, bool required, std::string& claim,
               std::string& prefix) {
  RefuseExpression(reader, "expression");
  claim = required ? reader.Required("claim") : reader.Text("claim");
  if (!claim.empty() && !reader.Has("prefix"))
    reader.Fail("prefix",
                "Required value: prefix is required when claim is set. It can be set to an empty "
                "string to disable prefixing");
  prefix = reader.Text("prefix");
  parent.Take(reader);
}

void ReadIssuer(ConfigReader& issuer, OidcOptions& out) {
  out.issuer_url = issuer.Required("url");
  out.discovery_url = issuer.Text("discoveryURL");
  out.ca_pem = issuer.Text("certificateAuthority");
  out.audiences = issuer.Texts("audiences");
  if (issuer.Has("egressSelectorType")) issuer.Fail("egressSelectorType", "is not supported");
  std::string policy = issuer.Text("audienceMatchPolicy");
  if (out.audiences.empty()) issuer.Fail("audiences", "Required value: at least one audience is required");
  if (!policy.empty() && policy != "MatchAny")
    issuer.Fail("audienceMatchPolicy", "Unsupported value: supported values: \"MatchAny\"");
  if (out.audiences.size() > 1 && policy.empty())
    issuer.Fail("audienceMatchPolicy", "audienceMatchPolicy must be MatchAny for multiple audiences");
  for (const std::string& url : {out.issuer_url, out.discovery_url}) {
    if (!url.empty() && url.compare(0, 8, "https://") != 0) issuer.Fail("url", "URL scheme must be https");
  }
}

OidcOptions ReadJwt(ConfigReader& jwt, const std::vector<std::string>& taken_issuers) {
  OidcOptions out;
  out.algorithms = {"RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512"};
  ConfigReader issuer = jwt.Map("issuer");
  ReadIssuer(issuer, out);
  if (std::find(taken_issuers.begin(), taken_issuers.end(), out.issuer_url) != taken_issuers.end())
    issuer.Fail("url", "URL must not overlap with disallowed issuers");
  jwt.Take(issuer);
  for (ConfigReader& rule : jwt.Maps("claimValidationRules")) {
    RefuseExpression(rule, "expression");
    RefuseExpression(rule, "message");
    out.required_claims[rule.Required("claim")] = rule.Text("requiredValue");
    jwt.Take(rule);
  }
  ConfigReader mappings = jwt.Map("claimMappings");
  ReadClaim(mappings.Map("username"), mappings, true, out.username_claim, out.username_prefix);
  ReadClaim(mappings.Map("groups"), mappings, false, out.groups_claim, out.groups_prefix);
  ConfigReader uid = mappings.Map("uid");
  RefuseExpression(uid, "expression");
  out.uid_claim = uid.Text("claim");
  mappings.Take(uid);
  RefuseExpression(mappings, "extra");
  jwt.Take(mappings);
  RefuseExpression(jwt, "userValidationRules");
  return out;
}

AnonymousOptions ReadAnonymous(ConfigReader& reader) {
  AnonymousOptions out;
  out.enabled = reader.Bool("enabled", false);
  for (ConfigReader& condition : reader.Maps("conditions")) {
    out.paths.push_back(condition.Required("path"));
    reader.Take(condition);
  }
  if (!out.enabled && !out.paths.empty())
    reader.Fail("conditions", "enabled should be set to true when conditions are defined");
  return out;
}

}  // namespace

Result<AuthenticationConfig> ParseAuthenticationConfig(const std::string& text,
                                                       const std::vector<std::string>& taken_issuers) {
  ASSIGN_OR_RETURN(ConfigReader reader,
                   ConfigReader::Document(text, "AuthenticationConfiguration",
                                          {"apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1beta1",
                                           "apiserver.config.k8s.io/v1alpha1"}));
  AuthenticationConfig out;
  std::set<std::string> issuers;
  for (ConfigReader& jwt : reader.Maps("jwt")) {
    OidcOptions options = ReadJwt(jwt, taken_issuers);
    if (!issuers.insert(options.issuer_url).second) jwt.Fail("issuer.url", "Duplicate value");
    reader.Take(jwt);
    out.jwt.push_back(std::move(options));
  }
  if (reader.Has("anonymous")) {
    ConfigReader anonymous = reader.Map("anonymous");
    out.anonymous = ReadAnonymous(anonymous);
    reader.Take(anonymous);
  }
  RETURN_IF_ERROR(reader.Finish());
  return out;
}

}  // namespace keelson::apiserver
