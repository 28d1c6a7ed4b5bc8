#include "controlplane/apiserver/admission/expressions/authorizer.h"

#include <fmt/format.h>

namespace keelson::apiserver {
namespace {

User ServiceAccountUser(const std::string& ns, const std::string& name) {
  return {fmt::format("{}{}:{}", kUserServiceAccountPrefix, ns, name),
          "",
          {std::string(kGroupServiceAccounts), fmt::format("{}:{}", kGroupServiceAccounts, ns),
           std::string(kGroupAuthenticated)},
          {}};
}

RequestInfo RequestOf(const cel::AuthorizationQuestion& question) {
  RequestInfo out;
  out.verb = question.verb;
  out.path = question.path;
  out.is_resource = !question.resource.empty();
  if (!out.is_resource) return out;
  out.group = question.group;
  out.version = "*";
  out.ns = question.namespace_name;
  out.resource = question.resource;
  out.subresource = question.subresource;
  out.name = question.name;
  out.field_selector = question.field_selector;
  out.label_selector = question.label_selector;
  return out;
}

}  // namespace

cel::AuthorizationAnswer ExpressionAuthorizer::Check(const cel::AuthorizationQuestion& question) const {
  const RequestInfo request = RequestOf(question);
  Decision decision;
  if (question.service_account_name.empty()) {
    decision = authorizer_.Authorize({user_, request});
  } else {
    const User account =
        ServiceAccountUser(question.service_account_namespace, question.service_account_name);
    decision = authorizer_.Authorize({account, request});
  }
  cel::AuthorizationAnswer answer;
  answer.allowed = decision.allowed;
  answer.reason = std::move(decision.reason);
  answer.errored = !decision.allowed && !decision.evaluation_error.empty();
  if (answer.errored) answer.error = std::move(decision.evaluation_error);
  return answer;
}

}  // namespace keelson::apiserver
