// A kubelet on its own containerd and the real kernel; only the API server is in memory.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kubelet/cri/grpc_runtime.h"
#include "kubelet/node/oom_victims.h"
#include "kubelet/testing/containerd.h"
#include "kubelet/testing/kubelet_harness.h"
#include "lib/api/codec/codec.h"
#include "lib/base/file.h"
#include "lib/base/mutex.h"
#include "lib/base/testing/eventually.h"
#include "lib/linux/mount.h"

namespace keelson::kubelet {

class ContainerdTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::string missing = Containerd::Missing(); !missing.empty()) GTEST_SKIP() << missing;
    auto cgroups = linux::Cgroups::Detect();
    if (!cgroups) GTEST_SKIP() << cgroups.error().message();
    char name[] = "/tmp/kubelet_containerd.XXXXXX";
    dir_ = ::mkdtemp(name);
    ASSERT_EQ(::chmod(dir_.c_str(), 0755), 0);  // users of pods' own namespaces pass through it
    root_ = "/keelson-test-" + std::to_string(::getpid());
    linux_cgroups_.emplace(*cgroups);
    auto started = Containerd::Start(dir_, Systemd());
    ASSERT_TRUE(started) << started.error().message();
    containerd_ = std::move(*started);
    cri_ = cri::NewGrpcServices({containerd_->socket(), "", std::chrono::seconds(120),
                                 [this](const std::string& id) { return oom_victims_.Has(id); }});
    cgroups_ = MakeCgroups(*cgroups);
    mounter_ = NewMounter();
    harness_ = std::make_unique<KubeletHarness>(*cri_.runtime, *cri_.images, *cgroups_, *mounter_, dir_,
                                                "10.213.0.1");
    harness_->set_cgroup_v2(cgroups->unified());
    Configure(harness_->settings());
    harness_->Start();
  }
  void TearDown() override {
    harness_.reset();
    containerd_.reset();
    if (linux_cgroups_) {
      EXPECT_TRUE(linux_cgroups_->Remove(root_));
    }
  }
  // Overridden by derived fixtures: cgroup driver and settings.
  virtual bool Systemd() const { return false; }
  virtual std::unique_ptr<PodCgroups> MakeCgroups(const linux::Cgroups& cgroups) {
    return NewPodCgroups(cgroups, {root_});
  }
  virtual void Configure(Settings&) {}
  bool AwaitGone(const std::string& name) {
    return harness_->Await(name, [](const corev1::Pod* gone) { return gone == nullptr; });
  }
  bool AwaitPhase(const std::string& name, const std::string& phase) {
    return harness_->Await(name,
                           [&](const corev1::Pod* pod) { return pod && pod->status().phase() == phase; });
  }
  std::string Exec(const std::string& container, const std::vector<std::string>& command) {
    auto result =
        harness_->backend().Run({"default", "web", "", container}, command, std::chrono::seconds(10), {});
    return result ? result->output : "error: " + result.error().message();
  }
  // Claim default/c, bound to the volume pv-1 of such a spec.
  void BindClaim(const std::string& volume_spec) {
    corev1::PersistentVolumeClaim claim;
    claim.mutable_metadata()->set_name("c");
    claim.mutable_metadata()->set_namespace_("default");
    claim.mutable_spec()->set_volume_name("pv-1");
    claim = *harness_->api().Create(claim);
    claim.mutable_status()->set_phase("Bound");
    ASSERT_TRUE(harness_->api().UpdateStatus(claim));
    corev1::PersistentVolume volume;
    ASSERT_TRUE(api::DecodeJson(R"({"metadata":{"name":"pv-1"},"spec":{"claimRef":{"uid":")" +
                                    claim.metadata().uid() + "\"}," + volume_spec + "}}",
                                volume));
    ASSERT_TRUE(harness_->api().Create(volume));
  }
  std::string dir_, root_;
  std::optional<linux::Cgroups> linux_cgroups_;
  std::unique_ptr<Containerd> containerd_;
  OomVictims oom_victims_ = OomVictims::OfKernelLog();
  cri::GrpcServices cri_;
  std::unique_ptr<PodCgroups> cgroups_;
  std::unique_ptr<Mounter> mounter_;
  std::unique_ptr<KubeletHarness> harness_;
};

}  // namespace keelson::kubelet
