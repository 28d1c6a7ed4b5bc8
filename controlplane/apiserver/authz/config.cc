#include "controlplane/apiserver/authz/config.h"

#include <fmt/format.h>

#include <set>

#include "controlplane/apiserver/webhook/config_reader.h"

namespace keelson::apiserver {
namespace {

// Without TTLs nothing is cached.
void ReadTtl(ConfigReader& reader, const char* field, const char* allowed, std::chrono::milliseconds& ttl) {
  ttl = reader.Duration(field, ttl);
  if (!reader.Bool(allowed, true)) ttl = std::chrono::milliseconds(0);
}

void ReadWebhook(ConfigReader& reader, AuthorizerConfig& out) {
  out.timeout = reader.Duration("timeout", std::chrono::milliseconds(0));
  if (out.timeout.count() <= 0) reader.Fail("timeout", "Required value");
  if (out.timeout > std::chrono::seconds(30)) reader.Fail("timeout", "must be <= 30s");
  ReadTtl(reader, "authorizedTTL", "cacheAuthorizedRequests", out.webhook.authorized_ttl);
  ReadTtl(reader, "unauthorizedTTL", "cacheUnauthorizedRequests", out.webhook.unauthorized_ttl);
  out.webhook.version = reader.Required("subjectAccessReviewVersion");
  if (out.webhook.version != "v1" && out.webhook.version != "v1beta1")
    reader.Fail("subjectAccessReviewVersion", "Unsupported value: supported values: \"v1\", \"v1beta1\"");
  reader.Text("matchConditionSubjectAccessReviewVersion");
  std::string policy = reader.Required("failurePolicy");
  if (policy != "NoOpinion" && policy != "Deny")
    reader.Fail("failurePolicy", "Unsupported value: supported values: \"Deny\", \"NoOpinion\"");
  out.webhook.deny_on_failure = policy == "Deny";
  ConfigReader connection = reader.Map("connectionInfo");
  std::string type = connection.Required("type");
  if (type != "KubeConfigFile")
    connection.Fail("type", "Unsupported value: supported values: \"KubeConfigFile\"");
  out.kubeconfig_file = connection.Required("kubeConfigFile");
  reader.Take(connection);
  if (!reader.Maps("matchConditions").empty())
    reader.Fail("matchConditions", "expressions are not supported");
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
  ASSIGN_OR_RETURN(ConfigReader reader,
                   ConfigReader::Document(text, "AuthorizationConfiguration",
                                          {"apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1beta1",
                                           "apiserver.config.k8s.io/v1alpha1"}));
  std::vector<AuthorizerConfig> out;
  std::set<std::string> names, types;
  for (ConfigReader& entry : reader.Maps("authorizers")) {
    AuthorizerConfig config;
    config.type = entry.Required("type");
    config.name = entry.Required("name");
    if (!IsKnownType(config.type)) entry.Fail("type", fmt::format("Unsupported value: \"{}\"", config.type));
    if (!names.insert(config.name).second)
      entry.Fail("name", fmt::format("Duplicate value: \"{}\"", config.name));
    bool first = types.insert(config.type).second;
    if (!first && config.type != "Webhook")
      entry.Fail("type", fmt::format("Duplicate value: \"{}\"", config.type));
    if (config.type == "Webhook") {
      config.webhook.name = config.name;
      ConfigReader webhook = entry.Map("webhook");
      ReadWebhook(webhook, config);
      entry.Take(webhook);
    } else if (entry.Has("webhook")) {
      entry.Fail("webhook", "may only be specified when type=Webhook");
    }
    reader.Take(entry);
    out.push_back(std::move(config));
  }
  if (out.empty())
    reader.Fail("authorizers", "Required value: at least one authorization mode must be defined");
  RETURN_IF_ERROR(reader.Finish());
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
    if (!seen.insert(mode).second)
      return Bad(fmt::format("authorization-mode \"{}\" is given more than once", mode));
    AuthorizerConfig config = mode == "Webhook" ? webhook : AuthorizerConfig{};
    config.type = mode;
    config.name = mode;
    if (mode == "Webhook" && config.kubeconfig_file.empty())
      return Bad("authorization-mode Webhook's authorization config file not passed");
    if (mode == "ABAC") config.policy_file = policy_file;
    if (mode == "ABAC" && policy_file.empty())
      return Bad("authorization-mode ABAC's authorization policy file not passed");
    out.push_back(std::move(config));
  }
  if (out.empty()) return Bad("at least one authorization-mode must be passed");
  if (!seen.count("Webhook") && !webhook.kubeconfig_file.empty())
    return Bad("cannot specify --authorization-webhook-config-file without mode Webhook");
  if (!seen.count("ABAC") && !policy_file.empty())
    return Bad("cannot specify --authorization-policy-file without mode ABAC");
  return out;
}

}  // namespace keelson::apiserver
