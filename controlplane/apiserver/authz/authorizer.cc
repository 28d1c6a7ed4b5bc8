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
  std::vector<std::string> reasons, errors;
  const std::shared_ptr<const List> all = all_.load();
  for (const auto& authorizer : *all) {
    Decision decision = authorizer->Authorize(attributes);
    if (decision.allowed || decision.denied) return decision;
    if (!decision.reason.empty()) reasons.push_back(std::move(decision.reason));
    if (!decision.evaluation_error.empty()) errors.push_back(std::move(decision.evaluation_error));
  }
  return {false, fmt::format("{}", fmt::join(reasons, "\n")), Aggregate(errors)};
}

UserRules UnionAuthorizer::RulesFor(const User& user, std::string_view ns) const {
  UserRules out;
  std::vector<std::string> errors;
  const std::shared_ptr<const List> all = all_.load();
  for (const auto& authorizer : *all) {
    UserRules some = authorizer->RulesFor(user, ns);
    out.incomplete = out.incomplete || some.incomplete;
    if (!some.error.empty()) errors.push_back(std::move(some.error));
    for (PolicyRule& rule : some.rules) out.rules.push_back(std::move(rule));
  }
  out.error = Aggregate(errors);
  return out;
}

Decision MastersAuthorizer::Authorize(const Attributes& attributes) const {
  return {attributes.user.InGroup(kGroupMasters), "", ""};
}

UserRules MastersAuthorizer::RulesFor(const User&, std::string_view) const { return {}; }

std::string Aggregate(const std::vector<std::string>& errors) {
  std::vector<std::string> unique;
  for (const std::string& error : errors) {
    if (!Has(unique, error)) unique.push_back(error);
  }
  if (unique.empty()) return "";
  return unique.size() == 1 ? unique.front() : fmt::format("[{}]", fmt::join(unique, ", "));
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
