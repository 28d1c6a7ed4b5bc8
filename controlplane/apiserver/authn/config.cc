#include "controlplane/apiserver/authn/config.h"

#include <algorithm>
#include <set>

#include "lib/component/document_reader.h"
#include "lib/k8s/field_error.h"
#include "lib/k8s/validation/parts.h"

namespace keelson::apiserver {
namespace {

using component::DocumentReader;

constexpr char kBothSet[] = "Invalid value: \"\": claim and expression can't both be set";
constexpr char kOneRequired[] = "Required value: claim or expression is required";

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

// Compiles an expression; a problem has the words of field validation.
ExpressionPtr ReadExpression(DocumentReader& in, const char* field, const std::string& text,
                             Result<ExpressionPtr> (*compile)(std::string_view)) {
  Result<ExpressionPtr> compiled = compile(text);
  if (compiled) return *compiled;
  in.Problem(field, "Invalid value: " + k8s::Quote(text) + ": " + compiled.error().message());
  return nullptr;
}

// {claim, prefix} or {expression}; a claim without a prefix has to say so.
void ReadClaim(DocumentReader& in, bool required, std::string& claim, std::string& prefix,
               ExpressionPtr& expression) {
  claim = ReadText(in, "claim");
  prefix = ReadText(in, "prefix");
  const std::string text = ReadText(in, "expression");
  if (!claim.empty() && !text.empty()) {
    in.Problem("", kBothSet);
  } else if (claim.empty() && text.empty()) {
    if (required) in.Problem("", kOneRequired);
  } else if (!text.empty()) {
    if (in.Has("prefix")) in.Problem("prefix", "may not be specified when expression is set");
    expression = ReadExpression(in, "expression", text, CompileClaimMapping);
  } else if (!in.Has("prefix")) {
    in.Problem("prefix",
               "Required value: prefix is required when claim is set. It can be set to an empty "
               "string to disable prefixing");
  }
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

// Whether expressions look at the e-mail address and at whether the provider has verified it: who takes the address as
// the user's name has to.
struct EmailUse {
  bool address = false, verified = false;
};

void ReadClaimRules(DocumentReader& jwt, OidcOptions& out, ClaimExpressions& expressions, EmailUse& email) {
  std::set<std::string> seen;
  jwt.List("claimValidationRules", [&](DocumentReader& rule) {
    const std::string claim = ReadText(rule, "claim"), text = ReadText(rule, "expression"),
                      value = ReadText(rule, "requiredValue"), message = ReadText(rule, "message");
    if (!claim.empty() && !text.empty()) {
      rule.Problem("", kBothSet);
    } else if (claim.empty() && text.empty()) {
      rule.Problem("", kOneRequired);
    } else if (!claim.empty()) {
      if (!message.empty()) rule.Problem("message", "may not be specified when claim is set");
      if (!out.required_claims.emplace(claim, value).second) {
        rule.Problem("claim", "Duplicate value: " + k8s::Quote(claim));
      }
    } else {
      if (!value.empty()) rule.Problem("requiredValue", "may not be specified when expression is set");
      if (!seen.insert(text).second) {
        rule.Problem("expression", "Duplicate value: " + k8s::Quote(text));
        return;
      }
      email.verified = email.verified || SelectsClaim(text, "email_verified");
      if (ExpressionPtr compiled = ReadExpression(rule, "expression", text, CompileClaimRule)) {
        expressions.claim_rules.push_back({std::move(compiled), message});
      }
    }
  });
}

// A key of extra: a lower-case path below a domain that is not Kubernetes' own.
void CheckExtraKey(DocumentReader& in, const std::string& key) {
  k8s::FieldErrors errors;
  k8s::CheckDomainPrefixedPath(key, k8s::Path("key"), errors);
  for (const k8s::FieldError& error : errors) in.Problem("key", error.Body());
  if (std::any_of(key.begin(), key.end(), [](char c) { return c >= 'A' && c <= 'Z'; })) {
    in.Problem("key", "Invalid value: " + k8s::Quote(key) + ": must be lowercase");
  }
  const std::string domain = "." + key.substr(0, key.find('/'));
  if (domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io")) {
    in.Problem("key", "Invalid value: " + k8s::Quote(key) +
                          ": k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use");
  }
}

void ReadExtra(DocumentReader& mappings, ClaimExpressions& expressions, EmailUse& email) {
  std::set<std::string> seen;
  mappings.List("extra", [&](DocumentReader& extra) {
    const std::string key = ReadText(extra, "key"), text = ReadText(extra, "valueExpression");
    CheckExtraKey(extra, key);
    if (!seen.insert(key).second) {
      extra.Problem("key", "Duplicate value: " + k8s::Quote(key));
    } else if (text.empty()) {
      extra.Problem("valueExpression", "Required value");
    } else {
      email.verified = email.verified || SelectsClaim(text, "email_verified");
      expressions.extra.emplace_back(key,
                                     ReadExpression(extra, "valueExpression", text, CompileClaimMapping));
    }
  });
}

void ReadMappings(DocumentReader& mappings, OidcOptions& out, ClaimExpressions& expressions,
                  EmailUse& email) {
  mappings.Section("username", [&](DocumentReader& username) {
    ReadClaim(username, true, out.username_claim, out.username_prefix, expressions.username);
  });
  mappings.Section("groups", [&](DocumentReader& groups) {
    ReadClaim(groups, false, out.groups_claim, out.groups_prefix, expressions.groups);
  });
  mappings.Object("uid", [&](DocumentReader& uid) {
    out.uid_claim = ReadText(uid, "claim");
    const std::string text = ReadText(uid, "expression");
    if (!out.uid_claim.empty() && !text.empty()) uid.Problem("", kBothSet);
    if (!text.empty()) expressions.uid = ReadExpression(uid, "expression", text, CompileClaimMapping);
  });
  ReadExtra(mappings, expressions, email);
  if (!expressions.username) return;
  const std::string& text = expressions.username->expression();
  email.address = SelectsClaim(text, "email");
  email.verified = email.verified || SelectsClaim(text, "email_verified");
  if (email.address && !email.verified) {
    mappings.Problem("username.expression",
                     "Invalid value: " + k8s::Quote(text) +
                         ": claims.email_verified must be used in claimMappings.username.expression or "
                         "claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when "
                         "claims.email is used in claimMappings.username.expression");
  }
}

void ReadUserRules(DocumentReader& jwt, ClaimExpressions& expressions) {
  std::set<std::string> seen;
  jwt.List("userValidationRules", [&](DocumentReader& rule) {
    const std::string text = ReadText(rule, "expression"), message = ReadText(rule, "message");
    if (text.empty()) {
      rule.Problem("expression", "Required value");
    } else if (!seen.insert(text).second) {
      rule.Problem("expression", "Duplicate value: " + k8s::Quote(text));
    } else if (ExpressionPtr compiled = ReadExpression(rule, "expression", text, CompileUserRule)) {
      expressions.user_rules.push_back({std::move(compiled), message});
    }
  });
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
  auto expressions = std::make_shared<ClaimExpressions>();
  EmailUse email;
  ReadClaimRules(jwt, out, *expressions, email);
  jwt.Section("claimMappings", [&](DocumentReader& in) { ReadMappings(in, out, *expressions, email); });
  ReadUserRules(jwt, *expressions);
  out.expressions = std::move(expressions);
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
