#include "kubelet/podresources/source.h"

#include <gtest/gtest.h>

namespace keelson::kubelet::podresources {
namespace {

class FakeSource : public Source {
 public:
  FakeSource() {
    auto pod = std::make_shared<corev1::Pod>();
    pod->mutable_metadata()->set_name("web");
    pod->mutable_metadata()->set_namespace_("default");
    pod->mutable_spec()->add_init_containers()->set_name("init");
    auto& sidecar = *pod->mutable_spec()->add_init_containers();
    sidecar.set_name("sidecar");
    sidecar.set_restart_policy("Always");
    pod->mutable_spec()->add_containers()->set_name("app");
    pod_ = pod;
  }
  std::vector<PodPtr> ActivePods() override { return {pod_}; }
  PodPtr FindPod(const std::string& ns, const std::string& name) override {
    return ns == "default" && name == "web" ? pod_ : nullptr;
  }
  ContainerResources ResourcesOf(const corev1::Pod&, const corev1::Container& container) override {
    ContainerResources out;
    out.devices.push_back({"example.com/dev", "for-" + container.name(), std::nullopt});
    return out;
  }
  AllocatableResources Allocatable() override { return {{}, {7}, {}}; }

 private:
  PodPtr pod_;
};

TEST(SourceLister, TellsOfContainersThatLiveAsLongAsThePod) {
  FakeSource source;
  SourceLister lister(source);
  std::vector<PodResources> pods = lister.List();
  ASSERT_EQ(pods.size(), 1u);
  EXPECT_EQ(pods[0].name, "web");
  EXPECT_EQ(pods[0].ns, "default");
  ASSERT_EQ(pods[0].containers.size(), 2u);
  EXPECT_EQ(pods[0].containers[0].name, "sidecar");
  EXPECT_TRUE(pods[0].containers[0].sidecar);
  EXPECT_EQ(pods[0].containers[1].name, "app");
  EXPECT_FALSE(pods[0].containers[1].sidecar);
  EXPECT_EQ(pods[0].containers[1].devices[0].id, "for-app");
  EXPECT_TRUE(lister.Get("default", "web"));
  EXPECT_FALSE(lister.Get("other", "web"));
  EXPECT_EQ(lister.Allocatable().cpus, (std::vector<int64_t>{7}));
}

}  // namespace
}  // namespace keelson::kubelet::podresources
