// CEL in AuthenticationConfiguration: expressions on a token's claims and on the user that they make
// (k8s.io/apiserver/pkg/authentication/cel).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json/object.hpp>

#include "controlplane/apiserver/request/user.h"
#include "lib/base/error.h"
#include "lib/cel/program.h"

namespace keelson::apiserver {

using ExpressionPtr = std::shared_ptr<const cel::Program>;

struct ValidationExpression {
  ExpressionPtr expression;
  std::string message;  // of a failure
};

// What a provider's configuration says in CEL. Null: no expression, or a claim in its place.
struct ClaimExpressions {
  ExpressionPtr username, groups, uid;
  std::vector<std::pair<std::string, ExpressionPtr>> extra;  // by key
  std::vector<ValidationExpression> claim_rules, user_rules;
};

// Compile one expression. kInvalid in upstream's words: "compilation failed: ...", "must evaluate to bool".
Result<ExpressionPtr> CompileClaimMapping(std::string_view expression);
Result<ExpressionPtr> CompileClaimRule(std::string_view expression);  // has to be a bool
Result<ExpressionPtr> CompileUserRule(std::string_view expression);   // has to be a bool

// Whether the expression selects that claim: claims.email, claims.?email, has(claims.email).
bool SelectsClaim(std::string_view expression, std::string_view claim);

// Evaluate on the claims of a verified token. Each fails with kUnauthenticated, in upstream's words and without "oidc: ".
Result<std::string> EvaluateUserName(const ClaimExpressions& all, const boost::json::object& claims);
Result<std::vector<std::string>> EvaluateGroups(const ClaimExpressions& all,
                                                const boost::json::object& claims);
Result<std::string> EvaluateUid(const ClaimExpressions& all, const boost::json::object& claims);
Result<> EvaluateExtra(const ClaimExpressions& all, const boost::json::object& claims, User& user);
Result<> EvaluateClaimRules(const ClaimExpressions& all, const boost::json::object& claims);
Result<> EvaluateUserRules(const ClaimExpressions& all, const User& user);

}  // namespace keelson::apiserver
