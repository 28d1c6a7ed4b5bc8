#include "kubelet/volume/csi/csi_node.h"

#include <algorithm>
#include <boost/json.hpp>
#include <limits>
#include <map>

#include "lib/base/log.h"

namespace keelson::kubelet::csi {

namespace json = boost::json;

namespace {

using CsiNodeDriver = api::storage::v1::CSINodeDriver;

constexpr char kMigratedKey[] = "storage.alpha.kubernetes.io/migrated-plugins";
// Sorted.
constexpr char kMigrated[] =
    "kubernetes.io/aws-ebs,kubernetes.io/azure-disk,kubernetes.io/azure-file,kubernetes.io/cinder,"
    "kubernetes.io/gce-pd,kubernetes.io/portworx-volume,kubernetes.io/vsphere-volume";
constexpr char kNodeIdKey[] = "csi.volume.kubernetes.io/nodeid";

CsiNodeDriver EntryOf(const std::string& driver, const NodeInfo& info) {
  CsiNodeDriver out;
  out.set_name(driver);
  out.set_node_id(info.node_id);
  for (const auto& [key, value] : info.topology) out.add_topology_keys(key);
  if (info.max_volumes > 0) {
    const int64_t most = std::numeric_limits<int32_t>::max();
    out.mutable_allocatable()->set_count(static_cast<int32_t>(std::min(info.max_volumes, most)));
  } else if (info.max_volumes < 0) {
    log::Error("Invalid attach limit value of a CSI driver",
               {{"driver", driver}, {"value", std::to_string(info.max_volumes)}});
  }
  return out;
}

bool SameEntry(const CsiNodeDriver& a, const CsiNodeDriver& b) {
  auto keys = [](const CsiNodeDriver& entry) {
    std::vector<std::string> out(entry.topology_keys().begin(), entry.topology_keys().end());
    std::sort(out.begin(), out.end());
    return out;
  };
  return a.node_id() == b.node_id() && keys(a) == keys(b) &&
         a.allocatable().has_count() == b.allocatable().has_count() &&
         a.allocatable().count() == b.allocatable().count();
}

// Driver names to node ids.
Result<std::map<std::string, std::string>> NodeIds(const corev1::Node& node) {
  std::map<std::string, std::string> out;
  auto it = node.metadata().annotations().find(kNodeIdKey);
  if (it == node.metadata().annotations().end() || it->second.empty()) return out;
  auto malformed = [&](const std::string& why) {
    return Error(Code::kInvalid, std::string("failed to parse node's \"") + kNodeIdKey +
                                     "\" annotation value (\"" + it->second + "\") err=" + why);
  };
  json::error_code failed;
  const json::value value = json::parse(it->second, failed);
  if (failed) return malformed(failed.message());
  if (!value.is_object()) return malformed("it is no object");
  for (const auto& item : value.get_object()) {
    if (!item.value().is_string()) return malformed("it is no map of strings");
    out[std::string(item.key())] = std::string(item.value().get_string());
  }
  return out;
}

json::value Annotation(const std::map<std::string, std::string>& ids) {
  if (ids.empty()) return nullptr;
  json::object map;
  for (const auto& [driver, id] : ids) map[driver] = id;
  return json::value(json::serialize(map));
}

}  // namespace

CsiNode NewCsiNode(const corev1::Node& node) {
  CsiNode out;
  out.mutable_metadata()->set_name(node.metadata().name());
  auto& owner = *out.mutable_metadata()->add_owner_references();
  owner.set_api_version("v1");
  owner.set_kind("Node");
  owner.set_name(node.metadata().name());
  owner.set_uid(node.metadata().uid());
  out.mutable_spec();
  SetMigratedPlugins(out);
  return out;
}

bool SetMigratedPlugins(CsiNode& object) {
  std::string& value = (*object.mutable_metadata()->mutable_annotations())[kMigratedKey];
  if (value == kMigrated) return false;
  value = kMigrated;
  return true;
}

bool InstallDriver(CsiNode& object, const std::string& driver, const NodeInfo& info) {
  CsiNodeDriver entry = EntryOf(driver, info);
  bool changed = SetMigratedPlugins(object);
  auto& drivers = *object.mutable_spec()->mutable_drivers();
  auto it = std::find_if(drivers.begin(), drivers.end(),
                         [&](const CsiNodeDriver& item) { return item.name() == driver; });
  if (it != drivers.end() && SameEntry(*it, entry)) return changed;
  if (it != drivers.end()) drivers.erase(it);
  *drivers.Add() = std::move(entry);
  return true;
}

bool UninstallDriver(CsiNode& object, const std::string& driver) {
  auto& drivers = *object.mutable_spec()->mutable_drivers();
  auto it = std::find_if(drivers.begin(), drivers.end(),
                         [&](const CsiNodeDriver& item) { return item.name() == driver; });
  if (it == drivers.end()) return false;
  drivers.erase(it);
  return true;
}

Result<std::optional<std::string>> InstallPatch(const corev1::Node& node, const std::string& driver,
                                                const NodeInfo& info) {
  KEELSON_ASSIGN_OR_RETURN(auto ids, NodeIds(node));
  json::object labels;
  for (const auto& [key, value] : info.topology) {
    auto it = node.metadata().labels().find(key);
    if (it == node.metadata().labels().end()) {
      labels[key] = value;
    } else if (it->second != value) {
      return Error(Code::kInvalid, "detected topology value collision: driver reported \"" + key + "\":\"" +
                                       value + "\" but existing label is \"" + key + "\":\"" + it->second +
                                       "\"");
    }
  }
  json::object metadata;
  if (!labels.empty()) metadata["labels"] = std::move(labels);
  if (std::string& id = ids[driver]; id != info.node_id) {
    id = info.node_id;
    metadata["annotations"] = json::object{{kNodeIdKey, Annotation(ids)}};
  }
  if (metadata.empty()) return std::optional<std::string>();
  return std::optional(json::serialize(json::object{{"metadata", std::move(metadata)}}));
}

Result<std::optional<std::string>> UninstallPatch(const corev1::Node& node, const std::string& driver) {
  KEELSON_ASSIGN_OR_RETURN(auto ids, NodeIds(node));
  if (ids.erase(driver) == 0) return std::optional<std::string>();
  return std::optional(json::serialize(json::object{
      {"metadata", json::object{{"annotations", json::object{{kNodeIdKey, Annotation(ids)}}}}}}));
}

}  // namespace keelson::kubelet::csi
