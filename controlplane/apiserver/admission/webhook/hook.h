// One webhook of a configuration, ready for use.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "controlplane/apiserver/admission/expressions/match_conditions.h"
#include "controlplane/apiserver/admission/matching/rules.h"
#include "controlplane/apiserver/webhook/endpoint.h"
#include "controlplane/storage/object.h"
#include "lib/api/selector.h"

namespace keelson::apiserver::webhook {

struct Hook {
  std::string configuration, name;
  std::string uid;  // unique among all webhooks of its kind
  google::protobuf::RepeatedPtrField<admissionregistrationv1::RuleWithOperations> rules;
  bool equivalent = true;  // matchPolicy
  bool ignore_failures = false;
  bool reinvoke = false;              // reinvocationPolicy IfNeeded
  bool without_side_effects = false;  // None, or none in dry runs
  std::chrono::seconds timeout{10};
  api::LabelSelector namespaces, objects;
  MatchConditions conditions;
  std::vector<std::string> review_versions;
  Endpoint endpoint;
};

using Hooks = std::vector<Hook>;

// The webhooks of a configuration, in its order.
Hooks CompileHooks(const admissionregistrationv1::MutatingWebhookConfiguration& configuration);
Hooks CompileHooks(const admissionregistrationv1::ValidatingWebhookConfiguration& configuration);

}  // namespace keelson::apiserver::webhook
