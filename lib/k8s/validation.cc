#include "lib/k8s/validation.h"

#include <algorithm>

#include "lib/api/meta.h"
#include "lib/api/proto/options.pb.h"
#include "lib/api/scheme.h"
#include "lib/k8s/rule_table.h"

namespace keelson::k8s {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

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

void CheckMessageEnums(const Message& message, const Path& path, FieldErrors& errors);

void CheckFieldEnum(const FieldDescriptor* field, const std::string& value, const Path& path,
                    FieldErrors& errors) {
  const auto& options = field->options();
  const int count = options.ExtensionSize(api::enum_value);
  if (count == 0 || value.empty()) return;
  std::vector<std::string_view> supported;
  for (int i = 0; i < count; ++i) {
    supported.push_back(options.GetExtension(api::enum_value, i));
    if (supported.back() == value) return;
  }
  std::sort(supported.begin(), supported.end());
  errors.push_back(NotSupported(path, value, supported));
}

void CheckField(const Message& message, const FieldDescriptor* field, const Path& path, FieldErrors& errors) {
  const Reflection* reflection = message.GetReflection();
  const bool is_message = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
  if (!is_message && field->cpp_type() != FieldDescriptor::CPPTYPE_STRING) return;
  if (field->is_map()) return;
  std::string scratch;
  if (!field->is_repeated()) {
    const bool inlined = field->options().GetExtension(api::inlined);
    const Path here = path.Child(field->json_name());
    if (is_message) {
      CheckMessageEnums(reflection->GetMessage(message, field), inlined ? path : here, errors);
    } else {
      CheckFieldEnum(field, reflection->GetStringReference(message, field, &scratch), here, errors);
    }
    return;
  }
  const Path list = path.Child(field->json_name());
  for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
    if (is_message) {
      CheckMessageEnums(reflection->GetRepeatedMessage(message, field, i), list.Index(i), errors);
    } else {
      CheckFieldEnum(field, reflection->GetRepeatedStringReference(message, field, i, &scratch),
                     list.Index(i), errors);
    }
  }
}

void CheckMessageEnums(const Message& message, const Path& path, FieldErrors& errors) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) CheckField(message, field, path, errors);
}

// Closed string types of kinds that have no rules of their own.
void CheckEnums(const Message& object, FieldErrors& errors) {
  std::vector<const FieldDescriptor*> fields;
  object.GetReflection()->ListFields(object, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->name() == "metadata" || field->is_repeated() ||
        field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
      continue;
    }
    CheckMessageEnums(object.GetReflection()->GetMessage(object, field), Path(field->json_name()), errors);
  }
}

// Finalizers are Kubernetes' own or say whose they are; the extension groups are laxer.
void CheckFinalizerNames(const Message& object, FieldErrors& errors) {
  const auto& finalizers = api::Meta(object).finalizers();
  if (finalizers.empty()) return;
  const std::string group = api::GvkOf(object.GetDescriptor()).group;
  if (group == "admissionregistration.k8s.io" || group == "apiextensions.k8s.io" ||
      group == "apiregistration.k8s.io") {
    return;
  }
  const Path metadata("metadata");
  const Path list = metadata.Child("finalizers");
  for (int i = 0; i < finalizers.size(); ++i) {
    const std::string& name = finalizers[i];
    const bool standard = name == "kubernetes" || name == "orphan" || name == "foregroundDeletion";
    if (standard || name.find('/') != std::string::npos) continue;
    errors.push_back(
        Invalid(list.Index(i), name, "name is neither a standard finalizer name nor is it fully qualified"));
  }
}

// Metadata of an update, whichever part it is of.
void CheckMetaUpdate(const Message& object, const Message& old, FieldErrors& errors) {
  CheckObjectMetaUpdate(api::Meta(object), api::Meta(old), Path("metadata"), errors);
  CheckFinalizerNames(object, errors);
}

MetaRules MetaRulesOf(const Message& object, const KindRules* rules) {
  MetaRules meta;
  meta.namespaced = api::ResourceOf(object.GetDescriptor()).namespaced;
  if (rules) meta.name = rules->name;
  return meta;
}

void CheckOwnRules(const Message& object, const KindRules* rules, FieldErrors& errors) {
  if (rules && rules->create) {
    rules->create(object, errors);
  } else {
    CheckEnums(object, errors);
  }
}

}  // namespace

FieldErrors Validate(const Message& object) {
  FieldErrors errors;
  const KindRules* rules = Rules().Find(object.GetDescriptor());
  CheckObjectMeta(api::Meta(object), MetaRulesOf(object, rules), Path("metadata"), errors);
  CheckFinalizerNames(object, errors);
  CheckOwnRules(object, rules, errors);
  return errors;
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
