#include "kubelet/cri/testing/fake_runtime.h"

#include "kubelet/cri/testing/runtime_conformance.h"

namespace keelson::kubelet::cri {
namespace {

TEST(FakeRuntime, DoesAsRuntimesDo) {
  FakeRuntime runtime;
  runtime.AddImage("img:1");
  CheckRuntimeConformance(runtime, runtime, "img:1", {"run"}, {});
}

TEST(FakeRuntime, DoesAsRuntimesWithEventsDo) {
  FakeRuntime runtime;
  runtime.AddImage("img:1");
  runtime.SupportEvents();
  CheckRuntimeConformance(runtime, runtime, "img:1", {"run"}, {}, [&] { runtime.AwaitStreams(1); });
}

TEST(FakeRuntime, FailsAsScripted) {
  FakeRuntime runtime;
  runtime.Fail("RunPodSandbox", Error(Code::kInternal, "no network"));
  EXPECT_EQ(runtime.RunPodSandbox({}, "", {}).error().message(), "no network");
  EXPECT_TRUE(runtime.RunPodSandbox({}, "", {})) << "once";
}

}  // namespace
}  // namespace keelson::kubelet::cri
