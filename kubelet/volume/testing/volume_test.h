// A volume manager on a temporary directory, with its mounts in memory, for tests.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include "kubelet/testing/fake_objects.h"
#include "kubelet/volume/testing/fake_mounter.h"
#include "kubelet/volume/volume_manager.h"
#include "lib/base/file.h"

namespace keelson::kubelet {

class VolumeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/volume_test.XXXXXX";
    dir_ = ::mkdtemp(name);
    node_.paths.root = dir_;
    Use(NewVolumePlugins(mounter_, objects_, clock_));
  }
  void TearDown() override { (void)RemoveTree(dir_); }

  void Use(std::vector<std::unique_ptr<VolumePlugin>> plugins) {
    manager_ = std::make_unique<VolumeManager>(
        mounter_, objects_, std::move(plugins), [this] { return node_object_; }, std::function<void()>(),
        selinux_,
        [this](const corev1::Pod&, const corev1::PersistentVolumeClaim&, const std::string&,
               const std::string& reason,
               const std::string& message) { events_.push_back(reason + ": " + message); });
  }
  // Its container mounts all the volumes.
  corev1::Pod PodWith(const std::string& volumes, const std::string& uid = "u") {
    corev1::Pod pod;
    auto decoded = api::DecodeJson(R"({"metadata":{"name":"p","namespace":"n","labels":{"k":"v"}},
        "spec":{"containers":[{"name":"c"}],"volumes":[)" +
                                       volumes + "]}}",
                                   pod);
    EXPECT_TRUE(decoded) << decoded.error().message();
    pod.mutable_metadata()->set_uid(uid);
    for (const auto& volume : pod.spec().volumes()) {
      pod.mutable_spec()->mutable_containers(0)->add_volume_mounts()->set_name(volume.name());
    }
    return pod;
  }
  std::string Problem(const corev1::Pod& pod) {
    auto mounted = manager_->Mount(pod, node_, {});
    return mounted ? "" : mounted.error().message();
  }
  std::string VolumeDir(const std::string& plugin, const std::string& name, const std::string& uid = "u") {
    return node_.paths.Volume(uid, plugin, name);
  }

  std::string dir_;
  FakeClock clock_;
  FakeMounter mounter_;
  FakeObjects objects_{clock_};
  NodeContext node_;
  std::shared_ptr<const corev1::Node> node_object_;
  SeLinuxSettings selinux_;          // of the next Use()
  std::vector<std::string> events_;  // about growth
  std::unique_ptr<VolumeManager> manager_;
};

}  // namespace keelson::kubelet
