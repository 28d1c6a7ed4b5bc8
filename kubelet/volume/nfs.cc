#include "kubelet/volume/plugin.h"
#include "lib/base/file.h"

namespace keelson::kubelet {

namespace {

// Mounted by mount(8) and its helper mount.nfs, once a pod.
class Nfs : public VolumePlugin {
 public:
  explicit Nfs(Mounter& mounter) : mounter_(mounter) {}

  std::string name() const override { return "kubernetes.io/nfs"; }
  bool Supports(const VolumeInput& input) const override {
    return input.persistent ? input.source().has_nfs() : input.volume.volume_source().has_nfs();
  }
  bool MayRelabel() const override { return false; }

  Result<std::string> SetUp(const VolumeInput& input, std::stop_token stop) override {
    const corev1::NFSVolumeSource& source =
        input.persistent ? input.source().nfs() : input.volume.volume_source().nfs();
    std::string path = input.node.paths.Volume(input.pod.metadata().uid(), name(), input.name());
    // Each sync of the pod comes here: it must not wait for a server that is away.
    KEELSON_ASSIGN_OR_RETURN(const bool mounted, IsMounted(path));
    if (mounted) return path;
    KEELSON_RETURN_IF_ERROR(MakeDirs(path, 0750));
    std::vector<std::string> options;
    if (source.read_only() || input.read_only) options.push_back("ro");
    if (input.persistent) {
      for (const std::string& option : input.persistent->spec().mount_options()) options.push_back(option);
    }
    const std::string& server = source.server();
    bool ipv6 = server.find(':') != std::string::npos && server[0] != '[';
    std::string from = (ipv6 ? "[" + server + "]" : server) + ":" + source.path();
    KEELSON_RETURN_IF_ERROR(mounter_.Mount(from, path, "nfs", options, stop));
    return path;
  }

  Result<> TearDown(const PublishedVolume& published, std::stop_token stop) override {
    KEELSON_ASSIGN_OR_RETURN(const bool mounted, IsMounted(published.path));
    return mounted ? mounter_.UnmountRemote(published.path, stop) : Result<>();
  }

 private:
  Result<bool> IsMounted(const std::string& path) {
    KEELSON_ASSIGN_OR_RETURN(auto points, mounter_.MountPointsUnder(path));
    return !points.empty();
  }

  Mounter& mounter_;
};

}  // namespace

std::unique_ptr<VolumePlugin> NewNfsPlugin(Mounter& mounter) { return std::make_unique<Nfs>(mounter); }

}  // namespace keelson::kubelet
