#include "controlplane/apiserver/authz/authorizer.h"

#include <algorithm>

#include <fmt/format.h>

namespace keelson::apiserver {
namespace {

bool Has(const std::vector<std::string>& all, std::string_view one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}
bool HasOrAny(const std::vector<std::string>& all, std::string_view one) {
  return Has(all, "*") || Has(all, one);
}

// "*", "pods", "pods/log", "*/scale"
bool MatchesResource(const std::vector<std::string>& resources, const RequestInfo& request) {
  if (HasOrAny(resources, request.FullResource())) return true;
  return !request.subresource.empty() && Has(resources, "*/" + request.subresource);
}

// "*", "/healthz", "/api/*"
bool MatchesPath(const std::vector<std::string>& urls, std::string_view path) {
  return std::any_of(urls.begin(), urls.end(), [&](std::string_view url) {
    if (!url.empty() && url.back() == '*') {
      url.remove_suffix(1);
      return path.substr(0, url.size()) == url;
    }
    return path == url;
  });
}

}  // namespace

bool Allows(const PolicyRule& rule, const RequestInfo& request) {
  if (!HasOrAny(rule.verbs, request.verb)) return false;
  if (!request.is_resource) return MatchesPath(rule.urls, request.path);
  return HasOrAny(rule.groups, request.group) && MatchesResource(rule.resources, request) &&
         (rule.names.empty() || Has(rule.names, request.name));
}

Decision UnionAuthorizer::Authorize(const Attributes& attributes) const {
  Decision denied;
  for (const auto& authorizer : all_) {
    Decision decision = authorizer->Authorize(attributes);
    if (decision.allowed) return decision;
    if (denied.reason.empty()) denied.reason = std::move(decision.reason);
    if (denied.evaluation_error.empty()) denied.evaluation_error = std::move(decision.evaluation_error);
  }
  return denied;
}

std::vector<PolicyRule> UnionAuthorizer::RulesFor(const User& user, std::string_view ns) const {
  std::vector<PolicyRule> out;
  for (const auto& authorizer : all_) {
    for (PolicyRule& rule : authorizer->RulesFor(user, ns)) out.push_back(std::move(rule));
  }
  return out;
}

Decision MastersAuthorizer::Authorize(const Attributes& attributes) const {
  return {attributes.user.InGroup(kGroupMasters), "", ""};
}

std::vector<PolicyRule> MastersAuthorizer::RulesFor(const User& user, std::string_view) const {
  if (!user.InGroup(kGroupMasters)) return {};
  return {{{"*"}, {"*"}, {"*"}, {}, {}}, {{"*"}, {}, {}, {}, {"*"}}};
}

Error ForbiddenTo(const Attributes& attributes, std::string_view reason) {
  const RequestInfo& request = attributes.request;
  std::string tail = reason.empty() ? "" : fmt::format(": {}", reason);
  if (!request.is_resource) {
    return Error(Code::kForbidden, fmt::format("forbidden: User \"{}\" cannot {} path \"{}\"{}",
                                               attributes.user.name, request.verb, request.path, tail))
        .WithDetails({});
  }
  std::string resource = request.group.empty() ? request.resource : request.resource + "." + request.group;
  if (!request.name.empty()) resource += fmt::format(" \"{}\"", request.name);
  std::string where =
      request.ns.empty() ? "at the cluster scope" : fmt::format("in the namespace \"{}\"", request.ns);
  std::string message =
      fmt::format("{} is forbidden: User \"{}\" cannot {} resource \"{}\" in API group \"{}\" {}{}", resource,
                  attributes.user.name, request.verb, request.FullResource(), request.group, where, tail);
  ErrorDetails details;
  details.name = request.name;
  details.group = request.group;
  details.kind = request.resource;
  return Error(Code::kForbidden, std::move(message)).WithDetails(std::move(details));
}

}  // namespace keelson::apiserver
