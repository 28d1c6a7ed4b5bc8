#include "lib/k8s/validation/rule_table.h"

#include <algorithm>

#include "lib/api/meta.h"
#include "lib/api/proto/options.pb.h"
#include "lib/api/scheme.h"

namespace keelson::k8s {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

namespace {

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

// Checks closed string types of kinds that have no rules of their own.
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

// Finalizers are Kubernetes' own or have a domain; the extension groups and custom resources are laxer.
void CheckFinalizerNames(const Message& object, FieldErrors& errors) {
  const auto& finalizers = api::Meta(object).finalizers();
  if (finalizers.empty() || api::IsCustom(object.GetDescriptor())) return;
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

MetaRules MetaRulesOf(const Message& object, const KindRules* rules) {
  MetaRules meta;
  // A namespace says whether an object of a custom resource has one.
  meta.namespaced = api::IsCustom(object.GetDescriptor())
                        ? !api::Meta(object).namespace_().empty()
                        : api::ResourceOf(object.GetDescriptor()).namespaced;
  if (rules) meta.name = rules->name;
  return meta;
}

}  // namespace

void CheckMetaUpdate(const Message& object, const Message& old, FieldErrors& errors) {
  CheckObjectMetaUpdate(api::Meta(object), api::Meta(old), Path("metadata"), errors);
  CheckFinalizerNames(object, errors);
}

void CheckOwnRules(const Message& object, const KindRules* rules, FieldErrors& errors) {
  if (rules && rules->create) {
    rules->create(object, errors);
  } else {
    CheckEnums(object, errors);
  }
}

FieldErrors ValidateBy(const KindRules* rules, const Message& object) {
  FieldErrors errors;
  CheckObjectMeta(api::Meta(object), MetaRulesOf(object, rules), Path("metadata"), errors);
  CheckFinalizerNames(object, errors);
  CheckOwnRules(object, rules, errors);
  return errors;
}

}  // namespace keelson::k8s
