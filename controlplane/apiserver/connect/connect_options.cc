#include "controlplane/apiserver/connect/connect_options.h"

#include <charconv>

#include <google/protobuf/descriptor.h>

namespace keelson::apiserver {
namespace {

using google::protobuf::FieldDescriptor;

void Set(const FieldDescriptor& field, std::string_view text, api::Message& out) {
  const google::protobuf::Reflection& reflection = *out.GetReflection();
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    if (field.is_repeated()) return reflection.AddString(&out, &field, std::string(text));
    if (!text.empty()) reflection.SetString(&out, &field, std::string(text));
  } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_INT32) {
    int32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return;
    if (field.is_repeated()) {
      reflection.AddInt32(&out, &field, value);
    } else {
      reflection.SetInt32(&out, &field, value);
    }
  }
}

std::string Text(const FieldDescriptor& field, const api::Message& from, int index) {
  const google::protobuf::Reflection& reflection = *from.GetReflection();
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_BOOL) {
    return reflection.GetBool(from, &field) ? "true" : "false";
  }
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_INT32) {
    return std::to_string(index < 0 ? reflection.GetInt32(from, &field)
                                    : reflection.GetRepeatedInt32(from, &field, index));
  }
  return index < 0 ? reflection.GetString(from, &field) : reflection.GetRepeatedString(from, &field, index);
}

}  // namespace

std::unique_ptr<api::Message> ConnectOptionsOf(const api::ResourceInfo& row, const http::Query& query,
                                               const RequestInfo& info) {
  std::unique_ptr<api::Message> out = api::NewObject(row.descriptor());
  const google::protobuf::Descriptor& type = *out->GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const std::string& name = field.json_name();
    if (name == "path") {
      if (!info.proxy_path.empty()) Set(field, "/" + info.proxy_path, *out);
    } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_BOOL) {
      if (query.GetBool(name)) out->GetReflection()->SetBool(out.get(), &field, true);
    } else if (field.is_repeated()) {
      for (std::string_view value : query.All(name)) Set(field, value, *out);
    } else {
      Set(field, query.Get(name), *out);
    }
  }
  return out;
}

http::Query QueryOf(const api::Message& options) {
  http::Query query;
  std::vector<const FieldDescriptor*> fields;
  options.GetReflection()->ListFields(options, &fields);
  for (const FieldDescriptor* field : fields) {
    const int count = field->is_repeated() ? options.GetReflection()->FieldSize(options, field) : 1;
    for (int i = 0; i < count; ++i) {
      query.Add(field->json_name(), Text(*field, options, field->is_repeated() ? i : -1));
    }
  }
  return query;
}

}  // namespace keelson::apiserver
