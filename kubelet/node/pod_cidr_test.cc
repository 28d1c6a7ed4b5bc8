#include "kubelet/node/pod_cidr.h"

#include <gtest/gtest.h>

#include "kubelet/cri/testing/fake_runtime.h"

namespace keelson::kubelet {
namespace {

corev1::Node NodeWith(const std::vector<std::string>& cidrs) {
  corev1::Node node;
  if (!cidrs.empty()) node.mutable_spec()->set_pod_cidr(cidrs.front());
  for (const std::string& cidr : cidrs) node.mutable_spec()->add_pod_cidrs(cidr);
  return node;
}

TEST(PodCidr, IsToldOnceForEachChange) {
  cri::FakeRuntime runtime;
  PodCidr cidr(runtime, "");
  const corev1::Node none = NodeWith({}), one = NodeWith({"10.1.0.0/24"}),
                     two = NodeWith({"10.1.0.0/24", "fd00::/64"});
  cidr.UpdateRuntime(nullptr, {});
  cidr.UpdateRuntime(&none, {});
  EXPECT_EQ(runtime.Calls(), std::vector<std::string>());
  runtime.Fail("UpdateRuntimeConfig", Error(Code::kUnavailable, "away"));
  cidr.UpdateRuntime(&one, {});
  cidr.UpdateRuntime(&one, {});
  cidr.UpdateRuntime(&one, {});
  cidr.UpdateRuntime(&two, {});
  cidr.UpdateRuntime(&none, {});
  EXPECT_EQ(runtime.Calls(),
            (std::vector<std::string>{"UpdateRuntimeConfig 10.1.0.0/24", "UpdateRuntimeConfig 10.1.0.0/24",
                                      "UpdateRuntimeConfig 10.1.0.0/24,fd00::/64"}));
}

TEST(PodCidr, ConfiguredOnesAreForNodesThatHaveNone) {
  cri::FakeRuntime runtime;
  PodCidr cidr(runtime, "10.2.0.0/24");
  cidr.UpdateRuntime(nullptr, {});
  const corev1::Node one = NodeWith({"10.1.0.0/24"});
  cidr.UpdateRuntime(&one, {});
  EXPECT_EQ(runtime.Calls(),
            (std::vector<std::string>{"UpdateRuntimeConfig 10.2.0.0/24", "UpdateRuntimeConfig 10.1.0.0/24"}));
}

}  // namespace
}  // namespace keelson::kubelet
