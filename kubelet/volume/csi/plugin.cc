#include "kubelet/volume/csi/plugin.h"

#include "kubelet/volume/claim.h"
#include "kubelet/volume/csi/devices.h"
#include "kubelet/volume/csi/mounts.h"
#include "lib/api/quantity.h"

namespace keelson::kubelet::csi {

namespace {

int64_t CapacityOf(const corev1::PersistentVolume& volume) {
  auto it = volume.spec().capacity().find("storage");
  return it == volume.spec().capacity().end() ? 0 : api::Amount::Of(it->second).Value();
}

class Plugin : public VolumePlugin {
 public:
  Plugin(Mounter& mounter, ObjectSource& objects, Drivers& drivers, Clock& clock,
         std::function<void(const std::string& driver)> exhausted)
      : drivers_(drivers),
        exhausted_(std::move(exhausted)),
        objects_(objects, clock),
        mounts_(mounter, drivers, objects_, clock),
        devices_(mounter, drivers, objects_, clock),
        backoff_(clock) {}

  std::string name() const override { return kPluginName; }
  bool Supports(const VolumeInput& input) const override {
    return input.persistent ? input.source().has_csi() : input.volume.volume_source().has_csi();
  }

  std::string AttachName(const VolumeInput& input) const override {
    const VolumeSource source = SourceOf(input);
    const auto driver = objects_.Driver(source.driver);
    // As long as it is not known whether the driver attaches, the volume waits for that.
    if (!NeedsAttaching(driver ? driver->get() : nullptr, source)) return "";
    return csi::AttachName(source.driver, source.handle);
  }
  std::string NameInUse(const VolumeInput& input) const override {
    const VolumeSource source = SourceOf(input);
    return source.ephemeral ? "" : csi::AttachName(source.driver, source.handle);
  }
  std::string FindAttachName(const Paths& paths, const PublishedVolume& volume, bool device) const override {
    const auto data =
        ReadVolumeData(device ? DevicePathsOf(paths, volume.name, volume.uid).data : volume.path);
    if (!data || !*data || (*data)->ephemeral) return "";
    return csi::AttachName((*data)->driver, (*data)->handle);
  }

  bool ExceedsAttachLimit(const VolumeInput& input) override {
    const VolumeSource source = SourceOf(input);
    if (!objects_.IsExhausted(source, input.node.node_name)) return false;
    if (exhausted_) exhausted_(source.driver);
    return true;
  }

  std::string StagePath(const VolumeInput& input) const override {
    const VolumeSource source = SourceOf(input);
    return source.ephemeral ? "" : StagingPath(input.node.paths, source.driver, source.handle);
  }
  Result<> Stage(const VolumeInput& input, std::stop_token stop) override {
    return mounts_.Stage(input, std::move(stop));
  }
  Result<std::string> SetUp(const VolumeInput& input, std::stop_token stop) override {
    return mounts_.Publish(input, std::move(stop));
  }
  std::string Reconstruct(const Paths& paths, const PublishedVolume& volume) const override {
    const auto data = ReadVolumeData(volume.path);
    if (!data || !*data || (*data)->ephemeral) return "";
    return StagingPath(paths, (*data)->driver, (*data)->handle);
  }
  Result<> TearDown(const PublishedVolume& volume, std::stop_token stop) override {
    return mounts_.Unpublish(volume.path, std::move(stop));
  }
  Result<> Unstage(const std::string& stage_path, std::stop_token stop) override {
    return mounts_.Unstage(stage_path, std::move(stop));
  }

  Result<std::string> Device(const VolumeInput& input, std::stop_token stop) override {
    return devices_.Publish(input, std::move(stop));
  }
  Result<> UnmapDevice(const Paths& paths, const PublishedVolume& volume, std::stop_token stop) override {
    return devices_.Unpublish(paths, volume, std::move(stop));
  }
  Result<> ReleaseDevice(const Paths& paths, const PublishedVolume& volume, std::stop_token stop) override {
    return devices_.Release(paths, volume, std::move(stop));
  }

  // Volumes of a driver that does not grow them on nodes are as large as its controller made them.
  bool Expands(const VolumeInput& input) const override {
    if (!input.persistent) return false;
    auto client = drivers_.Client(SourceOf(input).driver);
    if (!client) return true;
    const auto capabilities = (*client)->GetCapabilities({});
    return !capabilities || capabilities->expand;
  }
  Result<> Expand(const VolumeInput& input, const std::string& path, std::stop_token stop) override {
    auto held = backoff_.Held(path);
    auto expanded = held ? Result<>(*held) : backoff_.Note(path, ExpandNow(input, path, std::move(stop)));
    return expanded ? expanded : expanded.error().Wrap("Expander.NodeExpand failed to expand the volume ");
  }

  Result<bool> TakesSeLinuxLabel(const VolumeInput& input) override {
    KEELSON_ASSIGN_OR_RETURN(const auto driver, objects_.Driver(SourceOf(input).driver));
    return driver && driver->spec().se_linux_mount();
  }

  bool Measures() const override { return true; }
  Result<VolumeMetrics> Measure(const PublishedVolume& volume, std::stop_token stop) override {
    KEELSON_ASSIGN_OR_RETURN(const auto data, ReadVolumeData(volume.path));
    if (!data) return Error(Code::kNotFound, "no volume is published at " + volume.path);
    KEELSON_ASSIGN_OR_RETURN(auto client, drivers_.Client(data->driver));
    KEELSON_ASSIGN_OR_RETURN(const NodeCapabilities capabilities, client->GetCapabilities(stop));
    if (!capabilities.stats) {
      return Error(Code::kUnimplemented, "CSI driver " + data->driver + " does not support volume stats");
    }
    KEELSON_ASSIGN_OR_RETURN(VolumeStats stats,
                             client->GetStats(data->handle, volume.path + "/mount", std::move(stop)));
    VolumeMetrics out;
    const Usage bytes = stats.bytes.value_or(Usage()), inodes = stats.inodes.value_or(Usage());
    out.capacity = bytes.total;
    out.available = bytes.available;
    out.used = bytes.used;
    out.inodes = inodes.total;
    out.inodes_free = inodes.available;
    out.inodes_used = inodes.used;
    if (stats.condition && capabilities.condition) {
      out.abnormal = stats.condition->abnormal;
      out.condition = stats.condition->message;
    }
    return out;
  }

  void ForgetPod(const std::string& uid) override {
    objects_.ForgetPod(uid);
    mounts_.ForgetPod(uid);
    devices_.ForgetPod(uid);
  }

 private:
  Result<> ExpandNow(const VolumeInput& input, const std::string& path, std::stop_token stop) {
    const VolumeSource source = SourceOf(input);
    KEELSON_ASSIGN_OR_RETURN(auto client, drivers_.Client(source.driver));
    const auto capabilities = client->GetCapabilities(stop);
    // Nothing has been asked of the driver yet.
    if (!capabilities) return Error(Code::kUnavailable, capabilities.error().message());
    ExpandRequest request;
    request.volume_id = source.handle;
    request.bytes = CapacityOf(*input.persistent);
    KEELSON_ASSIGN_OR_RETURN(request.secrets, objects_.Secret(source.expand_secret, "NodeExpandSecretRef"));
    if (IsBlock(input)) {
      const DevicePaths where = DevicePathsOf(input.node.paths, input.name(), input.pod.metadata().uid());
      request.volume_path = where.publish;
      if (capabilities->stage) request.staging_path = where.staging;
      request.capability = BlockCapability(source, *capabilities);
    } else {
      request.volume_path = path;
      if (capabilities->stage) {
        request.staging_path = StagingPath(input.node.paths, source.driver, source.handle);
      }
      request.capability = MountCapability(source, *capabilities, input.pod);
      request.capability.group.reset();
    }
    return client->Expand(request, std::move(stop));
  }

  Drivers& drivers_;
  const std::function<void(const std::string& driver)> exhausted_;
  mutable VolumeObjects objects_;
  Mounts mounts_;
  Devices devices_;
  OperationBackoff backoff_;  // of growth
};

}  // namespace

std::unique_ptr<VolumePlugin> NewPlugin(Mounter& mounter, ObjectSource& objects, Drivers& drivers,
                                        Clock& clock,
                                        std::function<void(const std::string& driver)> exhausted) {
  return std::make_unique<Plugin>(mounter, objects, drivers, clock, std::move(exhausted));
}

}  // namespace keelson::kubelet::csi
