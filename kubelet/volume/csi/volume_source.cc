#include "kubelet/volume/csi/volume_source.h"

#include <algorithm>
#include <boost/json.hpp>

#include "lib/api/meta.h"

namespace keelson::kubelet::csi {

namespace json = boost::json;

namespace {

constexpr char kReadWriteOnce[] = "ReadWriteOnce";

std::optional<SecretRef> RefOf(bool has, const corev1::SecretReference& ref) {
  if (!has) return std::nullopt;
  return SecretRef{ref.namespace_(), ref.name()};
}

VolumeSource PersistentSource(const VolumeInput& input) {
  const corev1::PersistentVolumeSpec& spec = input.persistent->spec();
  const corev1::CSIPersistentVolumeSource& csi = input.source().csi();
  VolumeSource out;
  out.driver = csi.driver();
  out.handle = csi.volume_handle();
  out.fs_type = csi.fs_type();
  out.read_only = input.read_only;
  out.access_modes.assign(spec.access_modes().begin(), spec.access_modes().end());
  out.mount_options.assign(spec.mount_options().begin(), spec.mount_options().end());
  out.attributes = {csi.volume_attributes().begin(), csi.volume_attributes().end()};
  out.stage_secret = RefOf(csi.has_node_stage_secret_ref(), csi.node_stage_secret_ref());
  out.publish_secret = RefOf(csi.has_node_publish_secret_ref(), csi.node_publish_secret_ref());
  out.expand_secret = RefOf(csi.has_node_expand_secret_ref(), csi.node_expand_secret_ref());
  return out;
}

VolumeSource EphemeralSource(const VolumeInput& input) {
  const corev1::CSIVolumeSource& csi = input.volume.volume_source().csi();
  VolumeSource out;
  out.driver = csi.driver();
  out.handle = EphemeralHandle(input.pod.metadata().uid(), input.volume.name());
  out.fs_type = csi.fs_type();
  out.ephemeral = true;
  out.read_only = csi.read_only();
  out.attributes = {csi.volume_attributes().begin(), csi.volume_attributes().end()};
  if (csi.has_node_publish_secret_ref()) {
    out.publish_secret = SecretRef{input.pod.metadata().namespace_(), csi.node_publish_secret_ref().name()};
  }
  return out;
}

const char* ModeName(bool ephemeral) { return ephemeral ? "Ephemeral" : "Persistent"; }

}  // namespace

VolumeSource SourceOf(const VolumeInput& input) {
  VolumeSource out = input.persistent ? PersistentSource(input) : EphemeralSource(input);
  // In quotes, since a level may have commas.
  if (!input.selinux_label.empty()) out.mount_options.push_back("context=\"" + input.selinux_label + "\"");
  return out;
}

VolumeData DataOf(const VolumeInput& input, const VolumeSource& source) {
  return {source.driver,
          source.handle,
          input.name(),
          input.node.node_name,
          AttachmentName(source.handle, source.driver, input.node.node_name),
          source.ephemeral,
          input.selinux_label};
}

bool NeedsAttaching(const CsiDriver* driver, const VolumeSource& source) {
  if (source.ephemeral) return false;
  return !driver || !driver->spec().has_attach_required() || driver->spec().attach_required();
}

Result<> CheckLifecycleMode(const CsiDriver* driver, const VolumeSource& source) {
  const std::string mode = ModeName(source.ephemeral);
  if (!driver) {
    if (!source.ephemeral) return {};
    return Error(Code::kInvalid, "volume mode \"" + mode + "\" not supported by driver " + source.driver +
                                     " (no CSIDriver object)");
  }
  const auto& modes = driver->spec().volume_lifecycle_modes();
  if (std::find(modes.begin(), modes.end(), mode) != modes.end()) return {};
  std::string listed;
  for (const std::string& item : modes) listed += (listed.empty() ? "\"" : " \"") + item + "\"";
  return Error(Code::kInvalid, "volume mode \"" + mode + "\" not supported by driver " + source.driver +
                                   " (only supports [" + listed + "])");
}

Result<bool> AppliesFsGroup(const CsiDriver* driver, const VolumeSource& source, const corev1::Pod& pod) {
  std::string policy = "ReadWriteOnceWithFSType";
  if (driver) {
    policy = driver->spec().fs_group_policy();
    if (policy.empty()) {
      return Error(Code::kInvalid,
                   "kubernetes.io/csi: expected valid fsGroupPolicy, received nil value or empty string");
    }
  }
  if (!FsGroup(pod) || policy == "None" || source.read_only) return false;
  if (policy == "File") return true;
  if (source.fs_type.empty()) return false;
  if (source.ephemeral) return true;  // of one pod
  const auto& modes = source.access_modes;
  return std::find(modes.begin(), modes.end(), kReadWriteOnce) != modes.end();
}

bool RequiresRepublish(const CsiDriver* driver) { return driver && driver->spec().requires_republish(); }

AccessMode AccessModeOf(const VolumeSource& source, const NodeCapabilities& capabilities) {
  const std::string mode = source.access_modes.empty() ? kReadWriteOnce : source.access_modes.front();
  if (mode == "ReadOnlyMany") return AccessMode::kMultiNodeReaderOnly;
  if (mode == "ReadWriteMany") return AccessMode::kMultiNodeMultiWriter;
  if (mode == kReadWriteOnce) {
    return capabilities.multi_writer ? AccessMode::kSingleNodeMultiWriter : AccessMode::kSingleNodeWriter;
  }
  if (mode == "ReadWriteOncePod") {
    return capabilities.multi_writer ? AccessMode::kSingleNodeSingleWriter : AccessMode::kSingleNodeWriter;
  }
  return AccessMode::kUnknown;
}

VolumeCapability MountCapability(const VolumeSource& source, const NodeCapabilities& capabilities,
                                 const corev1::Pod& pod) {
  VolumeCapability out;
  out.access_mode = AccessModeOf(source, capabilities);
  out.fs_type = source.fs_type;
  out.mount_flags = source.mount_options;
  if (const auto group = FsGroup(pod); group && capabilities.mount_group) out.group = *group;
  return out;
}

VolumeCapability BlockCapability(const VolumeSource& source, const NodeCapabilities& capabilities) {
  VolumeCapability out;
  out.access_mode = AccessModeOf(source, capabilities);
  out.block = true;
  return out;
}

Values PodInfo(const CsiDriver* driver, const VolumeSource& source, const corev1::Pod& pod) {
  if (!driver || !driver->spec().pod_info_on_mount()) return {};
  return {{"csi.storage.k8s.io/pod.name", pod.metadata().name()},
          {"csi.storage.k8s.io/pod.namespace", pod.metadata().namespace_()},
          {"csi.storage.k8s.io/pod.uid", pod.metadata().uid()},
          {"csi.storage.k8s.io/serviceAccount.name", pod.spec().service_account_name()},
          {"csi.storage.k8s.io/ephemeral", source.ephemeral ? "true" : "false"}};
}

std::string TokensJson(const std::map<std::string, ObjectSource::Token>& tokens) {
  json::object out;
  for (const auto& [audience, token] : tokens) {
    out[audience] =
        json::object{{"token", token.value}, {"expirationTimestamp", api::FormatTime(token.expires)}};
  }
  return json::serialize(out);
}

}  // namespace keelson::kubelet::csi
