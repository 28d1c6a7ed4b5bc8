#include <sys/stat.h>

#include <algorithm>

#include "kubelet/volume/plugin.h"
#include "lib/api/quantity.h"
#include "lib/base/file.h"
#include "lib/k8s/pods/pod_resources.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {

namespace {

constexpr char kMemory[] = "Memory", kHugePages[] = "HugePages";
constexpr size_t kHugePrefix = sizeof("hugepages-") - 1;

// The least of what the node has, the pod may use and the volume asks for; 0: the kernel's default.
int64_t TmpfsSize(const VolumeInput& input, const corev1::EmptyDirVolumeSource& source) {
  int64_t own = source.has_size_limit() ? api::Amount::Of(source.size_limit()).Value() : 0;
  int64_t node = k8s::AmountOf(input.node.allocatable, "memory").Value();
  if (node <= 0) return own;
  int64_t pod = k8s::AmountOf(k8s::PodLimits(input.pod), "memory").Value();
  int64_t size = node;
  for (int64_t bound : {pod, own}) {
    if (bound > 0) size = std::min(size, bound);
  }
  return size;
}

// The page size to mount with: the medium's own, or the only one that containers ask for.
Result<std::string> PageSize(const corev1::Pod& pod, const std::string& medium) {
  std::optional<api::Amount> wanted, found;
  if (medium != kHugePages) {
    KEELSON_ASSIGN_OR_RETURN(wanted, api::Amount::Parse(medium.substr(kHugePrefix)));
  }
  bool several = false;
  auto look = [&](const k8s::QuantityMap& requests) {
    for (const auto& [name, amount] : requests) {
      if (!k8s::IsHugePages(name)) continue;
      auto size = api::Amount::Parse(name.substr(kHugePrefix));
      if (!size || (wanted && *size != *wanted)) continue;
      several = several || (found && *found != *size);
      found = *size;
    }
  };
  look(pod.spec().resources().requests());
  k8s::ForEachContainer(pod.spec(),
                        [&](const corev1::Container& item) { look(item.resources().requests()); });
  if (several) {
    return Error(Code::kInvalid,
                 "medium: " + medium + " can't be used if container requests multiple huge page sizes");
  }
  if (!found) {
    return Error(Code::kInvalid,
                 "medium " + medium +
                     ": hugePages storage requested, but there is no resource request for huge pages");
  }
  return found->ToString();
}

class EmptyDir : public VolumePlugin {
 public:
  explicit EmptyDir(Mounter& mounter) : mounter_(mounter) {}

  std::string name() const override { return "kubernetes.io/empty-dir"; }
  bool Supports(const VolumeInput& input) const override {
    return input.volume.volume_source().has_empty_dir();
  }

  Result<std::string> SetUp(const VolumeInput& input, std::stop_token stop) override {
    const corev1::EmptyDirVolumeSource& source = input.volume.volume_source().empty_dir();
    const std::string& uid = input.pod.metadata().uid();
    std::string path = input.node.paths.Volume(uid, name(), input.volume.name());
    // Says that all was done once: what the containers have made of the directory since is theirs.
    std::string ready = input.node.paths.PluginData(uid, name(), input.volume.name()) + "/ready";
    bool mounts = !source.medium().empty();
    KEELSON_ASSIGN_OR_RETURN(bool mounted, mounter_.IsMountPoint(path));
    if (PathExists(ready) && PathExists(path) && (mounted || !mounts)) return path;
    KEELSON_RETURN_IF_ERROR(MakeDirs(path));
    if (mounts && !mounted) KEELSON_RETURN_IF_ERROR(Mount(input, source, path, stop));
    const mode_t mode = source.medium() == kMemory ? kMemoryMode : kDiskMode;
    if (::chmod(path.c_str(), mode) != 0) return ErrnoError("chmod " + path);
    KEELSON_RETURN_IF_ERROR(SetOwnership(path, input.pod, false));
    KEELSON_RETURN_IF_ERROR(MakeDirs(ready.substr(0, ready.rfind('/')), 0750));
    KEELSON_RETURN_IF_ERROR(WriteFile(ready, ""));
    return path;
  }

 private:
  Result<> Mount(const VolumeInput& input, const corev1::EmptyDirVolumeSource& source,
                 const std::string& path, std::stop_token stop) {
    const std::string& medium = source.medium();
    if (medium == kMemory) {
      int64_t size = TmpfsSize(input, source);
      return mounter_.MountTmpfs(path, size > 0 ? "size=" + std::to_string(size) : std::string());
    }
    if (medium.compare(0, sizeof(kHugePages) - 1, kHugePages) != 0) {
      return Error(Code::kInvalid, "unknown storage medium \"" + medium + "\"");
    }
    KEELSON_ASSIGN_OR_RETURN(std::string size, PageSize(input.pod, medium));
    // The kernel reads "2M"; Kubernetes writes "2Mi".
    if (!size.empty() && size.back() == 'i') size.pop_back();
    return mounter_.Mount("nodev", path, "hugetlbfs", {"pagesize=" + size}, stop);
  }

  Mounter& mounter_;
};

}  // namespace

std::unique_ptr<VolumePlugin> NewEmptyDirPlugin(Mounter& mounter) {
  return std::make_unique<EmptyDir>(mounter);
}

}  // namespace keelson::kubelet
