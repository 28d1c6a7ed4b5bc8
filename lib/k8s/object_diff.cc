#include "lib/k8s/object_diff.h"

#include <fmt/format.h>

#include "lib/api/codec/codec.h"
#include "lib/api/type_table.h"
#include "lib/k8s/field_error.h"

namespace keelson::k8s {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

namespace {

std::string PrintScalar(const Message& message, const FieldDescriptor* field, int index) {
  const auto* reflection = message.GetReflection();
  const bool repeated = field->is_repeated();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return Quote(repeated ? reflection->GetRepeatedString(message, field, index)
                            : reflection->GetString(message, field));
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
    default:
      return "...";
  }
}

// One value of the field (the item at `index` of a repeated one), as JSON.
std::string Print(const Message& message, const FieldDescriptor* field, int index) {
  if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) return PrintScalar(message, field, index);
  const auto* reflection = message.GetReflection();
  return api::EncodeJson(field->is_repeated() ? reflection->GetRepeatedMessage(message, field, index)
                                              : reflection->GetMessage(message, field));
}

class Differ {
 public:
  std::string out;

  void Compare(const Message& old, const Message& now, const std::string& path) {
    const auto* descriptor = now.GetDescriptor();
    for (int i = 0; i < descriptor->field_count(); ++i) CompareField(old, now, descriptor->field(i), path);
  }

 private:
  void CompareField(const Message& old, const Message& now, const FieldDescriptor* field,
                    const std::string& path) {
    const auto* reflection = now.GetReflection();
    const api::FieldInfo* info =
        api::InfoOf(field->containing_type()).ByNumber(static_cast<uint32_t>(field->number()));
    // Fields of an inlined message belong to its parent.
    if (info && info->inlined && !field->is_repeated()) {
      return Compare(reflection->GetMessage(old, field), reflection->GetMessage(now, field), path);
    }
    const std::string here = fmt::format("{}.{}", path, info ? info->json_name : field->json_name());
    if (field->is_repeated()) return CompareList(old, now, field, here);
    const bool had = reflection->HasField(old, field), has = reflection->HasField(now, field);
    if (had && has && field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      const Message &a = reflection->GetMessage(old, field), &b = reflection->GetMessage(now, field);
      // Quantities, times and the like count as one value.
      if (api::EncodeRaw(a) == api::EncodeRaw(b)) return;
      if (b.GetDescriptor()->field_count() > 1) return Compare(a, b, here);
    }
    const std::string before = had ? Print(old, field, 0) : "", after = has ? Print(now, field, 0) : "";
    if (before == after) return;
    if (had) out += fmt::format("- {}: {}\n", here, before);
    if (has) out += fmt::format("+ {}: {}\n", here, after);
  }

  void CompareList(const Message& old, const Message& now, const FieldDescriptor* field,
                   const std::string& path) {
    const auto* reflection = now.GetReflection();
    const int before = reflection->FieldSize(old, field), after = reflection->FieldSize(now, field);
    const bool messages = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !field->is_map();
    if (before == after && messages) {
      for (int i = 0; i < after; ++i) {
        Compare(reflection->GetRepeatedMessage(old, field, i), reflection->GetRepeatedMessage(now, field, i),
                fmt::format("{}[{}]", path, i));
      }
      return;
    }
    const std::string was = PrintList(old, field, before), is = PrintList(now, field, after);
    if (was != is) out += fmt::format("- {}: {}\n+ {}: {}\n", path, was, path, is);
  }

  static std::string PrintList(const Message& message, const FieldDescriptor* field, int size) {
    std::string list = "[";
    for (int i = 0; i < size; ++i) list += (i ? "," : "") + Print(message, field, i);
    return list + "]";
  }
};

}  // namespace

std::string ObjectDiff(const Message& old, const Message& now, std::string_view prefix) {
  Differ differ;
  differ.Compare(old, now, std::string(prefix));
  return std::move(differ.out);
}

}  // namespace keelson::k8s
