#include "kubelet/volume/csi/devices.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "kubelet/volume/block_devices.h"
#include "lib/base/file.h"

namespace keelson::kubelet::csi {

namespace {

Error Ours(const Error& error, const std::string& what) {
  return Error(error.code(), "kubernetes.io/csi: " + what + ": " + error.message());
}

Result<> RemoveDir(const std::string& path) {
  if (::rmdir(path.c_str()) == 0 || errno == ENOENT || errno == ENOTEMPTY) return {};
  return ErrnoError("rmdir " + path);
}

}  // namespace

class Devices::Turn {
 public:
  Turn(Devices& devices, std::string key) : devices_(devices), key_(std::move(key)) {
    MutexLock lock(devices_.mutex_);
    while (!devices_.at_work_.insert(key_).second) devices_.free_.wait(devices_.mutex_);
  }
  ~Turn() {
    MutexLock lock(devices_.mutex_);
    devices_.at_work_.erase(key_);
    devices_.free_.notify_all();
  }

 private:
  Devices& devices_;
  const std::string key_;
};

Result<std::string> Devices::Publish(const VolumeInput& input, std::stop_token stop) {
  const VolumeSource source = SourceOf(input);
  const std::string& uid = input.pod.metadata().uid();
  const DevicePaths where = DevicePathsOf(input.node.paths, input.name(), uid);
  const Turn turn(*this, where.data);
  {
    MutexLock lock(mutex_);
    if (done_.count(where.publish)) return where.publish;
  }
  auto client = drivers_.Client(source.driver);
  if (!client) return Ours(client.error(), "blockMapper.SetUpDevice failed to get CSI client");
  if (auto held = backoff_.Held(where.publish)) return *held;
  {
    MutexLock lock(mutex_);
    done_.erase("-" + where.publish);
  }
  KEELSON_RETURN_IF_ERROR(WriteVolumeData(where.data, DataOf(input, source)));
  KEELSON_RETURN_IF_ERROR(LinkDevice(input.node.paths, {uid, kPluginName, input.name(), where.publish}));
  auto published = backoff_.Note(where.publish, PublishNow(input, source, **client, where, std::move(stop)));
  if (!published) return published.error();
  MutexLock lock(mutex_);
  done_.insert(where.publish);
  return where.publish;
}

Result<> Devices::PublishNow(const VolumeInput& input, const VolumeSource& source, NodeClient& client,
                             const DevicePaths& where, std::stop_token stop) {
  KEELSON_ASSIGN_OR_RETURN(const NodeCapabilities capabilities, client.GetCapabilities(stop));
  KEELSON_ASSIGN_OR_RETURN(const auto driver, objects_.Driver(source.driver));
  auto context = objects_.PublishContext(driver.get(), source, input.node.node_name);
  if (!context) return Ours(context.error(), "blockMapper.SetupDevice failed to get volume attachment");
  bool staged = !capabilities.stage;
  {
    MutexLock lock(mutex_);
    staged = staged || done_.count(where.staging) > 0;
  }
  if (!staged) {
    StageRequest request{source.handle, where.staging, *context, source.attributes, {}, {}};
    KEELSON_ASSIGN_OR_RETURN(request.secrets, objects_.Secret(source.stage_secret, "NodeStageSecretRef"));
    request.capability = BlockCapability(source, capabilities);
    KEELSON_RETURN_IF_ERROR(MakeDirs(where.staging, 0750));
    KEELSON_RETURN_IF_ERROR(client.Stage(request, stop));
    backoff_.Forget("-" + where.staging);
    MutexLock lock(mutex_);
    done_.insert(where.staging);
  }
  PublishRequest request{source.handle,
                         where.publish,
                         capabilities.stage ? where.staging : "",
                         std::move(*context),
                         source.attributes,
                         {},
                         {},
                         source.read_only};
  KEELSON_ASSIGN_OR_RETURN(request.secrets, objects_.Secret(source.publish_secret, "NodePublishSecretRef"));
  request.capability = BlockCapability(source, capabilities);
  KEELSON_RETURN_IF_ERROR(MakeDirs(where.publish_dir, 0750));
  KEELSON_RETURN_IF_ERROR(client.Publish(request, std::move(stop)));
  KEELSON_ASSIGN_OR_RETURN(const FileKind kind, mounter_.disks().KindOf(where.publish));
  if (kind == FileKind::kBlockDevice) return {};
  return Error(Code::kInvalid, "path \"" + where.publish + "\" is not a block device");
}

Result<> Devices::Unpublish(const Paths& paths, const PublishedVolume& volume, std::stop_token stop) {
  const DevicePaths where = DevicePathsOf(paths, volume.name, volume.uid);
  const Turn turn(*this, where.data);
  auto data = ReadVolumeData(where.data);
  if (!data) return Ours(data.error(), "unmapper failed to load volume data file [" + where.data + "]");
  {
    MutexLock lock(mutex_);
    if (!*data || done_.count("-" + where.publish)) return {};
  }
  auto client = drivers_.Client((*data)->driver);
  if (!client) return Ours(client.error(), "blockMapper.UnmapPodDevice failed to get CSI client");
  if (auto held = backoff_.Held("-" + where.publish)) return *held;
  {
    MutexLock lock(mutex_);
    done_.erase(where.publish);
  }
  backoff_.Forget(where.publish);
  auto unpublished = backoff_.Note("-" + where.publish,
                                   (*client)->Unpublish((*data)->handle, where.publish, std::move(stop)));
  if (!unpublished) return Ours(unpublished.error(), "blockMapper.unpublishVolumeForBlock failed");
  MutexLock lock(mutex_);
  done_.insert("-" + where.publish);
  return {};
}

Result<> Devices::Release(const Paths& paths, const PublishedVolume& volume, std::stop_token stop) {
  const DevicePaths where = DevicePathsOf(paths, volume.name, volume.uid);
  const Turn turn(*this, where.data);
  auto data = ReadVolumeData(where.data);
  if (!data) return Ours(data.error(), "unmapper failed to load volume data file [" + where.data + "]");
  if (!*data) return {};
  auto client = drivers_.Client((*data)->driver);
  if (!client) return Ours(client.error(), "blockMapper.TearDownDevice failed to get CSI client");
  if (auto held = backoff_.Held("-" + where.staging)) return *held;
  KEELSON_RETURN_IF_ERROR(
      backoff_.Note("-" + where.staging, UnstageIfUnused(paths, volume, **data, **client, std::move(stop))));
  // Within the turn: the Release of the next pod does not count this link any more.
  return RemoveFile(volume.path);
}

void Devices::ForgetPod(const std::string& uid) {
  MutexLock lock(mutex_);
  std::erase_if(done_, [last = "/" + uid](const std::string& path) { return path.ends_with(last); });
}

Result<> Devices::UnstageIfUnused(const Paths& paths, const PublishedVolume& volume, const VolumeData& data,
                                  NodeClient& client, std::stop_token stop) {
  KEELSON_ASSIGN_OR_RETURN(const auto uids, ListDir(paths.Pods()));
  for (const std::string& uid : uids) {
    if (uid != volume.uid && HasDeviceLink(paths, {uid, kPluginName, volume.name, ""})) return {};
  }
  const DevicePaths where = DevicePathsOf(paths, volume.name, volume.uid);
  {
    MutexLock lock(mutex_);
    done_.erase(where.staging);
  }
  KEELSON_ASSIGN_OR_RETURN(const NodeCapabilities capabilities, client.GetCapabilities(stop));
  if (capabilities.stage && PathExists(where.staging)) {
    auto unstaged = client.Unstage(data.handle, where.staging, std::move(stop));
    if (!unstaged) return Ours(unstaged.error(), "blockMapper.unstageVolumeForBlock failed");
  }
  KEELSON_RETURN_IF_ERROR(RemoveDir(where.staging));
  KEELSON_RETURN_IF_ERROR(RemoveDir(where.publish_dir));
  KEELSON_RETURN_IF_ERROR(RemoveVolumeData(where.data));
  return RemoveDir(where.data.substr(0, where.data.rfind('/')));
}

}  // namespace keelson::kubelet::csi
