// A whole kubelet with keelson-csi-local: real devices, file systems and mounts; containers are stand-ins.
#include <gmock/gmock.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>

#include <fstream>
#include <thread>

#include <grpcpp/grpcpp.h>

#include "kubelet/cri/testing/fake_runtime.h"
#include "kubelet/testing/cgroup_names.h"
#include "kubelet/testing/kubelet_harness.h"
#include "lib/api/codec/codec.h"
#include "lib/api/proto/storage_v1.pb.h"
#include "lib/base/file.h"
#include "lib/event/process.h"
#include "lib/linux/mount.h"
#include "lib/rpc/channel.h"
#include "lib/rpc/proto/csi.grpc.pb.h"

namespace keelson::kubelet {
namespace {

namespace storagev1 = api::storage::v1;
namespace wire = ::csi::v1;
using ::testing::SizeIs;

constexpr char kNode[] = "node-under-test";
constexpr int64_t kSize = int64_t{64} << 20;

class CsiLocalTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // A copy of its mounts in another test's namespace would keep the device in use.
    ASSERT_EQ(::unshare(CLONE_NEWNS), 0) << "needs root";
    ASSERT_EQ(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
    char name[] = "/var/tmp/kubelet_csi.XXXXXX";
    dir_ = ::mkdtemp(name);
    ASSERT_TRUE(MakeDirs(dir_ + "/kubelet/plugins_registry"));
    mounter_ = NewMounter();
    harness_ = std::make_unique<KubeletHarness>(runtime_, runtime_, cgroups_, *mounter_, dir_, "10.7.0.1");
    runtime_.AddImage("img:1");
    harness_->ManageResources();
    StartDriver();
    Put<storagev1::CSIDriver>(R"({"metadata":{"name":"local.csi.keelson.dev"},
        "spec":{"attachRequired":false,"fsGroupPolicy":"File","podInfoOnMount":true,"volumeLifecycleModes":["Persistent","Ephemeral"]}})");
  }
  void TearDown() override {
    harness_.reset();
    if (driver_) StopDriver();
    for (const std::string& point : MountPoints()) (void)linux::Unmount(point);
    EXPECT_TRUE(RemoveTree(dir_));
  }

  void StartDriver() {
    event::ProcessOptions options;
    options.argv = {KEELSON_CSI_LOCAL, "--csi-endpoint=unix://" + dir_ + "/csi.sock",
                    "--node-id=" + std::string(kNode), "--data-dir=" + dir_ + "/data",
                    "--kubelet-registration-dir=" + dir_ + "/kubelet/plugins_registry"};
    options.output_file = dir_ + "/log";
    auto process = event::Process::Start(options);
    ASSERT_TRUE(process) << process.error().message();
    driver_.emplace(std::move(*process));
    const auto channel = rpc::UnixChannel(dir_ + "/csi.sock");
    controller_ = wire::Controller::NewStub(channel);
    ASSERT_TRUE(rpc::AwaitConnected(*channel, std::chrono::seconds(30)));
  }
  void StopDriver() {
    EXPECT_TRUE(driver_->Signal(SIGTERM));
    EXPECT_TRUE(driver_->Wait({}));
    driver_.reset();
  }

  template <typename T>
  void Put(const std::string& json) {
    T object;
    ASSERT_TRUE(api::DecodeJson(json, object));
    harness_->fake_api().Put(object);
  }
  // A volume, and the claim c that is bound to it.
  void CreateVolume() {
    wire::CreateVolumeRequest request;
    request.set_name("pv-1");
    request.mutable_capacity_range()->set_required_bytes(kSize);
    wire::VolumeCapability& capability = *request.add_volume_capabilities();
    capability.mutable_mount();
    capability.mutable_access_mode()->set_mode(wire::VolumeCapability::AccessMode::SINGLE_NODE_WRITER);
    rpc::Call call(std::chrono::seconds(30));
    wire::CreateVolumeResponse reply;
    const Result<> created =
        call.Done(controller_->CreateVolume(call.context(), request, &reply), "create volume");
    ASSERT_TRUE(created) << created.error().message();
    volume_ = reply.volume().volume_id();
    Put<corev1::PersistentVolume>(R"({"metadata":{"name":"pv-1"},"spec":{"capacity":{"storage":"64Mi"},
        "accessModes":["ReadWriteOnce"],"claimRef":{"uid":"cu"},
        "csi":{"driver":"local.csi.keelson.dev","volumeHandle":")" +
                                  volume_ + R"("}}})");
    Put<corev1::PersistentVolumeClaim>(R"({"metadata":{"name":"c","namespace":"default","uid":"cu"},
        "spec":{"volumeName":"pv-1"},"status":{"phase":"Bound","capacity":{"storage":"64Mi"}}})");
  }
  Result<> DeleteVolume() {
    rpc::Call call(std::chrono::seconds(30));
    wire::DeleteVolumeRequest request;
    wire::DeleteVolumeResponse reply;
    request.set_volume_id(volume_);
    return call.Done(controller_->DeleteVolume(call.context(), request, &reply), "delete volume");
  }
  void AwaitRegistered() {
    while (true) {
      auto object = harness_->api().Get<storagev1::CSINode>("", kNode);
      if (object && object->spec().drivers_size() == 1) return;
      std::this_thread::yield();
    }
  }
  // Creates a pod, and returns where its volume is once it runs.
  std::string RunPod(const std::string& name) {
    harness_->Create(R"({"metadata":{"name":")" + name +
                     R"("},"spec":{"securityContext":{"fsGroup":4711},"containers":[{"name":"main",
        "image":"img:1","volumeMounts":[{"name":"data","mountPath":"/data"}]}],
        "volumes":[{"name":"data","persistentVolumeClaim":{"claimName":"c"}}]}})");
    EXPECT_TRUE(harness_->Await(name, IsPodReady));
    const auto pod = harness_->api().Get<corev1::Pod>("default", name);
    EXPECT_TRUE(pod);
    if (!pod) return "";
    return dir_ + "/kubelet/pods/" + pod->metadata().uid() + "/volumes/kubernetes.io~csi/pv-1/mount";
  }
  void DeletePod(const std::string& name) {
    harness_->Delete(name, 1);
    ASSERT_TRUE(harness_->Await(name, [](const corev1::Pod* pod) { return pod == nullptr; }));
  }
  std::vector<std::string> MountPoints() {
    auto points = linux::MountPointsUnder(dir_);
    EXPECT_TRUE(points);
    return points ? *points : std::vector<std::string>();
  }

  std::string dir_, volume_;
  cri::FakeRuntime runtime_;
  CgroupNames cgroups_;
  std::unique_ptr<Mounter> mounter_;
  std::unique_ptr<KubeletHarness> harness_;
  std::optional<event::Process> driver_;
  std::unique_ptr<wire::Controller::Stub> controller_;
};

TEST_F(CsiLocalTest, DataOutlivesPodsKubeletAndDriver) {
  CreateVolume();
  harness_->Start();
  AwaitRegistered();
  const std::string first = RunPod("first");
  EXPECT_THAT(MountPoints(), SizeIs(2)) << "staged, and published";
  EXPECT_THAT(MountPoints(), ::testing::Contains(first));
  struct stat root {};
  ASSERT_EQ(::stat(first.c_str(), &root), 0);
  EXPECT_EQ(root.st_gid, 4711u) << "the pod's fsGroup";
  std::ofstream(first + "/kept") << "data\n";
  const Result<> in_use = DeleteVolume();
  ASSERT_FALSE(in_use);
  EXPECT_TRUE(in_use.error().Is(Code::kConflict)) << in_use.error().message();

  // Neither the kubelet nor the driver is missed by the mounts.
  harness_->Stop();
  StopDriver();
  EXPECT_THAT(MountPoints(), SizeIs(2));
  StartDriver();
  harness_->Start();
  AwaitRegistered();
  DeletePod("first");

  const std::string second = RunPod("second");
  EXPECT_NE(first, second);
  EXPECT_EQ(*ReadFile(second + "/kept"), "data\n");
  DeletePod("second");
  while (!MountPoints().empty()) std::this_thread::yield();  // unstaged once no pod wants it
  EXPECT_TRUE(DeleteVolume());
}

}  // namespace
}  // namespace keelson::kubelet
