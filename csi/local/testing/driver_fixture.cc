#include "csi/local/testing/driver_fixture.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>

#include <chrono>

#include "csi/local/host/image.h"
#include "lib/base/file.h"
#include "lib/linux/mount.h"

namespace keelson::csi::local {

using grpc::StatusCode;

void DriverFixture::SetUp() {
  // Mounts that others see, they may copy into namespaces of their own, where an unmount here does not reach them: the
  // device would stay in use.
  ASSERT_EQ(::unshare(CLONE_NEWNS), 0) << "needs root";
  ASSERT_EQ(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
  char name[] = "/var/tmp/csi_local.XXXXXX";
  dir_ = ::mkdtemp(name);
  ASSERT_TRUE(MakeDirs(dir_ + "/pods"));
  ASSERT_TRUE(MakeDirs(dir_ + "/staging"));
}

void DriverFixture::TearDown() {
  if (driver_) Stop();
  // A device of a file on one of these mounts keeps the mount.
  for (const std::string& point : Mounts()) (void)linux::Unmount(point);
  for (const linux::LoopDevice& loop : Loops()) EXPECT_TRUE(linux::DetachLoop(loop.path));
  for (const std::string& point : Mounts()) EXPECT_TRUE(linux::Unmount(point));
  if (HasFailure()) ADD_FAILURE() << Log();
  EXPECT_TRUE(RemoveTree(dir_));
}

std::vector<std::string> DriverFixture::Command(const std::vector<std::string>& flags) const {
  std::vector<std::string> argv = {KEELSON_CSI_LOCAL, "--csi-endpoint=unix://" + dir_ + "/csi.sock",
                                   "--node-id=node1", "--data-dir=" + dir_ + "/data"};
  argv.insert(argv.end(), flags.begin(), flags.end());
  return argv;
}

void DriverFixture::Start(const std::vector<std::string>& flags) {
  event::ProcessOptions options;
  options.argv = Command(flags);
  options.output_file = dir_ + "/log";
  auto process = event::Process::Start(options);
  ASSERT_TRUE(process) << process.error().message();
  driver_.emplace(std::move(*process));
  AwaitReady();
}

void DriverFixture::AwaitReady() {
  Connect();
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  v1::ProbeResponse reply;
  const grpc::Status status = identity_->Probe(&context, {}, &reply);
  ASSERT_TRUE(status.ok()) << status.error_message() << "\n" << Log();
  ASSERT_TRUE(reply.ready().value());
}

void DriverFixture::Connect() {
  // A connection of its own, that is tried again at once: the driver is killed and started often.
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  for (const char* backoff : {GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, GRPC_ARG_MIN_RECONNECT_BACKOFF_MS,
                              GRPC_ARG_MAX_RECONNECT_BACKOFF_MS}) {
    arguments.SetInt(backoff, 20);
  }
  auto channel =
      grpc::CreateCustomChannel("unix:" + dir_ + "/csi.sock", grpc::InsecureChannelCredentials(), arguments);
  identity_ = v1::Identity::NewStub(channel);
  controller_ = v1::Controller::NewStub(channel);
  group_controller_ = v1::GroupController::NewStub(channel);
  node_ = v1::Node::NewStub(channel);
}

void DriverFixture::Stop() {
  // The driver waits for clients that stay connected.
  identity_.reset();
  controller_.reset();
  group_controller_.reset();
  node_.reset();
  auto end = driver_->Terminate(std::chrono::seconds(20));
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->ok()) << end->ToString() << "\n" << Log();
  driver_.reset();
}

void DriverFixture::Kill() {
  ASSERT_TRUE(driver_->Signal(SIGKILL));
  ASSERT_TRUE(driver_->Wait({}));
  driver_.reset();
}

std::string DriverFixture::Log() const { return ReadFile(dir_ + "/log").value_or(""); }

v1::VolumeCapability DriverFixture::Mount(const std::string& type) {
  v1::VolumeCapability capability;
  capability.mutable_mount()->set_fs_type(type);
  capability.mutable_access_mode()->set_mode(v1::VolumeCapability::AccessMode::SINGLE_NODE_WRITER);
  return capability;
}

v1::VolumeCapability DriverFixture::Block() {
  v1::VolumeCapability capability = Mount();
  capability.mutable_block();
  return capability;
}

v1::CreateVolumeRequest DriverFixture::VolumeRequest(const std::string& name, int64_t bytes,
                                                     const v1::VolumeCapability& capability) {
  v1::CreateVolumeRequest request;
  request.set_name(name);
  *request.add_volume_capabilities() = capability;
  request.mutable_capacity_range()->set_required_bytes(bytes);
  return request;
}

v1::NodeStageVolumeRequest DriverFixture::StageRequest(const std::string& id,
                                                       const v1::VolumeCapability& capability) const {
  v1::NodeStageVolumeRequest request;
  request.set_volume_id(id);
  request.set_staging_target_path(Staging(id));
  *request.mutable_volume_capability() = capability;
  return request;
}

v1::NodePublishVolumeRequest DriverFixture::PublishRequest(const std::string& id,
                                                           const v1::VolumeCapability& capability,
                                                           const std::string& target) const {
  v1::NodePublishVolumeRequest request;
  request.set_volume_id(id);
  request.set_staging_target_path(Staging(id));
  request.set_target_path(Target(target));
  *request.mutable_volume_capability() = capability;
  return request;
}

std::string DriverFixture::CreateVolume(const std::string& name, int64_t bytes,
                                        const v1::VolumeCapability& capability) {
  auto answer = Call(&v1::Controller::Stub::CreateVolume, VolumeRequest(name, bytes, capability));
  EXPECT_EQ(answer.code, StatusCode::OK) << answer.message;
  return answer.reply.volume().volume_id();
}

std::string DriverFixture::CreateSnapshot(const std::string& name, const std::string& volume) {
  v1::CreateSnapshotRequest request;
  request.set_name(name);
  request.set_source_volume_id(volume);
  auto answer = Call(&v1::Controller::Stub::CreateSnapshot, request);
  EXPECT_EQ(answer.code, StatusCode::OK) << answer.message;
  return answer.reply.snapshot().snapshot_id();
}

void DriverFixture::Stage(const std::string& id, const v1::VolumeCapability& capability) {
  auto answer = Call(&v1::Node::Stub::NodeStageVolume, StageRequest(id, capability));
  EXPECT_EQ(answer.code, StatusCode::OK) << answer.message;
}

void DriverFixture::Publish(const std::string& id, const v1::VolumeCapability& capability,
                            const std::string& target) {
  auto answer = Call(&v1::Node::Stub::NodePublishVolume, PublishRequest(id, capability, target));
  EXPECT_EQ(answer.code, StatusCode::OK) << answer.message;
}

void DriverFixture::Unpublish(const std::string& id, const std::string& target) {
  v1::NodeUnpublishVolumeRequest request;
  request.set_volume_id(id);
  request.set_target_path(Target(target));
  auto answer = Call(&v1::Node::Stub::NodeUnpublishVolume, request);
  EXPECT_EQ(answer.code, StatusCode::OK) << answer.message;
}

void DriverFixture::Unstage(const std::string& id) {
  v1::NodeUnstageVolumeRequest request;
  request.set_volume_id(id);
  request.set_staging_target_path(Staging(id));
  auto answer = Call(&v1::Node::Stub::NodeUnstageVolume, request);
  EXPECT_EQ(answer.code, StatusCode::OK) << answer.message;
}

void DriverFixture::DeleteVolume(const std::string& id) {
  v1::DeleteVolumeRequest request;
  request.set_volume_id(id);
  auto answer = Call(&v1::Controller::Stub::DeleteVolume, request);
  EXPECT_EQ(answer.code, StatusCode::OK) << answer.message;
}

void DriverFixture::DeleteSnapshot(const std::string& id) {
  v1::DeleteSnapshotRequest request;
  request.set_snapshot_id(id);
  auto answer = Call(&v1::Controller::Stub::DeleteSnapshot, request);
  EXPECT_EQ(answer.code, StatusCode::OK) << answer.message;
}

std::string DriverFixture::Staging(const std::string& id) const {
  std::string path = dir_ + "/staging/" + (id.empty() ? "none" : id);
  EXPECT_TRUE(MakeDirs(path));
  return path;
}

std::vector<std::string> DriverFixture::Mounts() const {
  return linux::MountPointsUnder(dir_).value_or(std::vector<std::string>());
}

std::vector<linux::LoopDevice> DriverFixture::Loops() const {
  std::vector<linux::LoopDevice> loops = linux::ListLoopDevices().value_or(std::vector<linux::LoopDevice>());
  std::erase_if(loops,
                [&](const auto& loop) { return loop.file.compare(0, dir_.size() + 1, dir_ + "/") != 0; });
  return loops;
}

std::vector<std::string> DriverFixture::Files(const std::string& folder) const {
  return ListDir(dir_ + "/data/" + folder).value_or(std::vector<std::string>());
}

}  // namespace keelson::csi::local
