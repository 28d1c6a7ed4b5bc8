#include "kubelet/volume/csi/volume_data.h"

#include <unistd.h>

#include <boost/json.hpp>
#include <cerrno>

#include "lib/base/file.h"
#include "lib/crypto/digest.h"

namespace keelson::kubelet::csi {

namespace json = boost::json;

namespace {

constexpr char kFile[] = "/vol_data.json", kEphemeral[] = "Ephemeral", kPersistent[] = "Persistent";

std::string Text(const json::object& object, const char* name) {
  const json::value* value = object.if_contains(name);
  return value && value->is_string() ? std::string(value->get_string()) : std::string();
}

std::string PluginDir(const Paths& paths) { return paths.root + "/plugins/" + kPluginName; }

}  // namespace

std::string EncodeVolumeData(const VolumeData& data, bool staged) {
  json::object out;  // in the order that Go prints
  if (!staged) out["attachmentID"] = data.attachment;
  out["driverName"] = data.driver;
  if (!staged) out["nodeName"] = data.node;
  if (!data.selinux_label.empty()) out["seLinuxMountContext"] = data.selinux_label;
  if (!staged) out["specVolID"] = data.name;
  out["volumeHandle"] = data.handle;
  if (!staged) out["volumeLifecycleMode"] = data.ephemeral ? kEphemeral : kPersistent;
  return json::serialize(out) + "\n";
}

Result<VolumeData> DecodeVolumeData(const std::string& text) {
  json::error_code failed;
  const json::value value = json::parse(text, failed);
  if (failed) return Error(Code::kInvalid, failed.message());
  if (!value.is_object()) return Error(Code::kInvalid, "it is no object");
  const json::object& object = value.get_object();
  VolumeData out{Text(object, "driverName"),         Text(object, "volumeHandle"),
                 Text(object, "specVolID"),          Text(object, "nodeName"),
                 Text(object, "attachmentID"),       Text(object, "volumeLifecycleMode") == kEphemeral,
                 Text(object, "seLinuxMountContext")};
  if (out.driver.empty()) return Error(Code::kInvalid, "driverName is missing");
  if (out.handle.empty()) return Error(Code::kInvalid, "volumeHandle is missing");
  return out;
}

Result<std::optional<VolumeData>> ReadVolumeData(const std::string& dir) {
  auto text = ReadFile(dir + kFile);
  if (!text) {
    if (text.error().Is(Code::kNotFound)) return std::optional<VolumeData>();
    return text.error();
  }
  auto data = DecodeVolumeData(*text);
  if (data) return std::optional(std::move(*data));
  return Error(Code::kInternal,
               "failed to parse volume data file [" + dir + kFile + "]: " + data.error().message());
}

Result<> WriteVolumeData(const std::string& dir, const VolumeData& data, bool staged) {
  const std::string text = EncodeVolumeData(data, staged);
  if (auto there = ReadFile(dir + kFile); there && *there == text) return {};
  KEELSON_RETURN_IF_ERROR(MakeDirs(dir, 0750));
  return WriteFileAtomic(dir + kFile, text);
}

Result<> RemoveVolumeData(const std::string& dir) {
  KEELSON_RETURN_IF_ERROR(RemoveFile(dir + kFile));
  if (::rmdir(dir.c_str()) != 0 && errno != ENOENT && errno != ENOTEMPTY) return ErrnoError("rmdir " + dir);
  return {};
}

std::string AttachmentName(const std::string& handle, const std::string& driver, const std::string& node) {
  return "csi-" + crypto::Sha256Hex(handle + driver + node);
}

std::string EphemeralHandle(const std::string& uid, const std::string& volume) {
  return "csi-" + crypto::Sha256Hex(uid + volume);
}

std::string AttachName(const std::string& driver, const std::string& handle) {
  return std::string(kPluginName) + "/" + driver + "^" + handle;
}

std::string StagingPath(const Paths& paths, const std::string& driver, const std::string& handle) {
  return PluginDir(paths) + "/" + driver + "/" + crypto::Sha256Hex(handle) + "/globalmount";
}

DevicePaths DevicePathsOf(const Paths& paths, const std::string& volume, const std::string& uid) {
  const std::string dir = PluginDir(paths) + "/volumeDevices/";
  const std::string publish_dir = dir + "publish/" + volume;
  return {dir + volume + "/data", dir + "staging/" + volume, publish_dir, publish_dir + "/" + uid};
}

}  // namespace keelson::kubelet::csi
