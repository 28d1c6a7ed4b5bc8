#include "kubelet/cm/devices/wire.h"

#include "lib/rpc/proto/deviceplugin.pb.h"

namespace keelson::kubelet::devices {

DeviceMap FromWire(const v1beta1::ListAndWatchResponse& in) {
  DeviceMap out;
  for (const v1beta1::Device& item : in.devices()) {
    Device& device = out[item.id()];
    device = {item.health() == "Healthy", std::nullopt};
    if (!item.has_topology()) continue;
    device.nodes.emplace();
    for (const v1beta1::NUMANode& node : item.topology().nodes()) device.nodes->push_back(node.id());
  }
  return out;
}

Grant FromWire(const v1beta1::ContainerAllocateResponse& in) {
  Grant out;
  out.envs.insert(in.envs().begin(), in.envs().end());
  out.annotations.insert(in.annotations().begin(), in.annotations().end());
  for (const v1beta1::Mount& item : in.mounts()) {
    cri::Mount& mount = out.mounts.emplace_back();
    mount.container_path = item.container_path();
    mount.host_path = item.host_path();
    mount.readonly = item.read_only();
  }
  for (const v1beta1::DeviceSpec& item : in.devices()) {
    out.devices.push_back({item.container_path(), item.host_path(), item.permissions()});
  }
  for (const v1beta1::CDIDevice& item : in.cdi_devices()) out.cdi_devices.push_back(item.name());
  return out;
}

std::string GrantToBytes(const Grant& grant) {
  v1beta1::ContainerAllocateResponse out;
  for (const auto& [name, value] : grant.envs) (*out.mutable_envs())[name] = value;
  for (const auto& [name, value] : grant.annotations) (*out.mutable_annotations())[name] = value;
  for (const cri::Mount& mount : grant.mounts) {
    v1beta1::Mount& item = *out.add_mounts();
    item.set_container_path(mount.container_path);
    item.set_host_path(mount.host_path);
    item.set_read_only(mount.readonly);
  }
  for (const cri::Device& device : grant.devices) {
    v1beta1::DeviceSpec& item = *out.add_devices();
    item.set_container_path(device.container_path);
    item.set_host_path(device.host_path);
    item.set_permissions(device.permissions);
  }
  for (const std::string& name : grant.cdi_devices) out.add_cdi_devices()->set_name(name);
  return out.SerializeAsString();
}

Result<Grant> GrantFromBytes(std::string_view bytes) {
  v1beta1::ContainerAllocateResponse in;
  if (!in.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Error(Code::kInvalid, "not an allocation response");
  }
  return FromWire(in);
}

}  // namespace keelson::kubelet::devices
