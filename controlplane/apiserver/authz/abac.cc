#include "controlplane/apiserver/authz/abac.h"

#include <algorithm>

#include <fmt/format.h>
#include <boost/json.hpp>

namespace keelson::apiserver {
namespace {

namespace json = boost::json;

constexpr std::string_view kVersion = "abac.authorization.kubernetes.io/v1beta1";
constexpr std::string_view kAll = "*";

struct Policy {
  std::string user, group, ns, resource, api_group, path;
  bool read_only = false;

  bool IsFor(const User& who) const {
    if (!user.empty() && user != kAll && user != who.name) return false;
    if (!group.empty() && group != kAll && !who.InGroup(group)) return false;
    return !user.empty() || !group.empty();
  }
  bool CoversPath(std::string_view asked) const {
    if (path == asked) return true;
    return path.ends_with('*') &&
           asked.starts_with(std::string_view(path).substr(0, path.find_last_not_of('*') + 1));
  }
  bool Covers(const RequestInfo& request) const {
    const bool reads = request.verb == "get" || request.verb == "list" || request.verb == "watch";
    if (read_only && !reads) return false;
    if (!request.is_resource) return CoversPath(request.path);
    auto fits = [](const std::string& said, const std::string& asked) {
      return said == kAll || said == asked;
    };
    return fits(ns, request.ns) && fits(resource, request.resource) && fits(api_group, request.group);
  }
  std::vector<std::string> Verbs() const {
    if (read_only) return {"get", "list", "watch"};
    return {"*"};
  }
};

class Abac : public Authorizer {
 public:
  explicit Abac(std::vector<Policy> policies) : policies_(std::move(policies)) {}

  Decision Authorize(const Attributes& attributes) const override {
    const bool allowed = std::any_of(policies_.begin(), policies_.end(), [&](const Policy& policy) {
      return policy.IsFor(attributes.user) && policy.Covers(attributes.request);
    });
    return {allowed, allowed ? "" : "No policy matched.", ""};
  }

  UserRules RulesFor(const User& user, std::string_view ns) const override {
    UserRules out;
    for (const Policy& policy : policies_) {
      if (!policy.IsFor(user) || (policy.ns != kAll && policy.ns != ns)) continue;
      if (!policy.resource.empty()) {
        out.rules.push_back({policy.Verbs(), {policy.api_group}, {policy.resource}, {}, {}});
      }
      if (!policy.path.empty()) out.rules.push_back({policy.Verbs(), {}, {}, {}, {policy.path}});
    }
    return out;
  }

 private:
  const std::vector<Policy> policies_;
};

Error Bad(std::string why) { return Error(Code::kInvalid, std::move(why)); }

// Reads the fields of an object; an unknown field is an error, because it may be a restriction.
Result<Policy> ReadFields(const json::object& object, bool is_old) {
  Policy out;
  for (const auto& field : object) {
    const std::string_view name(field.key().data(), field.key().size());
    if (name == "readonly") {
      if (!field.value().is_bool()) return Bad("readonly: not a boolean");
      out.read_only = field.value().get_bool();
      continue;
    }
    std::string* text = name == "user"                         ? &out.user
                        : name == "group"                      ? &out.group
                        : name == "namespace"                  ? &out.ns
                        : name == "resource"                   ? &out.resource
                        : name == "apiGroup" && !is_old        ? &out.api_group
                        : name == "nonResourcePath" && !is_old ? &out.path
                                                               : nullptr;
    if (!text) return Bad(fmt::format("unknown field \"{}\"", name));
    if (!field.value().is_string()) return Bad(fmt::format("{}: not a string", name));
    *text = field.value().get_string();
  }
  return out;
}

// "*" includes authenticated users only.
void MeanAuthenticated(Policy& policy) {
  if (policy.user != kAll && policy.group != kAll) return;
  policy.user.clear();
  policy.group = kGroupAuthenticated;
}

Result<Policy> ReadOld(const json::object& object) {
  KEELSON_ASSIGN_OR_RETURN(Policy out, ReadFields(object, true));
  if (out.user.empty() && out.group.empty()) out.group = kAll;
  MeanAuthenticated(out);
  if (out.ns.empty() && out.resource.empty()) out.path = kAll;
  if (out.ns.empty()) out.ns = kAll;
  if (out.resource.empty()) out.resource = kAll;
  out.api_group = kAll;
  return out;
}

Result<Policy> ReadLine(std::string_view line) {
  boost::system::error_code error;
  const json::value value = json::parse(line, error);
  if (error) return Bad(error.message());
  if (!value.is_object()) return Bad("not an object");
  const json::object& object = value.get_object();
  if (!object.contains("apiVersion") && !object.contains("kind")) return ReadOld(object);
  auto text = [&](const char* name) {
    const json::value* found = object.if_contains(name);
    return found && found->is_string() ? std::string_view(found->get_string()) : std::string_view();
  };
  if (text("apiVersion") != kVersion || text("kind") != "Policy") {
    return Bad(
        fmt::format("no kind \"{}\" is registered for version \"{}\"", text("kind"), text("apiVersion")));
  }
  const json::value* spec = object.if_contains("spec");
  if (!spec || !spec->is_object()) return Bad("spec: not an object");
  KEELSON_ASSIGN_OR_RETURN(Policy out, ReadFields(spec->get_object(), false));
  MeanAuthenticated(out);
  return out;
}

}  // namespace

Result<std::shared_ptr<const Authorizer>> NewAbacAuthorizer(const std::string& path, std::string_view text) {
  std::vector<Policy> policies;
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find_first_not_of(" \t") == std::string_view::npos || line.starts_with('#')) continue;
    Result<Policy> policy = ReadLine(line);
    if (!policy) {
      return Bad(fmt::format("error reading policy file {}, line {}: {}: {}", path, number, line,
                             policy.error().message()));
    }
    policies.push_back(std::move(*policy));
  }
  return std::shared_ptr<const Authorizer>(std::make_shared<Abac>(std::move(policies)));
}

}  // namespace keelson::apiserver
