#include "controlplane/apiserver/authz/config.h"

#include <fmt/format.h>

#include <set>

#include "lib/component/document_reader.h"
#include "lib/k8s/field_error.h"

namespace keelson::apiserver {
namespace {

using component::DocumentReader;

constexpr char kRequired[] = "Required value";
constexpr int kMaxConditions = 64;

// Without TTLs nothing is kept.
void ReadTtl(DocumentReader& in, const char* field, const char* allowed, std::chrono::milliseconds& ttl) {
  bool keep = true;
  in.Read(field, ttl);
  in.Read(allowed, keep);
  if (!keep) ttl = std::chrono::milliseconds(0);
}

std::string ReadRequired(DocumentReader& in, const char* field) {
  std::string out;
  in.Read(field, out);
  if (out.empty()) in.Problem(field, kRequired);
  return out;
}

// One of the two `values`.
std::string ReadChoice(DocumentReader& in, const char* field, const char* one, const char* other) {
  std::string out = ReadRequired(in, field);
  if (!out.empty() && out != one && out != other) {
    in.Problem(field, fmt::format("Unsupported value: supported values: \"{}\", \"{}\"", one, other));
  }
  return out;
}

void ReadConditions(DocumentReader& in, AuthorizationConditions& out) {
  std::set<std::string> seen;
  int count = 0;
  in.List("matchConditions", [&](DocumentReader& condition) {
    std::string expression;
    condition.Read("expression", expression);
    if (++count == kMaxConditions + 1) {
      in.Problem("matchConditions", fmt::format("Too many: must have at most {} items", kMaxConditions));
    }
    if (count > kMaxConditions) return;
    if (expression.find_first_not_of(" \t\n\v\f\r") == std::string::npos) {
      condition.Problem("expression", kRequired);
    } else if (!seen.insert(expression).second) {
      condition.Problem("expression", "Duplicate value: " + k8s::Quote(expression));
    } else if (Result<> added = out.Add(expression); !added) {
      condition.Problem("expression", fmt::format("Invalid value: {}: {}", k8s::Quote(expression),
                                                  added.error().message()));
    }
  });
  std::string version;
  in.Read("matchConditionSubjectAccessReviewVersion", version);
  if (version.empty() && count > 0) {
    in.Problem("matchConditionSubjectAccessReviewVersion",
               "Required value: required if match conditions are specified");
  } else if (!version.empty() && version != "v1") {
    in.Problem("matchConditionSubjectAccessReviewVersion",
               fmt::format("Unsupported value: {}: supported values: \"v1\"", k8s::Quote(version)));
  }
}

void ReadWebhook(DocumentReader& in, AuthorizerConfig& out) {
  out.timeout = std::chrono::milliseconds(0);
  in.Read("timeout", out.timeout);
  if (out.timeout.count() <= 0) in.Problem("timeout", kRequired);
  if (out.timeout > std::chrono::seconds(30)) in.Problem("timeout", "must be <= 30s");
  ReadTtl(in, "authorizedTTL", "cacheAuthorizedRequests", out.webhook.authorized_ttl);
  ReadTtl(in, "unauthorizedTTL", "cacheUnauthorizedRequests", out.webhook.unauthorized_ttl);
  out.webhook.version = ReadChoice(in, "subjectAccessReviewVersion", "v1", "v1beta1");
  out.webhook.deny_on_failure = ReadChoice(in, "failurePolicy", "Deny", "NoOpinion") == "Deny";
  in.Section("connectionInfo", [&](DocumentReader& connection) {
    const std::string type = ReadRequired(connection, "type");
    if (!type.empty() && type != "KubeConfigFile") {
      connection.Problem("type", "Unsupported value: supported values: \"KubeConfigFile\"");
    }
    out.kubeconfig_file = ReadRequired(connection, "kubeConfigFile");
  });
  ReadConditions(in, out.webhook.conditions);
}

Error Bad(const std::string& why) { return Error(Code::kInvalid, why); }

bool IsKnownType(const std::string& type) {
  return type == "Node" || type == "RBAC" || type == "Webhook" || type == "AlwaysAllow" ||
         type == "AlwaysDeny";
}

class Always : public Authorizer {
 public:
  explicit Always(bool allow) : allow_(allow) {}
  Decision Authorize(const Attributes&) const override {
    return {allow_, allow_ ? "" : "Everything is forbidden.", ""};
  }
  UserRules RulesFor(const User&, std::string_view) const override {
    if (!allow_) return {};
    return {{{{"*"}, {"*"}, {"*"}, {}, {}}, {{"*"}, {}, {}, {}, {"*"}}}, false, ""};
  }

 private:
  const bool allow_;
};

}  // namespace

std::shared_ptr<const Authorizer> NewAlwaysAuthorizer(bool allow) { return std::make_shared<Always>(allow); }

Result<std::vector<AuthorizerConfig>> ParseAuthorizationConfig(const std::string& text) {
  component::DocumentProblems problems{.words = component::TypeWords::kMustBe};
  KEELSON_ASSIGN_OR_RETURN(const auto document, component::ParseDocument(text, problems));
  KEELSON_RETURN_IF_ERROR(
      component::CheckType(document, {"AuthorizationConfiguration",
                                      {"apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1beta1",
                                       "apiserver.config.k8s.io/v1alpha1"}}));
  std::vector<AuthorizerConfig> out;
  std::set<std::string> names, types;
  {
    DocumentReader in(document, problems);
    in.Ignore({"kind", "apiVersion"});
    in.List("authorizers", [&](DocumentReader& entry) {
      AuthorizerConfig& config = out.emplace_back();
      config.type = ReadRequired(entry, "type");
      config.name = ReadRequired(entry, "name");
      if (!config.type.empty() && !IsKnownType(config.type)) {
        entry.Problem("type", fmt::format("Unsupported value: \"{}\"", config.type));
      }
      if (!names.insert(config.name).second) {
        entry.Problem("name", fmt::format("Duplicate value: \"{}\"", config.name));
      }
      const bool first = types.insert(config.type).second;
      if (!first && config.type != "Webhook") {
        entry.Problem("type", fmt::format("Duplicate value: \"{}\"", config.type));
      }
      if (config.type == "Webhook") {
        config.webhook.name = config.name;
        entry.Section("webhook", [&](DocumentReader& webhook) { ReadWebhook(webhook, config); });
      } else if (entry.Has("webhook")) {
        entry.Problem("webhook", "may only be specified when type=Webhook");
      }
    });
    if (out.empty()) {
      in.Problem("authorizers", "Required value: at least one authorization mode must be defined");
    }
  }
  KEELSON_RETURN_IF_ERROR(component::RefuseProblems(problems));
  return out;
}

Result<std::vector<AuthorizerConfig>> AuthorizersOfModes(const std::vector<std::string>& modes,
                                                         const AuthorizerConfig& webhook,
                                                         const std::string& policy_file) {
  std::vector<AuthorizerConfig> out;
  std::set<std::string> seen;
  for (const std::string& mode : modes) {
    if (!IsKnownType(mode) && mode != "ABAC") {
      return Bad(
          fmt::format("authorization-mode \"{}\" is not a valid mode: it is one of ABAC, AlwaysAllow, "
                      "AlwaysDeny, Node, RBAC, Webhook",
                      mode));
    }
    if (!seen.insert(mode).second) {
      return Bad(fmt::format("authorization-mode \"{}\" is given more than once", mode));
    }
    AuthorizerConfig config = mode == "Webhook" ? webhook : AuthorizerConfig{};
    config.type = mode;
    config.name = mode;
    if (mode == "Webhook" && config.kubeconfig_file.empty()) {
      return Bad("authorization-mode Webhook's authorization config file not passed");
    }
    if (mode == "ABAC") config.policy_file = policy_file;
    if (mode == "ABAC" && policy_file.empty()) {
      return Bad("authorization-mode ABAC's authorization policy file not passed");
    }
    out.push_back(std::move(config));
  }
  if (out.empty()) return Bad("at least one authorization-mode must be passed");
  if (!seen.count("Webhook") && !webhook.kubeconfig_file.empty()) {
    return Bad("cannot specify --authorization-webhook-config-file without mode Webhook");
  }
  if (!seen.count("ABAC") && !policy_file.empty()) {
    return Bad("cannot specify --authorization-policy-file without mode ABAC");
  }
  return out;
}

}  // namespace keelson::apiserver
