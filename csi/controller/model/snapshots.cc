#include "csi/controller/model/snapshots.h"

#include <boost/json.hpp>

#include "lib/api/codec/custom_object.h"

namespace keelson::csi::controller {
namespace {

namespace json = boost::json;

api::ResourceInfo Row(std::string_view resource, std::string_view kind, bool namespaced) {
  api::ResourceInfo row{};
  row.group = row.kind_group = kSnapshotGroup;
  row.version = row.kind_version = "v1";
  row.resource = resource;
  row.kind = kind;
  row.message = api::kCustomMessage;
  row.namespaced = namespaced;
  return row;
}

// The object at "a/b", or null.
const json::object* Part(const json::object& object, std::initializer_list<std::string_view> path) {
  const json::object* here = &object;
  for (const std::string_view name : path) {
    const json::value* value = here->if_contains(name);
    here = value ? value->if_object() : nullptr;
    if (!here) return nullptr;
  }
  return here;
}

std::optional<std::string> Text(const json::object* object, std::string_view name) {
  const json::value* value = object ? object->if_contains(name) : nullptr;
  if (!value || !value->is_string()) return std::nullopt;
  return std::string(value->get_string());
}

// Names: an empty one is none.
std::optional<std::string> Name(const json::object* object, std::string_view name) {
  auto text = Text(object, name);
  return text && !text->empty() ? text : std::nullopt;
}

std::string TextOr(const json::object* object, std::string_view name) {
  return Text(object, name).value_or("");
}

std::optional<bool> Flag(const json::object* object, std::string_view name) {
  const json::value* value = object ? object->if_contains(name) : nullptr;
  if (!value || !value->is_bool()) return std::nullopt;
  return value->get_bool();
}

std::optional<int64_t> Number(const json::object* object, std::string_view name) {
  const json::value* value = object ? object->if_contains(name) : nullptr;
  if (!value) return std::nullopt;
  boost::system::error_code failed;
  const auto number = value->to_number<int64_t>(failed);
  if (failed) return std::nullopt;
  return number;
}

// Quantities may be numbers.
std::optional<std::string> QuantityText(const json::object* object, std::string_view name) {
  if (auto text = Text(object, name)) return text;
  if (const auto number = Number(object, name)) return std::to_string(*number);
  return std::nullopt;
}

std::optional<SnapshotError> ErrorIn(const json::object* status) {
  const json::value* value = status ? status->if_contains("error") : nullptr;
  const json::object* error = value ? value->if_object() : nullptr;
  if (!error) return std::nullopt;
  return SnapshotError{TextOr(error, "time"), TextOr(error, "message")};
}

json::value ToJson(const std::string& text) { return json::string(text); }
json::value ToJson(bool flag) { return flag; }
json::value ToJson(int64_t number) { return number; }

template <typename T>
void Put(json::object& object, std::string_view name, const std::optional<T>& value) {
  if (value) {
    object[name] = ToJson(*value);
  } else {
    object.erase(name);
  }
}

void PutError(json::object& status, const std::optional<SnapshotError>& error) {
  if (!error) {
    status.erase("error");
    return;
  }
  json::object out;
  out["message"] = ToJson(error->message);
  if (!error->time.empty()) out["time"] = ToJson(error->time);
  status["error"] = std::move(out);
}

// Edits the object at `path`, which is made where it is missing.
template <typename Change>
Result<> Edit(CustomObject& object, std::initializer_list<std::string_view> path, const Change& change) {
  KEELSON_ASSIGN_OR_RETURN(json::object content, api::ContentOf(object));
  json::object* here = &content;
  for (const std::string_view name : path) {
    json::value& value = (*here)[name];
    if (!value.is_object()) value.emplace_object();
    here = &value.get_object();
  }
  change(*here);
  api::SetContent(object, content);
  return {};
}

}  // namespace

const api::ResourceInfo& SnapshotRow() {
  static const api::ResourceInfo row = Row("volumesnapshots", "VolumeSnapshot", true);
  return row;
}
const api::ResourceInfo& SnapshotContentRow() {
  static const api::ResourceInfo row = Row("volumesnapshotcontents", "VolumeSnapshotContent", false);
  return row;
}
const api::ResourceInfo& SnapshotClassRow() {
  static const api::ResourceInfo row = Row("volumesnapshotclasses", "VolumeSnapshotClass", false);
  return row;
}

Result<Snapshot> ReadSnapshot(const CustomObject& object) {
  KEELSON_ASSIGN_OR_RETURN(const json::object content, api::ContentOf(object));
  Snapshot out;
  out.meta = object.metadata();
  const json::object* source = Part(content, {"spec", "source"});
  out.claim = Name(source, "persistentVolumeClaimName");
  out.content = Name(source, "volumeSnapshotContentName");
  out.class_name = Name(Part(content, {"spec"}), "volumeSnapshotClassName");
  if (const json::object* status = Part(content, {"status"})) {
    out.status =
        SnapshotStatus{Name(status, "boundVolumeSnapshotContentName"), Text(status, "creationTime"),
                       QuantityText(status, "restoreSize"), Flag(status, "readyToUse"), ErrorIn(status)};
  }
  return out;
}

Result<SnapshotContent> ReadSnapshotContent(const CustomObject& object) {
  KEELSON_ASSIGN_OR_RETURN(const json::object content, api::ContentOf(object));
  SnapshotContent out;
  out.meta = object.metadata();
  const json::object* spec = Part(content, {"spec"});
  out.driver = TextOr(spec, "driver");
  out.deletion_policy = TextOr(spec, "deletionPolicy");
  out.class_name = Name(spec, "volumeSnapshotClassName");
  out.source_volume_mode = TextOr(spec, "sourceVolumeMode");
  const json::object* source = Part(content, {"spec", "source"});
  out.volume_handle = Name(source, "volumeHandle");
  out.snapshot_handle = Name(source, "snapshotHandle");
  const json::object* reference = Part(content, {"spec", "volumeSnapshotRef"});
  out.snapshot_ns = TextOr(reference, "namespace");
  out.snapshot_name = TextOr(reference, "name");
  out.snapshot_uid = TextOr(reference, "uid");
  if (const json::object* status = Part(content, {"status"})) {
    out.status = ContentStatus{Name(status, "snapshotHandle"), Name(status, "volumeGroupSnapshotHandle"),
                               Number(status, "creationTime"), Number(status, "restoreSize"),
                               Flag(status, "readyToUse"),     ErrorIn(status)};
  }
  return out;
}

Result<SnapshotClass> ReadSnapshotClass(const CustomObject& object) {
  KEELSON_ASSIGN_OR_RETURN(const json::object content, api::ContentOf(object));
  SnapshotClass out;
  out.meta = object.metadata();
  out.driver = TextOr(&content, "driver");
  out.deletion_policy = TextOr(&content, "deletionPolicy");
  if (const json::object* parameters = Part(content, {"parameters"})) {
    for (const auto& [key, value] : *parameters) {
      if (value.is_string()) out.parameters[std::string(key)] = std::string(value.get_string());
    }
  }
  return out;
}

Result<> SetStatus(const SnapshotStatus& status, CustomObject& snapshot) {
  return Edit(snapshot, {"status"}, [&](json::object& out) {
    Put(out, "boundVolumeSnapshotContentName", status.bound_content);
    Put(out, "creationTime", status.creation_time);
    Put(out, "restoreSize", status.restore_size);
    Put(out, "readyToUse", status.ready);
    PutError(out, status.error);
  });
}

Result<> SetStatus(const ContentStatus& status, CustomObject& content) {
  return Edit(content, {"status"}, [&](json::object& out) {
    Put(out, "snapshotHandle", status.handle);
    Put(out, "volumeGroupSnapshotHandle", status.group);
    Put(out, "creationTime", status.creation_time);
    Put(out, "restoreSize", status.restore_size);
    Put(out, "readyToUse", status.ready);
    PutError(out, status.error);
  });
}

Result<> SetClassName(const std::string& name, CustomObject& snapshot_or_content) {
  return Edit(snapshot_or_content, {"spec"},
              [&](json::object& out) { out["volumeSnapshotClassName"] = ToJson(name); });
}

Result<> SetSnapshotUid(const std::string& uid, CustomObject& content) {
  return Edit(content, {"spec", "volumeSnapshotRef"}, [&](json::object& out) { out["uid"] = ToJson(uid); });
}

CustomObject NewSnapshotContent(const SnapshotContent& content) {
  json::object source;
  Put(source, "volumeHandle", content.volume_handle);
  Put(source, "snapshotHandle", content.snapshot_handle);
  json::object reference;
  reference["apiVersion"] = ToJson(SnapshotRow().ApiVersion());
  reference["kind"] = "VolumeSnapshot";
  reference["name"] = ToJson(content.snapshot_name);
  reference["namespace"] = ToJson(content.snapshot_ns);
  reference["uid"] = ToJson(content.snapshot_uid);
  json::object spec;
  spec["deletionPolicy"] = ToJson(content.deletion_policy);
  spec["driver"] = ToJson(content.driver);
  spec["source"] = std::move(source);
  spec["volumeSnapshotRef"] = std::move(reference);
  Put(spec, "volumeSnapshotClassName", content.class_name);
  if (!content.source_volume_mode.empty()) spec["sourceVolumeMode"] = ToJson(content.source_volume_mode);
  json::object members;
  members["spec"] = std::move(spec);
  CustomObject out;
  *out.mutable_metadata() = content.meta;
  api::SetContent(out, members);
  return out;
}

corev1::ObjectReference ReferenceTo(const api::ResourceInfo& row, const metav1::ObjectMeta& meta) {
  corev1::ObjectReference out;
  out.set_kind(std::string(row.kind));
  out.set_api_version(row.ApiVersion());
  if (!meta.namespace_().empty()) out.set_namespace_(meta.namespace_());
  out.set_name(meta.name());
  out.set_uid(meta.uid());
  if (!meta.resource_version().empty()) out.set_resource_version(meta.resource_version());
  return out;
}

}  // namespace keelson::csi::controller
