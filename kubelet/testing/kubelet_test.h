// A kubelet between a fake API server and a fake runtime.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <memory>
#include <string>

#include "kubelet/cri/testing/fake_runtime.h"
#include "kubelet/testing/cgroup_names.h"
#include "kubelet/testing/kubelet_harness.h"
#include "lib/base/file.h"

namespace keelson::kubelet {

class KubeletTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/kubelet_test.XXXXXX";
    dir_ = ::mkdtemp(name);
    harness_ = std::make_unique<KubeletHarness>(runtime_, runtime_, cgroups_, mounter_, dir_, "10.7.0.1");
    runtime_.AddImage("img:1");
  }
  void TearDown() override {
    harness_.reset();
    (void)RemoveTree(dir_);
  }
  static std::string Waiting(const corev1::Pod* pod) {
    if (!pod || pod->status().container_statuses().empty()) return "";
    return pod->status().container_statuses(0).state().waiting().reason();
  }
  std::string dir_;
  cri::FakeRuntime runtime_;
  NoMounts mounter_;
  CgroupNames cgroups_;
  std::unique_ptr<KubeletHarness> harness_;
};

constexpr char kPod[] =
    R"({"metadata":{"name":"web"},"spec":{"containers":[{"name":"main","image":"img:1"}]}})";

}  // namespace keelson::kubelet
