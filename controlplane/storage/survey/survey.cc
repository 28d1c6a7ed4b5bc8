#include "controlplane/storage/survey/survey.h"

#include <algorithm>

#include <fmt/format.h>
#include <google/protobuf/unknown_field_set.h>

#include "controlplane/storage/convert.h"
#include "controlplane/storage/encryption/transformer.h"
#include "controlplane/storage/object.h"
#include "controlplane/storage/stored_value_decoder.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/api/types.h"

namespace keelson::storage {
namespace {

using Definition = apiextensionsv1::CustomResourceDefinition;
using google::protobuf::FieldDescriptor;

constexpr std::string_view kRegistry = "/registry/";

// What API servers keep beside the resources of the API, and the kind that they keep it as.
struct Aside {
  std::string_view prefix;
  const google::protobuf::Message& prototype;
};
const Aside* AsideOf(std::string_view key) {
  static const Aside kAsides[] = {
      {"/registry/ranges/", corev1::RangeAllocation::default_instance()},
      {"/registry/masterleases/", corev1::Endpoints::default_instance()},
      {"/registry/peerserverleases/", corev1::Endpoints::default_instance()},
  };
  for (const Aside& aside : kAsides) {
    if (key.starts_with(aside.prefix)) return &aside;
  }
  return nullptr;
}

// Of protobuf; empty: all fields are known. The path is as in JSON.
std::string UnknownField(const api::Message& message, const std::string& path) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  const google::protobuf::UnknownFieldSet& unknown = reflection.GetUnknownFields(message);
  const std::string here = path.empty() ? "" : path + ".";
  if (unknown.field_count() > 0) return fmt::format("{}#{}", here, unknown.field(0).number());
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    const std::string name = here + std::string(field->json_name());
    const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      std::string found = UnknownField(field->is_repeated() ? reflection.GetRepeatedMessage(message, field, i)
                                                            : reflection.GetMessage(message, field),
                                       name);
      if (!found.empty()) return found;
    }
  }
  return "";
}

// aescbc:v1:key1 of a value that begins with k8s:enc:aescbc:v1:key1:, and the KMS's name for those of a KMS.
std::string EncryptionOf(std::string_view value) {
  if (!value.starts_with(kEncryptedPrefix)) return "";
  value.remove_prefix(kEncryptedPrefix.size());
  size_t end = 0;
  for (int colons = 0; colons < 3 && end < value.size() && end < 128; ++end) {
    if (value[end] == ':') ++colons;
  }
  return std::string(value.substr(0, end > 0 ? end - 1 : 0));
}

bool IsJson(std::string_view value) { return value.starts_with("{"); }

Result<api::TypeMeta> TypeOf(std::string_view value) {
  if (IsJson(value)) return api::PeekTypeMeta(value);
  KEELSON_ASSIGN_OR_RETURN(api::Envelope envelope, api::OpenEnvelope(value));
  return envelope.type_meta;
}

// Fields that are in the value and not in the types of this server.
std::string UnknownFieldOf(const api::Descriptor* descriptor, std::string_view value) {
  if (!descriptor) return "";
  std::unique_ptr<api::Message> message = api::NewObject(descriptor);
  if (IsJson(value)) {
    api::DecodeReport report;
    (void)api::DecodeJson(value, *message, &report);
    return report.problems.empty() ? "" : report.problems.front();
  }
  Result<api::Envelope> envelope = api::OpenEnvelope(value);
  if (!envelope || !message->ParsePartialFromString(std::string(envelope->raw))) return "";
  return UnknownField(*message, "");
}

}  // namespace

Survey::Survey(std::shared_ptr<Encryption> encryption) : encryption_(std::move(encryption)) {
  for (const api::ResourceInfo& row : api::Resources()) {
    if (!row.etcd_prefix.empty() && !row.IsSubresource()) rows_.emplace(row.etcd_prefix, &StoredAs(row));
  }
}
Survey::~Survey() = default;

void Survey::Find(const etcd::KeyValue& kv, std::string problem) {
  if (++finding_count_ <= kMaxFindings) findings_.push_back({kv.key, std::move(problem)});
}

void Survey::Define(const etcd::KeyValue& kv) {
  const api::ResourceInfo& row = api::ResourceOf<Definition>();
  const StoredValueDecoder decoder(encryption_);
  Result<ObjectPtr> stored = decoder.Decode(row, std::string_view(kv.key).substr(kDefinitions.size()), kv);
  if (!stored) return;  // Add() tells
  auto load = [stored = *stored] { return std::static_pointer_cast<const Definition>(stored->Decode()); };
  custom_.Update(std::make_shared<const apiextensions::Definition>(*load(), kv.mod_revision, load));
}

const api::ResourceInfo* Survey::RowOf(std::string_view key, std::string_view& prefix, std::string& problem) {
  for (size_t slash = key.find('/', kRegistry.size()); slash != std::string_view::npos;
       slash = key.find('/', slash + 1)) {
    prefix = key.substr(0, slash + 1);
    if (const auto found = rows_.find(prefix); found != rows_.end()) return found->second;
  }
  // /registry/GROUP/PLURAL/...
  const std::string_view rest = key.substr(std::min(key.size(), kRegistry.size()));
  const size_t group = rest.find('/'),
               plural = rest.find('/', group == std::string_view::npos ? group : group + 1);
  const bool custom =
      plural != std::string_view::npos && rest.substr(0, group).find('.') != std::string_view::npos;
  if (!custom) {
    problem = "this server has no resource with such keys: it neither serves nor deletes it";
    return nullptr;
  }
  const std::string name =
      fmt::format("{}.{}", rest.substr(group + 1, plural - group - 1), rest.substr(0, group));
  apiextensions::CustomResource* resource = custom_.Find(name);
  if (!resource) {
    problem = fmt::format("there is no readable CustomResourceDefinition {}: it is not served", name);
    return nullptr;
  }
  prefix = resource->etcd_prefix;
  return &resource->Row(resource->definition()->StorageVersion().name);
}

void Survey::Add(const etcd::KeyValue& kv) {
  if (const Aside* aside = AsideOf(kv.key)) {
    std::unique_ptr<api::Message> message(aside->prototype.New());
    if (Result<> read = DecodePlain(kv, *message); !read) Find(kv, read.error().message());
    return;
  }
  std::string_view prefix;
  std::string problem;
  const api::ResourceInfo* row = RowOf(kv.key, prefix, problem);
  if (!row) return Find(kv, std::move(problem));
  const std::string_view key = std::string_view(kv.key).substr(prefix.size());
  if (key.empty() || std::count(key.begin(), key.end(), '/') != (row->namespaced ? 1 : 0)) {
    return Find(kv, fmt::format("{} have a key of the form {}: it is not served", row->GroupResource(),
                                row->namespaced ? "NAMESPACE/NAME" : "NAME"));
  }
  AddObject(*row, prefix, kv);
}

void Survey::AddObject(const api::ResourceInfo& row, std::string_view prefix, const etcd::KeyValue& kv) {
  static const TransformerPtr identity = NewIdentity();
  const TransformerPtr transformer = encryption_ ? encryption_->Of(row) : nullptr;
  Result<Opened> opened = (transformer ? transformer : identity)->FromStorage(kv.value, kv.key);
  if (!opened) {
    const std::string with = EncryptionOf(kv.value);
    return Find(kv, fmt::format("cannot be decrypted{}: {}", with.empty() ? "" : " (" + with + ")",
                                opened.error().message()));
  }
  const std::string_view value = opened->bytes;
  const std::string key(std::string_view(kv.key).substr(prefix.size()));
  Result<api::TypeMeta> type = TypeOf(value);
  if (!type) return Find(kv, "is neither protobuf of the API nor JSON: " + type.error().message());
  Result<ObjectPtr> object = Object::FromStored(row, key, kv.mod_revision, value);
  if (!object) return Find(kv, object.error().message());
  ++forms_[{std::string(row.GroupResource()), type->api_version, IsJson(value) ? "json" : "protobuf",
            EncryptionOf(kv.value)}];
  if (api::KeyOf(*(*object)->Decode()) != key) {
    return Find(kv, "has another name or namespace than its key");
  }
  if (row.IsCustom()) {
    const apiextensions::CustomRow* stored = apiextensions::CustomOf((*object)->info());
    if (!stored->owner->VersionOf(*stored)) {
      Find(kv,
           fmt::format("is stored as {}, a version that its definition does not have", type->api_version));
    }
    return;
  }
  const Result<StoredVersion> version = FindStoredVersion(row, *type);
  if (!version || !version->known) {
    return Find(kv, fmt::format("is stored as {}, which this server does not know: it is read as {}",
                                type->api_version, row.ApiVersion()));
  }
  if (std::string field = UnknownFieldOf(version->descriptor, value); !field.empty()) {
    Find(kv, "has a field that this server does not know, and does not show: " + field);
  }
}

}  // namespace keelson::storage
