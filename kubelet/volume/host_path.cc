#include <sys/stat.h>

#include <cerrno>

#include "kubelet/volume/plugin.h"
#include "lib/base/file.h"

namespace keelson::kubelet {

namespace {

Result<> Check(const std::string& path, const std::string& type, const char* what, bool right) {
  if (right) return {};
  return Error(Code::kInvalid, "hostPath type check failed: " + path + " is not " + what).Wrap(type);
}

class HostPath : public VolumePlugin {
 public:
  std::string name() const override { return "kubernetes.io/host-path"; }
  bool Supports(const corev1::Volume& volume) const override {
    return volume.volume_source().has_host_path();
  }

  Result<std::string> SetUp(const VolumeInput& input, std::stop_token) override {
    const corev1::HostPathVolumeSource& source = input.volume.volume_source().host_path();
    const std::string &path = source.path(), &type = source.type();
    if (type.empty()) return path;
    struct stat info = {};
    bool exists = ::stat(path.c_str(), &info) == 0;
    if (!exists && errno != ENOENT) return ErrnoError("stat " + path);
    if (!exists && type == "DirectoryOrCreate") {
      RETURN_IF_ERROR(MakeDirs(path));
      return path;
    }
    if (!exists && type == "FileOrCreate") {
      RETURN_IF_ERROR(WriteFile(path, ""));
      return path;
    }
    mode_t mode = exists ? info.st_mode : 0;
    if (type.compare(0, 9, "Directory") == 0)
      RETURN_IF_ERROR(Check(path, type, "a directory", S_ISDIR(mode)));
    else if (type.compare(0, 4, "File") == 0)
      RETURN_IF_ERROR(Check(path, type, "a file", S_ISREG(mode)));
    else if (type == "Socket")
      RETURN_IF_ERROR(Check(path, type, "a socket file", S_ISSOCK(mode)));
    else if (type == "CharDevice")
      RETURN_IF_ERROR(Check(path, type, "a character device", S_ISCHR(mode)));
    else if (type == "BlockDevice")
      RETURN_IF_ERROR(Check(path, type, "a block device", S_ISBLK(mode)));
    else
      return Error(Code::kInvalid, type + " is an invalid volume type");
    return path;
  }
};

}  // namespace

std::unique_ptr<VolumePlugin> NewHostPathPlugin() { return std::make_unique<HostPath>(); }

}  // namespace keelson::kubelet
