#include "controlplane/apiserver/audit/objects.h"

#include <boost/json.hpp>

#include "controlplane/apiserver/request/yaml.h"
#include "lib/api/codec/codec.h"
#include "lib/api/codec/json_text.h"

namespace keelson::apiserver::audit {
namespace {

namespace json = boost::json;

constexpr size_t kDepth = 1000;

json::value Parse(std::string_view text, bool& good) {
  boost::system::error_code error;
  json::parse_options options;
  options.max_depth = kDepth;
  json::value value = json::parse(text, error, {}, options);
  good = !error;
  return value;
}

std::string Compact(std::string_view text) {
  std::string out;
  api::Sink sink(out);
  api::AppendCompact(text, sink);
  sink.Finish();
  return out == "null" ? "" : out;
}

std::string FromProtobuf(std::string_view body) {
  Result<api::Envelope> envelope = api::OpenEnvelope(body);
  if (!envelope) return "";
  auto [group, version] = api::SplitApiVersion(envelope->type_meta.api_version);
  const api::Descriptor* type = api::FindMessage(group, version, envelope->type_meta.kind);
  if (!type) return "";
  const api::GroupVersionKind gvk{std::string(group), std::string(version), envelope->type_meta.kind};
  std::string out;
  api::WireToJson(type, envelope->raw, &gvk, out);
  return out;
}

void DropManagedFields(json::value& value) {
  if (!value.is_object()) return;
  json::object& object = value.get_object();
  if (json::value* meta = object.if_contains("metadata"); meta && meta->is_object()) {
    meta->get_object().erase("managedFields");
  }
  if (json::value* items = object.if_contains("items"); items && items->is_array()) {
    for (json::value& item : items->get_array()) DropManagedFields(item);
  }
  if (json::value* rows = object.if_contains("rows"); rows && rows->is_array()) {
    for (json::value& row : rows->get_array()) {
      json::value* item = row.is_object() ? row.get_object().if_contains("object") : nullptr;
      if (item) DropManagedFields(*item);
    }
  }
}

}  // namespace

std::string ObjectJson(std::string_view content_type, std::string_view body, bool omit_managed_fields) {
  std::string out;
  if (content_type.find("protobuf") != std::string_view::npos) {
    out = FromProtobuf(body);
  } else if (content_type.find("yaml") != std::string_view::npos) {
    if (Result<std::string> converted = YamlToJson(body)) out = Compact(*converted);
  } else {
    out = Compact(body);
  }
  if (!omit_managed_fields || out.find("\"managedFields\"") == std::string::npos) return out;
  bool good = false;
  json::value value = Parse(out, good);
  if (!good) return out;
  DropManagedFields(value);
  return json::serialize(value);
}

ObjectNames NamesOf(std::string_view text) {
  bool good = false;
  json::value value = Parse(text, good);
  ObjectNames names;
  if (!good || !value.is_object()) return names;
  const json::value* meta = value.get_object().if_contains("metadata");
  if (!meta || !meta->is_object()) return names;
  auto get = [&](std::string_view name) {
    const json::value* field = meta->get_object().if_contains(name);
    return field && field->is_string() ? std::string(field->get_string()) : std::string();
  };
  names = {get("name"), get("namespace"), get("uid"), get("resourceVersion")};
  return names;
}

}  // namespace keelson::apiserver::audit
