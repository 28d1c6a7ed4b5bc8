#include "controlplane/apiserver/authn/config.h"

#include <algorithm>
#include <set>

#include "lib/component/document_reader.h"

namespace keelson::apiserver {
namespace {

using component::DocumentReader;

std::string ReadText(DocumentReader& in, const char* field) {
  std::string out;
  in.Read(field, out);
  return out;
}

std::string ReadRequired(DocumentReader& in, const char* field) {
  std::string out = ReadText(in, field);
  if (out.empty()) in.Problem(field, "Required value");
  return out;
}

bool RefuseExpression(DocumentReader& in, const char* field) {
  if (!in.Has(field)) return false;
  in.Problem(field, "expressions are not supported");
  return true;
}

// {claim, prefix}; a claim without a prefix has to say so.
void ReadClaim(DocumentReader& in, bool required, std::string& claim, std::string& prefix) {
  required = !RefuseExpression(in, "expression") && required;
  claim = required ? ReadRequired(in, "claim") : ReadText(in, "claim");
  if (!claim.empty() && !in.Has("prefix")) {
    in.Problem("prefix",
               "Required value: prefix is required when claim is set. It can be set to an empty "
               "string to disable prefixing");
  }
  prefix = ReadText(in, "prefix");
}

void ReadIssuer(DocumentReader& in, OidcOptions& out) {
  out.issuer_url = ReadRequired(in, "url");
  out.discovery_url = ReadText(in, "discoveryURL");
  out.ca_pem = ReadText(in, "certificateAuthority");
  in.Read("audiences", out.audiences);
  if (in.Has("egressSelectorType")) in.Problem("egressSelectorType", "is not supported");
  const std::string policy = ReadText(in, "audienceMatchPolicy");
  if (out.audiences.empty()) in.Problem("audiences", "Required value: at least one audience is required");
  if (!policy.empty() && policy != "MatchAny") {
    in.Problem("audienceMatchPolicy", "Unsupported value: supported values: \"MatchAny\"");
  }
  if (out.audiences.size() > 1 && policy.empty()) {
    in.Problem("audienceMatchPolicy", "audienceMatchPolicy must be MatchAny for multiple audiences");
  }
  for (const auto& [field, url] :
       {std::pair("url", &out.issuer_url), std::pair("discoveryURL", &out.discovery_url)}) {
    if (!url->empty() && url->compare(0, 8, "https://") != 0) in.Problem(field, "URL scheme must be https");
  }
}

OidcOptions ReadJwt(DocumentReader& jwt, const std::vector<std::string>& taken_issuers) {
  OidcOptions out;
  out.algorithms = {"RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512"};
  jwt.Section("issuer", [&](DocumentReader& issuer) {
    ReadIssuer(issuer, out);
    if (std::find(taken_issuers.begin(), taken_issuers.end(), out.issuer_url) != taken_issuers.end()) {
      issuer.Problem("url", "URL must not overlap with disallowed issuers");
    }
  });
  jwt.List("claimValidationRules", [&](DocumentReader& rule) {
    const bool expression = RefuseExpression(rule, "expression");
    RefuseExpression(rule, "message");
    if (!expression) out.required_claims[ReadRequired(rule, "claim")] = ReadText(rule, "requiredValue");
  });
  jwt.Section("claimMappings", [&](DocumentReader& mappings) {
    mappings.Section("username", [&](DocumentReader& username) {
      ReadClaim(username, true, out.username_claim, out.username_prefix);
    });
    mappings.Section("groups", [&](DocumentReader& groups) {
      ReadClaim(groups, false, out.groups_claim, out.groups_prefix);
    });
    mappings.Object("uid", [&](DocumentReader& uid) {
      RefuseExpression(uid, "expression");
      uid.Read("claim", out.uid_claim);
    });
    RefuseExpression(mappings, "extra");
  });
  RefuseExpression(jwt, "userValidationRules");
  return out;
}

AnonymousOptions ReadAnonymous(DocumentReader& in) {
  AnonymousOptions out;
  out.enabled = false;
  in.Read("enabled", out.enabled);
  in.List("conditions",
          [&](DocumentReader& condition) { out.paths.push_back(ReadRequired(condition, "path")); });
  if (!out.enabled && !out.paths.empty()) {
    in.Problem("conditions", "enabled should be set to true when conditions are defined");
  }
  return out;
}

}  // namespace

Result<AuthenticationConfig> ParseAuthenticationConfig(const std::string& text,
                                                       const std::vector<std::string>& taken_issuers) {
  component::DocumentProblems problems{.words = component::TypeWords::kMustBe};
  KEELSON_ASSIGN_OR_RETURN(const auto document, component::ParseDocument(text, problems));
  KEELSON_RETURN_IF_ERROR(
      component::CheckType(document, {"AuthenticationConfiguration",
                                      {"apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1beta1",
                                       "apiserver.config.k8s.io/v1alpha1"}}));
  AuthenticationConfig out;
  std::set<std::string> issuers;
  {
    DocumentReader in(document, problems);
    in.Ignore({"kind", "apiVersion"});
    in.List("jwt", [&](DocumentReader& jwt) {
      out.jwt.push_back(ReadJwt(jwt, taken_issuers));
      if (!issuers.insert(out.jwt.back().issuer_url).second) jwt.Problem("issuer.url", "Duplicate value");
    });
    in.Object("anonymous", [&](DocumentReader& anonymous) { out.anonymous = ReadAnonymous(anonymous); });
  }
  KEELSON_RETURN_IF_ERROR(component::RefuseProblems(problems));
  return out;
}

}  // namespace keelson::apiserver
