#include "csi/controller/model/capability.h"

#include <set>

namespace keelson::csi::controller {
namespace {

using AccessMode = v1::VolumeCapability::AccessMode;
using Modes = google::protobuf::RepeatedPtrField<std::string>;

Error Wrong(std::string message) { return Error(Code::kInvalid, std::move(message)); }

// A volume has one mode in CSI: the one that allows what any of Kubernetes' modes allows.
Result<AccessMode::Mode> ModeOf(const Modes& list, bool multi_writer) {
  const std::set<std::string> modes(list.begin(), list.end());
  for (const std::string& mode : modes) {
    if (mode != "ReadWriteOnce" && mode != "ReadOnlyMany" && mode != "ReadWriteMany" &&
        mode != "ReadWriteOncePod") {
      return Wrong("unknown access mode " + mode);
    }
  }
  if (modes.count("ReadWriteOncePod") > 0) {
    if (modes.size() > 1) {
      return Wrong(
          "Kubernetes does not support use of ReadWriteOncePod with other access modes on the same "
          "PersistentVolume");
    }
    // Drivers that do not know the difference take it for ReadWriteOnce, which Kubernetes itself narrows.
    return multi_writer ? AccessMode::SINGLE_NODE_SINGLE_WRITER : AccessMode::SINGLE_NODE_WRITER;
  }
  if (modes.count("ReadWriteMany") > 0) return AccessMode::MULTI_NODE_MULTI_WRITER;
  if (modes.count("ReadOnlyMany") > 0) {
    if (modes.count("ReadWriteOnce") > 0) {
      return Wrong(
          "Kubernetes does not support use of ReadWriteOnce and ReadOnlyMany on the same "
          "PersistentVolume");
    }
    return AccessMode::MULTI_NODE_READER_ONLY;
  }
  if (modes.count("ReadWriteOnce") == 0) return Wrong("no access mode");
  return multi_writer ? AccessMode::SINGLE_NODE_MULTI_WRITER : AccessMode::SINGLE_NODE_WRITER;
}

v1::VolumeCapability Make(AccessMode::Mode mode, bool block, const MountOptions& mount) {
  v1::VolumeCapability out;
  out.mutable_access_mode()->set_mode(mode);
  if (block) {
    out.mutable_block();
    return out;
  }
  out.mutable_mount()->set_fs_type(mount.fs_type);
  for (const std::string& flag : mount.flags) out.mutable_mount()->add_mount_flags(flag);
  return out;
}

}  // namespace

bool IsBlock(const Claim& claim) { return claim.spec().volume_mode() == "Block"; }
bool IsBlock(const Volume& volume) { return volume.spec().volume_mode() == "Block"; }

Result<std::vector<v1::VolumeCapability>> ClaimCapabilities(const Claim& claim, const MountOptions& mount,
                                                            bool multi_writer) {
  std::vector<v1::VolumeCapability> out;
  for (const std::string& name : claim.spec().access_modes()) {
    Modes one;
    *one.Add() = name;
    KEELSON_ASSIGN_OR_RETURN(const AccessMode::Mode mode, ModeOf(one, multi_writer));
    out.push_back(Make(mode, IsBlock(claim), mount));
  }
  return out;
}

Result<v1::VolumeCapability> VolumeCapability(const Volume& volume, bool multi_writer) {
  KEELSON_ASSIGN_OR_RETURN(const AccessMode::Mode mode, ModeOf(volume.spec().access_modes(), multi_writer));
  const auto& options = volume.spec().mount_options();
  return Make(mode, IsBlock(volume),
              {volume.spec().persistent_volume_source().csi().fs_type(), {options.begin(), options.end()}});
}

}  // namespace keelson::csi::controller
