#include "controlplane/apiserver/admission/webhook/hook.h"

#include <map>

#include <fmt/format.h>

namespace keelson::apiserver::webhook {
namespace {

using admissionregistrationv1::MutatingWebhook;
using admissionregistrationv1::ValidatingWebhook;

// What is stored has been validated; a selector that still does not parse matches everything, so that the
// webhook is rather called.
api::LabelSelector SelectorOf(bool present, const metav1::LabelSelector& selector) {
  if (!present) return {};
  Result<api::LabelSelector> parsed = api::LabelSelector::From(selector);
  return parsed ? *parsed : api::LabelSelector();
}

bool Reinvokes(const MutatingWebhook& webhook) { return webhook.reinvocation_policy() == "IfNeeded"; }
bool Reinvokes(const ValidatingWebhook&) { return false; }

const char* TypeOf(const MutatingWebhook&) { return "admit"; }
const char* TypeOf(const ValidatingWebhook&) { return "validating"; }

template <typename Webhook>
Hook Compile(const std::string& configuration, const Webhook& webhook) {
  Hook hook;
  hook.configuration = configuration;
  hook.name = webhook.name();
  hook.rules = webhook.rules();
  hook.equivalent = webhook.match_policy() != "Exact";
  hook.ignore_failures = webhook.failure_policy() == "Ignore";
  hook.reinvoke = Reinvokes(webhook);
  hook.without_side_effects = webhook.side_effects() == "None" || webhook.side_effects() == "NoneOnDryRun";
  if (webhook.timeout_seconds() > 0) hook.timeout = std::chrono::seconds(webhook.timeout_seconds());
  hook.namespaces = SelectorOf(webhook.has_namespace_selector(), webhook.namespace_selector());
  hook.objects = SelectorOf(webhook.has_object_selector(), webhook.object_selector());
  hook.conditions = MatchConditions(webhook.match_conditions(),
                                    {hook.name, "webhook", TypeOf(webhook), hook.ignore_failures, false});
  hook.review_versions.assign(webhook.admission_review_versions().begin(),
                              webhook.admission_review_versions().end());
  hook.endpoint = EndpointOf(webhook.client_config());
  return hook;
}

template <typename Configuration>
Hooks CompileAll(const Configuration& configuration) {
  Hooks hooks;
  std::map<std::string_view, int> seen;
  for (const auto& webhook : configuration.webhooks()) {
    hooks.push_back(Compile(configuration.metadata().name(), webhook));
    hooks.back().uid =
        fmt::format("{}/{}/{}", configuration.metadata().name(), webhook.name(), seen[webhook.name()]++);
  }
  return hooks;
}

}  // namespace

Hooks CompileHooks(const admissionregistrationv1::MutatingWebhookConfiguration& configuration) {
  return CompileAll(configuration);
}
Hooks CompileHooks(const admissionregistrationv1::ValidatingWebhookConfiguration& configuration) {
  return CompileAll(configuration);
}

}  // namespace keelson::apiserver::webhook
