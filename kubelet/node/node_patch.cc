#include <boost/json.hpp>

#include "kubelet/node/node_status.h"
#include "lib/api/codec/codec.h"

namespace keelson::kubelet {

namespace json = boost::json;

namespace {

json::object ToJson(const corev1::NodeStatus& status) {
  json::error_code failed;
  json::value value = json::parse(api::EncodeJson(status), failed);
  return !failed && value.is_object() ? value.as_object() : json::object();
}

json::array ChangedConditions(const json::value* base, const json::value& desired, bool heartbeats_too) {
  json::array out;
  for (const json::value& item : desired.as_array()) {
    bool same = false;
    if (base && base->is_array()) {
      for (const json::value& old : base->as_array()) {
        if (old.at("type") != item.at("type")) continue;
        json::object a = old.as_object(), b = item.as_object();
        if (!heartbeats_too) {
          a.erase("lastHeartbeatTime");
          b.erase("lastHeartbeatTime");
        }
        same = a == b;
      }
    }
    if (!same) out.push_back(item);
  }
  return out;
}

// The list would merge by type, and two addresses may be of one type.
json::array Replacing(const json::value& list) {
  json::array out = {{{"$patch", "replace"}}};
  for (const json::value& item : list.as_array()) out.push_back(item);
  return out;
}

// As far as they differ; null for what is no more.
json::object ChangedAmounts(const json::object& base, const json::object& desired) {
  json::object out;
  for (const auto& item : desired) {
    if (const json::value* before = base.if_contains(item.key()); !before || *before != item.value()) {
      out[item.key()] = item.value();
    }
  }
  for (const auto& item : base) {
    if (!desired.contains(item.key())) out[item.key()] = nullptr;
  }
  return out;
}

json::value ChangedField(const json::string_view name, const json::value* base, const json::value& desired,
                         bool heartbeats_too) {
  if (name == "conditions") {
    json::array conditions = ChangedConditions(base, desired, heartbeats_too);
    return conditions.empty() ? json::value() : json::value(std::move(conditions));
  }
  if (name == "addresses" && base) return Replacing(desired);
  if ((name == "capacity" || name == "allocatable") && base) {
    return ChangedAmounts(base->as_object(), desired.as_object());
  }
  return desired;
}

}  // namespace

std::optional<std::string> NodeStatusPatch(const corev1::NodeStatus& base, const corev1::NodeStatus& desired,
                                           bool heartbeats_too) {
  const json::object old = ToJson(base), wanted = ToJson(desired);
  json::object changed;
  for (const auto& field : wanted) {
    const json::value* before = old.if_contains(field.key());
    if (before && *before == field.value()) continue;
    json::value value = ChangedField(field.key(), before, field.value(), heartbeats_too);
    if (!value.is_null()) changed[field.key()] = std::move(value);
  }
  for (const auto& field : old) {
    if (!wanted.contains(field.key())) changed[field.key()] = nullptr;
  }
  if (changed.empty()) return std::nullopt;
  return json::serialize(json::object{{"status", std::move(changed)}});
}

}  // namespace keelson::kubelet
