#include <sys/stat.h>

#include "kubelet/volume/plugin.h"
#include "lib/api/quantity.h"
#include "lib/base/file.h"

namespace keelson::kubelet {

namespace {

class EmptyDir : public VolumePlugin {
 public:
  explicit EmptyDir(Mounter& mounter) : mounter_(mounter) {}

  std::string name() const override { return "kubernetes.io/empty-dir"; }
  bool Supports(const corev1::Volume& volume) const override {
    return volume.volume_source().has_empty_dir();
  }

  Result<std::string> SetUp(const VolumeInput& input, std::stop_token) override {
    const corev1::EmptyDirVolumeSource& source = input.volume.volume_source().empty_dir();
    std::string path = input.node.paths.Volume(input.pod.metadata().uid(), name(), input.volume.name());
    bool memory = source.medium() == "Memory";
    if (!memory && !source.medium().empty())
      return Error(Code::kUnimplemented, "emptyDir medium \"" + source.medium() + "\" is not supported");
    bool fresh = !PathExists(path);
    if (fresh) RETURN_IF_ERROR(MakeDirs(path));
    if (memory) {
      ASSIGN_OR_RETURN(bool mounted, mounter_.IsMountPoint(path));
      if (!mounted) {
        RETURN_IF_ERROR(mounter_.MountTmpfs(path, SizeOption(source)));
        fresh = true;
      }
    }
    if (!fresh) return path;
    if (::chmod(path.c_str(), 0777) != 0) return ErrnoError("chmod " + path);
    RETURN_IF_ERROR(SetOwnership(path, input.pod, false));
    return path;
  }

 private:
  static std::string SizeOption(const corev1::EmptyDirVolumeSource& source) {
    int64_t bytes = source.has_size_limit() ? api::Amount::Of(source.size_limit()).Value() : 0;
    return bytes > 0 ? "size=" + std::to_string(bytes) : std::string();
  }

  Mounter& mounter_;
};

}  // namespace

std::unique_ptr<VolumePlugin> NewEmptyDirPlugin(Mounter& mounter) {
  return std::make_unique<EmptyDir>(mounter);
}

}  // namespace keelson::kubelet
