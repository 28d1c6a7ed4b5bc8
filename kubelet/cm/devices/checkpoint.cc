#include "kubelet/cm/devices/checkpoint.h"

#include <charconv>

#include <boost/json.hpp>

#include "kubelet/cm/devices/wire.h"
#include "lib/base/base64.h"

namespace keelson::kubelet::devices {

namespace json = boost::json;

namespace {

constexpr int64_t kNoNode = -1;

Error Malformed(std::string_view what) {
  return Error(Code::kInvalid, "checkpoint is corrupted: " + std::string(what));
}

json::object DeviceIds(const Allocation& allocation) {
  std::map<int64_t, json::array> by_node;
  for (const auto& [id, nodes] : allocation.devices) {
    if (nodes.empty()) by_node[kNoNode].emplace_back(id);
    for (int64_t node : nodes) by_node[node].emplace_back(id);
  }
  json::object out;
  for (auto& [node, ids] : by_node) out[std::to_string(node)] = std::move(ids);
  return out;
}

Result<std::map<std::string, std::vector<int64_t>>> Devices(const json::value& value) {
  std::map<std::string, std::vector<int64_t>> out;
  if (!value.is_object()) return Malformed("DeviceIDs");
  for (const auto& [key, ids] : value.as_object()) {
    int64_t node = 0;
    auto [end, failure] = std::from_chars(key.data(), key.data() + key.size(), node);
    if (failure != std::errc() || end != key.data() + key.size() || !ids.is_array()) {
      return Malformed("DeviceIDs");
    }
    for (const json::value& id : ids.as_array()) {
      if (!id.is_string()) return Malformed("DeviceIDs");
      auto& nodes = out[std::string(id.as_string())];
      if (node != kNoNode) nodes.push_back(node);
    }
  }
  return out;
}

Result<std::string> Text(const json::object& object, std::string_view field) {
  const json::value* value = object.if_contains(field);
  if (!value || !value->is_string()) return Malformed(field);
  return std::string(value->as_string());
}

Result<> ReadEntry(const json::value& value, PodDevices& pods) {
  if (!value.is_object()) return Malformed("PodDeviceEntries");
  const json::object& entry = value.as_object();
  KEELSON_ASSIGN_OR_RETURN(std::string uid, Text(entry, "PodUID"));
  KEELSON_ASSIGN_OR_RETURN(std::string container, Text(entry, "ContainerName"));
  KEELSON_ASSIGN_OR_RETURN(std::string resource, Text(entry, "ResourceName"));
  KEELSON_ASSIGN_OR_RETURN(std::string encoded, Text(entry, "AllocResp"));
  KEELSON_ASSIGN_OR_RETURN(std::string bytes, DecodeBase64(encoded, Base64::kStd, "\r\n"));
  Allocation allocation;
  KEELSON_ASSIGN_OR_RETURN(allocation.grant, GrantFromBytes(bytes));
  const json::value* ids = entry.if_contains("DeviceIDs");
  if (!ids) return Malformed("DeviceIDs");
  KEELSON_ASSIGN_OR_RETURN(allocation.devices, Devices(*ids));
  pods.Insert(uid, container, resource, std::move(allocation));
  return {};
}

}  // namespace

std::string EncodeCheckpoint(const PodDevices& pods, const std::map<std::string, Ids>& healthy_devices) {
  json::array entries;
  for (const auto& [uid, containers] : pods.pods()) {
    for (const auto& [container, allocations] : containers) {
      for (const auto& [resource, allocation] : allocations) {
        entries.push_back({{"PodUID", uid},
                           {"ContainerName", container},
                           {"ResourceName", resource},
                           {"DeviceIDs", DeviceIds(allocation)},
                           {"AllocResp", EncodeBase64(GrantToBytes(allocation.grant))}});
      }
    }
  }
  json::object registered;
  for (const auto& [resource, ids] : healthy_devices) {
    registered[resource] = json::array(ids.begin(), ids.end());
  }
  json::object data;
  data["PodDeviceEntries"] = std::move(entries);
  data["RegisteredDevices"] = std::move(registered);
  json::object out;
  out["Data"] = std::move(data);
  return json::serialize(out);
}

Result<Checkpoint> DecodeCheckpoint(std::string_view text) {
  boost::system::error_code failure;
  json::value root = json::parse(text, failure);
  if (failure) return Malformed(failure.message());
  const json::value* data = root.is_object() ? root.as_object().if_contains("Data") : nullptr;
  if (!data || !data->is_object()) return Malformed("Data");
  Checkpoint out;
  // Go writes null for an empty list.
  const json::value* entries = data->as_object().if_contains("PodDeviceEntries");
  if (entries && entries->is_array()) {
    for (const json::value& entry : entries->as_array()) KEELSON_RETURN_IF_ERROR(ReadEntry(entry, out.pods));
  }
  const json::value* registered = data->as_object().if_contains("RegisteredDevices");
  if (registered && registered->is_object()) {
    for (const auto& [resource, ids] : registered->as_object()) out.resources.insert(std::string(resource));
  }
  return out;
}

}  // namespace keelson::kubelet::devices
