#include "controlplane/storage/object.h"

#include <charconv>
#include <mutex>
#include <unordered_map>

#include <google/protobuf/arena.h>

#include "controlplane/apiextensions/custom_objects.h"
#include "controlplane/storage/convert.h"
#include "controlplane/storage/wire.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/base/log.h"

namespace keelson::storage {
namespace {

// Fields that a kind's selectors may name, without metadata.*: those are in the key.
const std::vector<std::string>& BuiltInFields(const api::Descriptor* descriptor) {
  static Mutex mutex;
  static std::unordered_map<const api::Descriptor*, std::unique_ptr<std::vector<std::string>>> known;
  MutexLock lock(mutex);
  auto& fields = known[descriptor];
  if (!fields) {
    fields = std::make_unique<std::vector<std::string>>();
    for (std::string& field : api::SelectableFields(descriptor)) {
      if (field.compare(0, 9, "metadata.") != 0) fields->push_back(std::move(field));
    }
  }
  return *fields;
}

std::vector<std::string> CustomFields(const apiextensions::CustomRow& row) {
  std::shared_ptr<const apiextensions::Version> version = row.owner->VersionOf(row);
  return version ? version->selectable_fields : std::vector<std::string>();
}

bool ParseInteger(std::string_view text, int64_t& value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

bool Satisfies(const Object::Labels& labels, const api::LabelSelector::Requirement& requirement) {
  using Op = api::LabelSelector::Op;
  auto found = std::lower_bound(labels.begin(), labels.end(), std::string_view(requirement.key),
                                [](const auto& label, std::string_view key) { return label.first < key; });
  bool has = found != labels.end() && found->first == requirement.key;
  bool listed = has && std::binary_search(requirement.values.begin(), requirement.values.end(), found->second,
                                          [](std::string_view a, std::string_view b) { return a < b; });
  switch (requirement.op) {
    case Op::kIn:
      return listed;
    case Op::kNotIn:
      return !listed;
    case Op::kExists:
      return has;
    case Op::kDoesNotExist:
      return !has;
    default:
      break;
  }
  int64_t value = 0, bound = 0;
  if (!has || requirement.values.empty() || !ParseInteger(found->second, value) ||
      !ParseInteger(requirement.values[0], bound)) {
    return false;
  }
  return requirement.op == Op::kGreaterThan ? value > bound : value < bound;
}

bool IsJson(std::string_view value) {
  const size_t first = value.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && value[first] == '{';
}

Result<api::Envelope> Open(std::string_view value) {
  Result<api::Envelope> opened = api::OpenEnvelope(value);
  if (!opened) return Error(Code::kInternal, "stored object: " + opened.error().message());
  return opened;
}

// What upstream stores with --storage-media-type=application/json, and CustomResourceDefinitions and APIServices always.
// `raw` holds the object's bytes.
Result<api::Envelope> OpenJson(const api::ResourceInfo& info, std::string_view value, std::string& raw) {
  api::Envelope envelope;
  Result<api::TypeMeta> type = api::PeekTypeMeta(value);
  if (!type) return Error(Code::kInternal, "stored object: " + type.error().message());
  envelope.type_meta = std::move(*type);
  KEELSON_ASSIGN_OR_RETURN(const StoredVersion version, FindStoredVersion(info, envelope.type_meta));
  std::unique_ptr<api::Message> message = api::NewObject(version.descriptor);
  Result<> decoded = api::DecodeJson(value, *message);
  if (!decoded) return Error(Code::kInternal, "stored object: " + decoded.error().message());
  raw = api::EncodeRaw(*message);
  envelope.raw = raw;
  return envelope;
}

}  // namespace

Object::Object(const api::ResourceInfo& info, std::string key, int64_t revision)
    : info_(&info), key_(std::move(key)), revision_(revision) {}

Result<std::shared_ptr<Object>> Object::Make(const api::ResourceInfo& info, std::string key,
                                             std::optional<int64_t> revision, std::string_view raw) {
  auto object = std::make_shared<Object>(info, std::move(key), revision.value_or(0));
  KEELSON_ASSIGN_OR_RETURN(Span span,
                           AppendEnvelope(info.Gvk().ApiVersion(), info.kind, raw, revision, object->bytes_));
  object->raw_offset_ = static_cast<uint32_t>(span.offset);
  object->raw_size_ = static_cast<uint32_t>(span.size);
  object->labels_ = FindLabels(object->raw());
  return object;
}

void Object::SetFields(const api::Message& message) {
  fields_.clear();
  if (info_->IsCustom()) {
    // Names stand beside the values: the definition may change.
    for (const std::string& field : CustomFields(*apiextensions::CustomOf(*info_))) {
      fields_.append(field)
          .append(1, '\0')
          .append(apiextensions::SelectableValue(message, field))
          .append(1, '\0');
    }
    return;
  }
  for (const std::string& field : BuiltInFields(message.GetDescriptor())) {
    fields_ += api::SelectableField(message, field).value_or("");
    fields_ += '\0';
  }
}

Result<ObjectPtr> Object::FromStored(const api::ResourceInfo& info, std::string key, int64_t revision,
                                     std::string_view value) {
  if (info.IsCustom()) return FromStoredCustom(info, std::move(key), revision, value);
  const bool is_json = IsJson(value);
  std::string decoded;
  KEELSON_ASSIGN_OR_RETURN(api::Envelope envelope, is_json ? OpenJson(info, value, decoded) : Open(value));
  if (envelope.type_meta.kind != info.kind) {
    return Error(Code::kInternal,
                 "stored object is a " + envelope.type_meta.kind + ", not a " + std::string(info.kind));
  }
  std::unique_ptr<api::Message> converted;
  KEELSON_ASSIGN_OR_RETURN(const StoredVersion version, FindStoredVersion(info, envelope.type_meta));
  if (version.convert) {
    std::unique_ptr<api::Message> message = api::NewObject(version.descriptor);
    KEELSON_RETURN_IF_ERROR(api::DecodeRaw(envelope.raw, *message));
    converted = version.convert(*message, info);
  }
  KEELSON_ASSIGN_OR_RETURN(
      std::shared_ptr<Object> object,
      Make(info, std::move(key), revision, converted ? api::EncodeRaw(*converted) : envelope.raw));
  object->stored_as_json_ = is_json;
  if (converted) {
    object->SetFields(*converted);
    return ObjectPtr(std::move(object));
  }
  google::protobuf::Arena arena;
  api::Message* message = info.prototype().New(&arena);
  if (!message->ParsePartialFromString(std::string(envelope.raw))) {
    return Error(Code::kInternal, "stored object cannot be decoded");
  }
  object->SetFields(*message);
  return ObjectPtr(std::move(object));
}

Result<ObjectPtr> Object::FromStoredCustom(const api::ResourceInfo& info, std::string key, int64_t revision,
                                           std::string_view value) {
  const apiextensions::CustomRow* stored = nullptr;
  KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<api::Message> message,
                           apiextensions::ReadStored(*apiextensions::CustomOf(info), value, stored));
  KEELSON_ASSIGN_OR_RETURN(std::shared_ptr<Object> object,
                           Make(*stored, std::move(key), revision, api::EncodeRaw(*message)));
  object->stored_as_json_ = true;
  object->stored_as_ = stored;
  object->SetFields(*message);
  return ObjectPtr(std::move(object));
}

std::shared_ptr<Object> Object::Encode(const api::ResourceInfo& info, const api::Message& message,
                                       std::optional<int64_t> revision) {
  std::string key = api::HasObjectMeta(message.GetDescriptor()) ? api::KeyOf(message) : "";
  Result<std::shared_ptr<Object>> object = Make(info, std::move(key), revision, api::EncodeRaw(message));
  if (!object) {
    log::Error("Cannot read what was just encoded", {{"err", object.error()}});
    std::abort();
  }
  if (!info.IsSubresource()) (*object)->SetFields(message);
  return std::move(*object);
}

ObjectPtr Object::FromMessage(const api::ResourceInfo& info, const api::Message& message, int64_t revision) {
  return Encode(info, message, revision);
}

ObjectPtr Object::Unstored(const api::ResourceInfo& info, const api::Message& message) {
  return Encode(info, message, std::nullopt);
}

ObjectPtr Object::WithRevision(int64_t revision) const {
  Result<std::shared_ptr<Object>> copy = Make(*info_, key_, revision, raw());
  if (!copy) std::abort();  // our own bytes
  (*copy)->fields_ = fields_;
  (*copy)->stored_as_ = stored_as_;
  return *copy;
}

ObjectPtr Object::In(const api::ResourceInfo& info) const {
  if (&info == info_) return shared_from_this();
  return As(info, *Convert(*Decode(), info));
}

ObjectPtr Object::As(const api::ResourceInfo& info, const api::Message& converted) const {
  std::shared_ptr<Object> object = Encode(info, converted, revision_);
  object->stored_as_json_ = stored_as_json_;
  object->stored_as_ = stored_as_;
  return object;
}

std::string_view Object::ns() const {
  size_t slash = key_.find('/');
  return slash == std::string::npos ? std::string_view() : std::string_view(key_).substr(0, slash);
}

std::string_view Object::name() const {
  size_t slash = key_.find('/');
  return slash == std::string::npos ? std::string_view(key_) : std::string_view(key_).substr(slash + 1);
}

Bytes Object::Json() const {
  json_used_.store(true, std::memory_order_relaxed);
  if (Bytes known = json_.load()) return known;
  auto made = std::make_shared<std::string>();
  const api::GroupVersionKind gvk = info_->IsCustom() ? info_->Gvk() : api::GroupVersionKind();
  api::WireToJson(info_->descriptor(), raw(), info_->IsCustom() ? &gvk : nullptr, *made);
  made->shrink_to_fit();
  json_.store(made);
  return made;
}

Bytes Object::JsonIfKnown() const { return json_.load(); }

void Object::AppendTyped(std::string_view text, std::string& out) const {
  if (info_->IsCustom()) {
    out += text;
    return;
  }
  out.reserve(out.size() + text.size() + 96);
  out += R"({"kind":")";
  out += info_->kind;
  out += R"(","apiVersion":")";
  out += info_->Gvk().ApiVersion();
  out += '"';
  if (text.size() > 2) out += ',';
  out += text.substr(1);
}

std::string Object::TypedJson() const {
  std::string out;
  AppendTyped(*Json(), out);
  return out;
}

std::shared_ptr<const api::Message> Object::Decode() const {
  if (auto known = decoded_.load().lock()) return known;
  std::shared_ptr<api::Message> message = api::NewObject(info_->descriptor());
  if (Result<> decoded = api::DecodeRaw(raw(), *message); !decoded) {
    log::Error("Cannot decode checked bytes", {{"key", key_}, {"err", decoded.error()}});
    std::abort();
  }
  decoded_.store(std::weak_ptr<const api::Message>(message));
  return message;
}

Bytes Object::Cached(const std::function<std::string(const Object&)>& make) const {
  json_used_.store(true, std::memory_order_relaxed);
  if (Bytes known = cached_.load()) return known;
  auto made = std::make_shared<const std::string>(make(*this));
  cached_.store(made);
  return made;
}

bool Object::Matches(const api::LabelSelector& labels, const api::FieldSelector& fields) const {
  if (!labels.IsEverything()) {
    if (labels.requirements().empty()) return false;  // Nothing()
    for (const auto& requirement : labels.requirements()) {
      if (!Satisfies(labels_, requirement)) return false;
    }
  }
  for (const auto& term : fields.terms) {
    bool known = true;
    std::string_view value = Field(term.field, known);
    if (!known || (value == term.value) != term.equal) return false;
  }
  return true;
}

std::string_view Object::Field(std::string_view name, bool& known) const {
  known = true;
  if (name == "metadata.name") return this->name();
  if (name == "metadata.namespace") return ns();
  std::string_view rest = fields_;
  if (info_->IsCustom()) {
    while (!rest.empty()) {
      const std::string_view field = rest.substr(0, rest.find('\0'));
      rest.remove_prefix(field.size() + 1);
      const std::string_view value = rest.substr(0, rest.find('\0'));
      rest.remove_prefix(value.size() + 1);
      if (field == name) return value;
    }
    known = false;
    return {};
  }
  for (const std::string& field : BuiltInFields(info_->descriptor())) {
    size_t end = rest.find('\0');
    if (end == std::string_view::npos) break;
    if (field == name) return rest.substr(0, end);
    rest.remove_prefix(end + 1);
  }
  known = false;
  return {};
}

size_t Object::MemorySize() const {
  return sizeof *this + key_.capacity() + bytes_.capacity() + fields_.capacity() +
         labels_.capacity() * sizeof labels_[0];
}

void Object::DropIdle() const {
  if (json_used_.exchange(false, std::memory_order_relaxed)) return;
  json_.store(nullptr);
  cached_.store(nullptr);
}

}  // namespace keelson::storage
