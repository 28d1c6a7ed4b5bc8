#include "lib/k8s/internal_form.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/api/proto/options.pb.h"
#include "lib/api/types.h"
#include "lib/k8s/field_error.h"
#include "lib/k8s/int_or_string.h"

namespace keelson::k8s {

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Initialisms, which Go writes in capitals at the start of a name.
constexpr std::string_view kInitials[] = {"api", "uid", "cidr", "url", "fs", "dns",   "tls", "http",
                                          "nfs", "csi", "rbd",  "iqn", "ca", "iscsi", "fc",  "ip"};

std::string GoName(const FieldDescriptor* field) {
  std::string name = field->json_name();
  for (std::string_view word : kInitials) {
    const bool whole = name == word || (name.starts_with(word) && name.size() > word.size() &&
                                        name[word.size()] >= 'A' && name[word.size()] <= 'Z');
    if (!whole) continue;
    std::transform(name.begin(), name.begin() + static_cast<long>(word.size()), name.begin(),
                   [](char c) { return static_cast<char>(c - 'a' + 'A'); });
    return name;
  }
  if (!name.empty() && name[0] >= 'a' && name[0] <= 'z') name[0] = static_cast<char>(name[0] - 'a' + 'A');
  return name;
}

bool HasOwnJson(const google::protobuf::Descriptor* type) {
  return type->full_name().starts_with("keelson.api.meta.") ||
         type->options().GetExtension(api::json_form) != api::JSON_OBJECT;
}

std::string Scalar(const Message& message, const FieldDescriptor* field, int index) {
  const Reflection* reflection = message.GetReflection();
  const bool repeated = field->is_repeated();
  std::string scratch;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return Quote(repeated ? reflection->GetRepeatedStringReference(message, field, index, &scratch)
                            : reflection->GetStringReference(message, field, &scratch));
    case FieldDescriptor::CPPTYPE_BOOL:
      return (repeated ? reflection->GetRepeatedBool(message, field, index)
                       : reflection->GetBool(message, field))
                 ? "true"
                 : "false";
    case FieldDescriptor::CPPTYPE_INT32:
      return std::to_string(repeated ? reflection->GetRepeatedInt32(message, field, index)
                                     : reflection->GetInt32(message, field));
    case FieldDescriptor::CPPTYPE_INT64:
      return std::to_string(repeated ? reflection->GetRepeatedInt64(message, field, index)
                                     : reflection->GetInt64(message, field));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return fmt::format("{}", repeated ? reflection->GetRepeatedDouble(message, field, index)
                                        : reflection->GetDouble(message, field));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return PrintInternal(repeated ? reflection->GetRepeatedMessage(message, field, index)
                                    : reflection->GetMessage(message, field));
    default:
      return "null";
  }
}

std::string PrintMapField(const Message& message, const FieldDescriptor* field) {
  const Reflection* reflection = message.GetReflection();
  const FieldDescriptor* key = field->message_type()->FindFieldByNumber(1);
  const FieldDescriptor* value = field->message_type()->FindFieldByNumber(2);
  std::vector<std::string> entries;
  for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
    const Message& entry = reflection->GetRepeatedMessage(message, field, i);
    entries.push_back(Scalar(entry, key, 0) + ":" + Scalar(entry, value, 0));
  }
  std::sort(entries.begin(), entries.end());
  std::string out = "{";
  for (const std::string& entry : entries) out += (out.size() > 1 ? "," : "") + entry;
  return out + "}";
}

std::string Value(const Message& message, const FieldDescriptor* field) {
  const Reflection* reflection = message.GetReflection();
  if (field->is_repeated()) {
    if (reflection->FieldSize(message, field) == 0) return "null";
    if (field->is_map()) return PrintMapField(message, field);
    std::string out = "[";
    for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
      out += (i ? "," : "") + Scalar(message, field, i);
    }
    return out + "]";
  }
  const bool is_pointer = field->options().GetExtension(api::form) == api::POINTER;
  if (is_pointer && !reflection->HasField(message, field)) return "null";
  return Scalar(message, field, 0);
}

void AppendFields(const Message& message, std::string& out) {
  const google::protobuf::Descriptor* type = message.GetDescriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    if (field->options().GetExtension(api::inlined) && !field->is_repeated()) {
      AppendFields(message.GetReflection()->GetMessage(message, field), out);
      continue;
    }
    if (out.size() > 1) out += ',';
    out += "\"" + GoName(field) + "\":" + Value(message, field);
  }
}

}  // namespace

std::string PrintInternal(const Message& message) {
  // Types that print as plain values, which the codec supports only inside other objects.
  if (const auto* value = dynamic_cast<const intstr::IntOrString*>(&message)) {
    return IsString(*value) ? Quote(value->str_val()) : std::to_string(value->int_val());
  }
  if (const auto* value = dynamic_cast<const Quantity*>(&message)) return Quote(value->string());
  if (const auto* value = dynamic_cast<const metav1::Time*>(&message)) return Quote(api::FormatTime(*value));
  if (HasOwnJson(message.GetDescriptor())) return api::EncodeJson(message);
  std::string out = "{";
  AppendFields(message, out);
  return out + "}";
}

}  // namespace keelson::k8s
