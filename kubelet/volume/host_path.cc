#include <sys/stat.h>

#include <cerrno>

#include "kubelet/volume/block_devices.h"
#include "kubelet/volume/plugin.h"
#include "lib/base/file.h"

namespace keelson::kubelet {

namespace {

struct Kind {
  const char *type, *what;
  mode_t mode;
  bool create;
};
constexpr Kind kKinds[] = {
    {"DirectoryOrCreate", "a directory", S_IFDIR, true}, {"Directory", "a directory", S_IFDIR, false},
    {"FileOrCreate", "a file", S_IFREG, true},           {"File", "a file", S_IFREG, false},
    {"Socket", "a socket file", S_IFSOCK, false},        {"CharDevice", "a character device", S_IFCHR, false},
    {"BlockDevice", "a block device", S_IFBLK, false}};

Result<> CheckType(const std::string& path, const std::string& type) {
  if (type.empty()) return {};
  for (const Kind& kind : kKinds) {
    if (type != kind.type) continue;
    struct stat info = {};
    bool exists = ::stat(path.c_str(), &info) == 0;
    if (!exists && kind.create) return kind.mode == S_IFDIR ? MakeDirs(path) : WriteFile(path, "");
    if (exists && (info.st_mode & S_IFMT) == kind.mode) return {};
    return Error(Code::kInvalid, "hostPath type check failed: " + path + " is not " + kind.what);
  }
  return Error(Code::kInvalid, type + " is an invalid volume type");
}

// In the pod's spec, or behind a claim.
class HostPath : public VolumePlugin {
 public:
  std::string name() const override { return "kubernetes.io/host-path"; }
  bool Supports(const VolumeInput& input) const override {
    return input.persistent ? input.source().has_host_path() : input.volume.volume_source().has_host_path();
  }
  bool MayRelabel() const override { return false; }
  bool TakesMountOptions() const override { return false; }

  Result<std::string> Device(const VolumeInput& input, std::stop_token) override {
    const std::string& device = input.source().host_path().path();
    KEELSON_RETURN_IF_ERROR(CheckBlockDevice(device));
    return device;
  }

  Result<std::string> SetUp(const VolumeInput& input, std::stop_token) override {
    const corev1::HostPathVolumeSource& source =
        input.persistent ? input.source().host_path() : input.volume.volume_source().host_path();
    KEELSON_RETURN_IF_ERROR(CheckType(source.path(), source.type()));
    return source.path();
  }
};

}  // namespace

std::unique_ptr<VolumePlugin> NewHostPathPlugin() { return std::make_unique<HostPath>(); }

}  // namespace keelson::kubelet
