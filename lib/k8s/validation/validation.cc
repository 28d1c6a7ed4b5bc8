#include "lib/k8s/validation/validation.h"

#include "lib/k8s/validation/rule_table.h"

namespace keelson::k8s {

using google::protobuf::Message;

namespace {

const RuleTable& Rules() {
  static const RuleTable* const table = [] {
    auto* made = new RuleTable;
    RegisterPodRules(*made);
    RegisterServiceRules(*made);
    RegisterServiceCidrRules(*made);
    RegisterEndpointRules(*made);
    RegisterWorkloadRules(*made);
    RegisterStatefulSetRules(*made);
    RegisterJobRules(*made);
    RegisterConfigRules(*made);
    RegisterNodeRules(*made);
    RegisterRbacRules(*made);
    RegisterStorageRules(*made);
    RegisterQuotaRules(*made);
    RegisterLimitRangeRules(*made);
    RegisterEventRules(*made);
    RegisterClaimRules(*made);
    RegisterStorageClassRules(*made);
    RegisterEndpointRules(*made);
    RegisterIngressRules(*made);
    RegisterNetworkPolicyRules(*made);
    RegisterDisruptionRules(*made);
    RegisterCertificateRules(*made);
    RegisterWebhookRules(*made);
    RegisterAdmissionPolicyRules(*made);
    RegisterDefinitionRules(*made);
    RegisterApiServiceRules(*made);
    RegisterFlowControlRules(*made);
    RegisterAutoscalerRules(*made);
    RegisterDeviceRules(*made);
    RegisterSchedulingRules(*made);
    return made;
  }();
  return *table;
}

}  // namespace

FieldErrors Validate(const Message& object) {
  return ValidateBy(Rules().Find(object.GetDescriptor()), object);
}

FieldErrors ValidateUpdate(const Message& object, const Message& old) {
  FieldErrors errors;
  const KindRules* rules = Rules().Find(object.GetDescriptor());
  CheckMetaUpdate(object, old, errors);
  if (!rules || !rules->update_alone) CheckOwnRules(object, rules, errors);
  if (rules && rules->update) rules->update(object, old, errors);
  return errors;
}

FieldErrors ValidateStatusUpdate(const Message& object, const Message& old) {
  FieldErrors errors;
  const KindRules* rules = Rules().Find(object.GetDescriptor());
  CheckMetaUpdate(object, old, errors);
  if (rules && rules->status) rules->status(object, old, errors);
  return errors;
}

FieldErrors ValidatePartUpdate(const Message& object, const Message& old, std::string_view subresource) {
  const KindRules* rules = Rules().Find(object.GetDescriptor());
  if (rules) {
    for (const auto& [name, rule] : rules->parts) {
      if (name != subresource) continue;
      FieldErrors errors;
      CheckMetaUpdate(object, old, errors);
      rule(object, old, errors);
      return errors;
    }
  }
  return ValidateUpdate(object, old);
}

FieldErrors ValidateBinding(const Message& binding) {
  const auto& object = static_cast<const corev1::Binding&>(binding);
  FieldErrors errors;
  const Path target("target");
  if (!object.target().kind().empty() && object.target().kind() != "Node") {
    errors.push_back(NotSupported(target.Child("kind"), object.target().kind(), {"Node", "<empty>"}));
  }
  if (object.target().name().empty()) {
    errors.push_back(Required(target.Child("name")));
  } else if (object.target().kind().empty() || object.target().kind() == "Node") {
    AddProblems(CheckDns1123Subdomain(object.target().name()), object.target().name(), target.Child("name"),
                errors);
  }
  return errors;
}

}  // namespace keelson::k8s
