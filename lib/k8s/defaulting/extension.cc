// Extensions of the API server: webhooks, custom resources, aggregated APIs, priority and fairness.
#include <cctype>

#include "lib/api/proto/admissionregistration_v1.pb.h"
#include "lib/api/proto/apiextensions_v1.pb.h"
#include "lib/api/proto/apiregistration_v1.pb.h"
#include "lib/api/proto/flowcontrol_v1.pb.h"
#include "lib/base/text.h"
#include "lib/k8s/defaulting/table.h"

namespace keelson::k8s {

namespace admissionregistrationv1 = api::admissionregistration::v1;
namespace apiextensionsv1 = api::apiextensions::v1;
namespace apiregistrationv1 = api::apiregistration::v1;
namespace flowcontrolv1 = api::flowcontrol::v1;

namespace {

constexpr int32_t kHttpsPort = 443;

template <typename T>
void DefaultWebhook(T& webhook) {
  if (!webhook.has_failure_policy()) webhook.set_failure_policy("Fail");
  if (!webhook.has_match_policy()) webhook.set_match_policy("Equivalent");
  if (!webhook.has_namespace_selector()) webhook.mutable_namespace_selector();
  if (!webhook.has_object_selector()) webhook.mutable_object_selector();
  if (!webhook.has_timeout_seconds()) webhook.set_timeout_seconds(10);
  for (auto& rule : *webhook.mutable_rules()) {
    if (!rule.rule().has_scope()) rule.mutable_rule()->set_scope("*");
  }
  if (webhook.client_config().has_service() && !webhook.client_config().service().has_port()) {
    webhook.mutable_client_config()->mutable_service()->set_port(kHttpsPort);
  }
}

void DefaultMutatingWebhooks(admissionregistrationv1::MutatingWebhookConfiguration& object) {
  for (admissionregistrationv1::MutatingWebhook& webhook : *object.mutable_webhooks()) {
    DefaultWebhook(webhook);
    if (!webhook.has_reinvocation_policy()) webhook.set_reinvocation_policy("Never");
  }
}

void DefaultValidatingWebhooks(admissionregistrationv1::ValidatingWebhookConfiguration& object) {
  for (auto& webhook : *object.mutable_webhooks()) DefaultWebhook(webhook);
}

void DefaultMatch(admissionregistrationv1::MatchResources& match) {
  if (!match.has_match_policy()) match.set_match_policy("Equivalent");
  if (!match.has_namespace_selector()) match.mutable_namespace_selector();
  if (!match.has_object_selector()) match.mutable_object_selector();
  for (auto* rules : {match.mutable_resource_rules(), match.mutable_exclude_resource_rules()}) {
    for (admissionregistrationv1::NamedRuleWithOperations& rule : *rules) {
      if (!rule.rule_with_operations().rule().has_scope()) {
        rule.mutable_rule_with_operations()->mutable_rule()->set_scope("*");
      }
    }
  }
}

template <typename T>
void DefaultPolicy(T& object) {
  if (!object.spec().has_failure_policy()) object.mutable_spec()->set_failure_policy("Fail");
  if (object.spec().has_match_constraints()) {
    DefaultMatch(*object.mutable_spec()->mutable_match_constraints());
  }
}

template <typename T>
void DefaultPolicyBinding(T& object) {
  if (object.spec().has_match_resources()) DefaultMatch(*object.mutable_spec()->mutable_match_resources());
}

void DefaultCustomResource(apiextensionsv1::CustomResourceDefinition& object) {
  apiextensionsv1::CustomResourceDefinitionSpec& spec = *object.mutable_spec();
  if (const std::string& kind = spec.names().kind(); !kind.empty()) {
    apiextensionsv1::CustomResourceDefinitionNames& names = *spec.mutable_names();
    if (names.singular().empty()) {
      names.set_singular(Lower(kind));
    }
    if (names.list_kind().empty()) names.set_list_kind(kind + "List");
  }
  if (!spec.has_conversion()) spec.mutable_conversion()->set_strategy("None");
  if (!spec.conversion().webhook().client_config().has_service()) return;
  auto& service = *spec.mutable_conversion()->mutable_webhook()->mutable_client_config()->mutable_service();
  if (!service.has_port()) service.set_port(kHttpsPort);
}

void DefaultApiService(apiregistrationv1::APIService& object) {
  if (object.spec().has_service() && !object.spec().service().has_port()) {
    object.mutable_spec()->mutable_service()->set_port(kHttpsPort);
  }
}

void DefaultFlowSchema(flowcontrolv1::FlowSchema& object) {
  if (object.spec().matching_precedence() == 0) object.mutable_spec()->set_matching_precedence(1000);
}

void DefaultQueuing(flowcontrolv1::QueuingConfiguration& queuing) {
  if (queuing.hand_size() == 0) queuing.set_hand_size(8);
  if (queuing.queues() == 0) queuing.set_queues(64);
  if (queuing.queue_length_limit() == 0) queuing.set_queue_length_limit(50);
}

void DefaultPriorityLevel(flowcontrolv1::PriorityLevelConfiguration& object) {
  if (!object.has_spec()) return;
  flowcontrolv1::PriorityLevelConfigurationSpec& spec = *object.mutable_spec();
  if (spec.has_limited()) {
    flowcontrolv1::LimitedPriorityLevelConfiguration& limited = *spec.mutable_limited();
    if (!limited.has_nominal_concurrency_shares()) limited.set_nominal_concurrency_shares(30);
    if (!limited.has_lendable_percent()) limited.set_lendable_percent(0);
    if (limited.limit_response().has_queuing()) {
      DefaultQueuing(*limited.mutable_limit_response()->mutable_queuing());
    }
  }
  if (spec.has_exempt()) {
    flowcontrolv1::ExemptPriorityLevelConfiguration& exempt = *spec.mutable_exempt();
    if (!exempt.has_nominal_concurrency_shares()) exempt.set_nominal_concurrency_shares(0);
    if (!exempt.has_lendable_percent()) exempt.set_lendable_percent(0);
  }
}

}  // namespace

void RegisterExtensionDefaults(DefaultTable& table) {
  using namespace admissionregistrationv1;
  table.Add<MutatingWebhookConfiguration, DefaultMutatingWebhooks>();
  table.Add<ValidatingWebhookConfiguration, DefaultValidatingWebhooks>();
  table.Add<ValidatingAdmissionPolicy, DefaultPolicy<ValidatingAdmissionPolicy>>();
  table.Add<MutatingAdmissionPolicy, DefaultPolicy<MutatingAdmissionPolicy>>();
  table.Add<ValidatingAdmissionPolicyBinding, DefaultPolicyBinding<ValidatingAdmissionPolicyBinding>>();
  table.Add<MutatingAdmissionPolicyBinding, DefaultPolicyBinding<MutatingAdmissionPolicyBinding>>();
  table.Add<apiextensionsv1::CustomResourceDefinition, DefaultCustomResource>();
  table.Add<apiregistrationv1::APIService, DefaultApiService>();
  table.Add<flowcontrolv1::FlowSchema, DefaultFlowSchema>();
  table.Add<flowcontrolv1::PriorityLevelConfiguration, DefaultPriorityLevel>();
}

}  // namespace keelson::k8s
