// For tests of resizes: pods and containers with resources, and a fixture with a pod directory.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>

#include "kubelet/container/labels.h"
#include "kubelet/resize/allocations.h"
#include "lib/base/file.h"
#include "lib/k8s/pods/pod_resources.h"

namespace keelson::kubelet {

// "cpu/memory" of requests, then of limits; "" is none: Resources("100m/1Mi", "200m/").
inline corev1::ResourceRequirements Resources(const std::string& requests, const std::string& limits) {
  corev1::ResourceRequirements out;
  auto fill = [](const std::string& text, k8s::QuantityMap& to) {
    size_t slash = text.find('/');
    if (slash > 0) to["cpu"].set_string(text.substr(0, slash));
    if (slash + 1 < text.size()) to["memory"].set_string(text.substr(slash + 1));
  };
  fill(requests, *out.mutable_requests());
  fill(limits, *out.mutable_limits());
  return out;
}

inline std::shared_ptr<corev1::Pod> MakePod(const std::vector<corev1::ResourceRequirements>& containers) {
  auto pod = std::make_shared<corev1::Pod>();
  pod->mutable_metadata()->set_uid("uid");
  pod->mutable_metadata()->set_name("pod");
  pod->mutable_metadata()->set_generation(3);
  int index = 0;
  for (const auto& resources : containers) {
    corev1::Container& container = *pod->mutable_spec()->add_containers();
    container.set_name("c" + std::to_string(++index));
    *container.mutable_resources() = resources;
  }
  return pod;
}

inline ContainerRecord Record(const std::string& name, const std::string& id, const std::string& resources) {
  ContainerRecord out;
  out.name = name;
  out.id = id;
  out.state = cri::ContainerState::kRunning;
  if (!resources.empty()) out.annotations[kResourcesAnnotation] = resources;
  return out;
}

class AllocationsTest : public testing::Test {
 protected:
  AllocationsTest() {
    char name[] = "/tmp/keelson-resize-XXXXXX";
    paths_.root = mkdtemp(name);
    EXPECT_TRUE(MakeDirs(paths_.Pod("uid")));
  }
  ~AllocationsTest() override { std::filesystem::remove_all(paths_.root); }
  Paths paths_;
};

}  // namespace keelson::kubelet
