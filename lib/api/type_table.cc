#include "lib/api/type_table.h"

#include <cstdlib>
#include <map>
#include <memory>
#include <shared_mutex>
#include <unordered_map>

#include "lib/api/scheme.h"
#include "lib/base/log.h"

namespace keelson::api {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

uint32_t Hash(std::string_view name) {
  uint32_t hash = static_cast<uint32_t>(name.size());
  for (char c : name) hash = hash * 33 + static_cast<uint8_t>(c);
  return hash ^ (hash >> 15);
}

ValueKind KindOf(const FieldDescriptor& field) {
  switch (field.type()) {
    case FieldDescriptor::TYPE_STRING:
      return ValueKind::kString;
    case FieldDescriptor::TYPE_BYTES:
      return ValueKind::kBytes;
    case FieldDescriptor::TYPE_BOOL:
      return ValueKind::kBool;
    case FieldDescriptor::TYPE_INT32:
      return ValueKind::kInt32;
    case FieldDescriptor::TYPE_INT64:
      return ValueKind::kInt64;
    case FieldDescriptor::TYPE_DOUBLE:
      return ValueKind::kDouble;
    case FieldDescriptor::TYPE_MESSAGE:
      return ValueKind::kMessage;
    default:
      log::Error("Field type has no JSON form", {{"field", field.full_name()}});
      std::abort();
  }
}

bool IsListKind(const Descriptor& type) {
  const FieldDescriptor* metadata = type.FindFieldByName("metadata");
  return metadata && metadata->message_type() && metadata->message_type()->name() == "ListMeta";
}

// Templates have metadata, but are no kinds.
bool IsObjectKind(const Descriptor& type) {
  static constexpr std::string_view kTemplates[] = {
      "PodTemplateSpec", "JobTemplateSpec", "PersistentVolumeClaimTemplate", "ResourceClaimTemplateSpec"};
  for (std::string_view name : kTemplates) {
    if (type.name() == name) return false;
  }
  const FieldDescriptor* metadata = type.FindFieldByName("metadata");
  return metadata && metadata->message_type() && metadata->message_type()->name() == "ObjectMeta";
}

// Whole objects inside others have kind and apiVersion: claim templates, and metadata-only items of any
// kind.
std::string NestedTypeMeta(const FieldDescriptor& field) {
  const Descriptor* type = field.message_type();
  if (!field.is_repeated() || !type || !IsObjectKind(*type)) return "";
  GroupVersionKind gvk = GvkOf(type);
  if (type->name() == "PartialObjectMetadata") {
    gvk.group = "meta.k8s.io";
  } else if (IsListKind(*field.containing_type())) {
    return "";
  }
  return "\"kind\":\"" + gvk.kind + "\",\"apiVersion\":\"" + gvk.ApiVersion() + "\"";
}

bool IsSchemaUnion(JsonForm form) {
  return form == JSON_SCHEMA_OR_BOOL || form == JSON_SCHEMA_OR_ARRAY || form == JSON_SCHEMA_OR_STRINGS;
}

// Builds tables under the writer's lock; readers only see complete ones.
class Registry {
 public:
  const MessageInfo& Get(const Descriptor* descriptor) {
    {
      std::shared_lock lock(mutex_);
      auto it = tables_.find(descriptor);
      if (it != tables_.end()) return *it->second;
    }
    std::unique_lock lock(mutex_);
    return Build(descriptor);
  }

 private:
  const MessageInfo& Build(const Descriptor* descriptor) {
    auto [it, added] = tables_.try_emplace(descriptor);
    if (!added) return *it->second;
    it->second = std::make_unique<MessageInfo>();
    MessageInfo& info = *it->second;
    info.descriptor = descriptor;
    info.form = descriptor->options().GetExtension(json_form);
    info.has_type_meta = IsObjectKind(*descriptor) || IsListKind(*descriptor);
    info.fields.resize(descriptor->field_count());
    for (int i = 0; i < descriptor->field_count(); ++i) {
      const FieldDescriptor& field = *descriptor->field(i);
      Fill(field, info, info.fields[i]);
      if (info.by_number.size() <= static_cast<size_t>(field.number())) {
        info.by_number.resize(field.number() + 1, -1);
      }
      info.by_number[field.number()] = static_cast<int16_t>(i);
    }
    info.IndexKeys();
    return info;
  }

  void Fill(const FieldDescriptor& field, const MessageInfo& parent, FieldInfo& out) {
    const auto& options = field.options();
    out.descriptor = &field;
    out.json_name = field.json_name();
    out.quoted = "\"" + field.json_name() + "\":";
    out.number = static_cast<uint32_t>(field.number());
    out.map = field.is_map();
    out.repeated = field.is_repeated() && !out.map;
    const FieldDescriptor& value = out.map ? *field.message_type()->FindFieldByNumber(2) : field;
    out.kind = KindOf(value);
    out.pointer = options.GetExtension(form) == POINTER;
    out.always = options.GetExtension(always);
    out.inlined = options.GetExtension(inlined);
    out.rest = options.GetExtension(rest);
    if (out.kind != ValueKind::kMessage) return;
    out.message = &Build(value.message_type());
    if (IsSchemaUnion(parent.form) && !out.repeated) out.pointer = true;
    out.omit_zero = field.name() == "creation_timestamp" && parent.descriptor->name() == "ObjectMeta";
    out.empty_list = field.name() == "items" && IsListKind(*parent.descriptor);
    out.type_meta = NestedTypeMeta(field);
  }

  std::shared_mutex mutex_;
  std::unordered_map<const Descriptor*, std::unique_ptr<MessageInfo>> tables_;
};

}  // namespace

void MessageInfo::IndexKeys() {
  for (const FieldInfo& field : fields) {
    if (field.rest) {
      rest = &field;
      continue;
    }
    if (!field.inlined) {
      keys.push_back({&field, {}});
      continue;
    }
    for (const JsonKey& inner : field.message->keys) {
      JsonKey key{inner.field, {&field}};
      key.path.insert(key.path.end(), inner.path.begin(), inner.path.end());
      keys.push_back(std::move(key));
    }
  }
  if (keys.size() > kMaxJsonKeys) {
    log::Error("Message type has too many fields", {{"type", descriptor->full_name()}});
    std::abort();
  }
  size_t size = 4;
  while (size < keys.size() * 2) size *= 2;
  hashed.assign(size, -1);
  for (size_t i = 0; i < keys.size(); ++i) {
    size_t at = Hash(keys[i].field->json_name) & (size - 1);
    while (hashed[at] >= 0) at = (at + 1) & (size - 1);
    hashed[at] = static_cast<int16_t>(i);
  }
}

int MessageInfo::LookUp(std::string_view name) const {
  size_t mask = hashed.size() - 1;
  for (size_t at = Hash(name) & mask; hashed[at] >= 0; at = (at + 1) & mask) {
    if (keys[hashed[at]].field->json_name == name) return hashed[at];
  }
  return -1;
}

const MessageInfo& InfoOf(const Descriptor* descriptor) {
  static Registry* registry = new Registry;
  return registry->Get(descriptor);
}

std::string GoTypeOf(const MessageInfo& message) {
  const std::string& package = message.descriptor->file()->package();
  return package.substr(package.rfind('.') + 1) + "." + message.descriptor->name();
}

std::string GoTypeOf(const FieldInfo& field) {
  static constexpr std::string_view kScalars[] = {"string", "[]uint8", "bool", "int32", "int64", "float64"};
  std::string value = field.kind == ValueKind::kMessage
                          ? GoTypeOf(*field.message)
                          : std::string(kScalars[static_cast<size_t>(field.kind)]);
  if (field.map) return "map[string]" + value;
  return field.repeated ? "[]" + value : value;
}

}  // namespace keelson::api
