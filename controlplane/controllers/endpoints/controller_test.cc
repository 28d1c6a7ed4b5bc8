#include <gtest/gtest.h>

#include "controlplane/controllers/endpoints/endpoints_controller.h"
#include "controlplane/controllers/endpoints/slice_controller.h"
#include "controlplane/controllers/testing.h"
#include "lib/api/meta.h"
#include "lib/k8s/int_or_string.h"

namespace keelson::controllers {
namespace {

using namespace std::chrono_literals;

class EndpointsTest : public ::testing::Test {
 protected:
  void Start() {
    cluster_.Start();
    Drain();
  }
  void Drain() { cluster_.Drain({&slices_, &endpoints_}); }
  corev1::Service NewService(const std::string& name) {
    corev1::Service service;
    service.mutable_metadata()->set_name(name);
    service.mutable_metadata()->set_namespace_("default");
    service.mutable_spec()->set_cluster_ip("10.0.0.1");
    (*service.mutable_spec()->mutable_selector())["app"] = name;
    corev1::ServicePort& port = *service.mutable_spec()->add_ports();
    port.set_port(80);
    *port.mutable_target_port() = k8s::FromInt(8080);
    return service;
  }
  // "10.1.0.1+" for ready ones, "-" for others, over all slices.
  std::set<std::string> Addresses() {
    std::set<std::string> out;
    for (const auto& slice : cluster_.List<discoveryv1::EndpointSlice>()) {
      for (const auto& endpoint : slice.endpoints()) {
        out.insert(endpoint.addresses(0) + (endpoint.conditions().ready() ? "+" : "-"));
      }
    }
    return out;
  }
  std::pair<int, int> Subset() {
    auto endpoints = cluster_.Get<corev1::Endpoints>("default", "web");
    if (endpoints.subsets_size() == 0) return {0, 0};
    return {endpoints.subsets(0).addresses_size(), endpoints.subsets(0).not_ready_addresses_size()};
  }
  using Set = std::set<std::string>;

  TestCluster cluster_;
  EndpointPods& pods_ = cluster_.Own(std::make_shared<EndpointPods>(cluster_.informers));
  EndpointSliceController& slices_ = cluster_.Make<EndpointSliceController>(pods_);
  EndpointsController& endpoints_ = cluster_.Make<EndpointsController>(pods_);
};

TEST_F(EndpointsTest, FollowPodsThroughTheirLives) {
  ASSERT_TRUE(cluster_.api.Create(NewService("web")));
  ASSERT_TRUE(cluster_.api.Create(PodNamed("a", {{"app", "web"}})));
  ASSERT_TRUE(cluster_.api.Create(PodNamed("other", {{"app", "else"}})));
  Start();
  EXPECT_EQ(Addresses(), Set{});
  EXPECT_EQ(cluster_.List<discoveryv1::EndpointSlice>().size(), 1u) << "the placeholder";

  cluster_.RunPods();
  Drain();
  EXPECT_EQ(Addresses(), Set{"10.1.0.1+"});
  EXPECT_EQ(Subset(), std::pair(1, 0));

  auto pod = cluster_.Get<corev1::Pod>("default", "a");
  pod.mutable_status()->mutable_conditions(0)->set_status("False");
  cluster_.fake->Put(pod);
  Drain();
  EXPECT_EQ(Addresses(), Set{"10.1.0.1-"});
  EXPECT_EQ(Subset(), std::pair(0, 1));

  cluster_.RunPods();
  Drain();
  ASSERT_TRUE(cluster_.api.Delete<corev1::Pod>("default", "a"));
  Drain();
  EXPECT_EQ(Addresses(), Set{"10.1.0.1-"}) << "serving, and terminating";
  EXPECT_EQ(Subset(), std::pair(0, 0)) << "Endpoints know no terminating addresses";
  cluster_.RunPods();
  Drain();
  EXPECT_EQ(Addresses(), Set{});
  EXPECT_TRUE(cluster_.errors.empty());
}

TEST_F(EndpointsTest, SayWhatTheirLastChangeWasDueTo) {
  const auto at = [&](std::chrono::seconds after) {
    return api::FormatTime(api::ToTime(cluster_.clock.Now() + after));
  };
  auto slice = [&] { return cluster_.List<discoveryv1::EndpointSlice>().at(0).metadata().annotations(); };
  auto endpoints = [&] { return cluster_.Get<corev1::Endpoints>("default", "web").metadata().annotations(); };
  ASSERT_TRUE(cluster_.api.Create(NewService("web")));
  ASSERT_TRUE(cluster_.api.Create(PodNamed("a", {{"app", "web"}})));
  const std::string created = at(0s);
  Start();
  EXPECT_EQ(slice().at(kTriggerTime), created);
  EXPECT_EQ(endpoints().at(kTriggerTime), created);
  cluster_.clock.Advance(10s);
  cluster_.RunPods();
  const std::string ready = at(0s);
  cluster_.clock.Advance(10s);
  Drain();
  EXPECT_EQ(slice().at(kTriggerTime), ready);
  EXPECT_EQ(endpoints().at(kTriggerTime), ready);
  auto service = cluster_.Get<corev1::Service>("default", "web");
  (*service.mutable_metadata()->mutable_labels())["x"] = "y";
  ASSERT_TRUE(cluster_.api.Update(service));
  Drain();
  EXPECT_FALSE(slice().contains(kTriggerTime)) << "no pod has changed";
  EXPECT_FALSE(endpoints().contains(kTriggerTime));
}

TEST_F(EndpointsTest, LabelAndSelectorChangesMovePods) {
  ASSERT_TRUE(cluster_.api.Create(NewService("web")));
  ASSERT_TRUE(cluster_.api.Create(PodNamed("a", {{"app", "web"}})));
  cluster_.RunPods();
  Start();
  EXPECT_EQ(Addresses(), Set{"10.1.0.1+"});
  auto pod = cluster_.Get<corev1::Pod>("default", "a");
  (*pod.mutable_metadata()->mutable_labels())["app"] = "new";
  ASSERT_TRUE(cluster_.api.Update(pod));
  Drain();
  EXPECT_EQ(Addresses(), Set{});
  auto service = cluster_.Get<corev1::Service>("default", "web");
  (*service.mutable_spec()->mutable_selector())["app"] = "new";
  ASSERT_TRUE(cluster_.api.Update(service));
  Drain();
  EXPECT_EQ(Addresses(), Set{"10.1.0.1+"});
}

TEST_F(EndpointsTest, UnrelatedPodChangesWriteNothing) {
  ASSERT_TRUE(cluster_.api.Create(NewService("web")));
  ASSERT_TRUE(cluster_.api.Create(PodNamed("a", {{"app", "web"}})));
  cluster_.RunPods();
  Start();
  auto pod = cluster_.Get<corev1::Pod>("default", "a");
  pod.mutable_status()->set_message("something else");
  cluster_.fake->Put(pod);
  cluster_.Settle();
  EXPECT_EQ(slices_.queue().size(), 0u);
  EXPECT_EQ(endpoints_.queue().size(), 0u);
}

TEST_F(EndpointsTest, DeletedSliceIsMadeAgain) {
  ASSERT_TRUE(cluster_.api.Create(NewService("web")));
  ASSERT_TRUE(cluster_.api.Create(PodNamed("a", {{"app", "web"}})));
  cluster_.RunPods();
  Start();
  const std::string name = cluster_.List<discoveryv1::EndpointSlice>().at(0).metadata().name();
  ASSERT_TRUE(cluster_.api.Delete<discoveryv1::EndpointSlice>("default", name));
  Drain();
  EXPECT_EQ(Addresses(), Set{"10.1.0.1+"});
}

TEST_F(EndpointsTest, ServicesWithoutSelectorAreLeftAlone) {
  corev1::Service service = NewService("web");
  service.mutable_spec()->clear_selector();
  ASSERT_TRUE(cluster_.api.Create(service));
  corev1::Endpoints manual;
  manual.mutable_metadata()->set_name("web");
  manual.mutable_metadata()->set_namespace_("default");
  manual.add_subsets()->add_addresses()->set_ip("192.0.2.1");
  ASSERT_TRUE(cluster_.api.Create(manual));
  Start();
  EXPECT_EQ(Subset(), std::pair(1, 0));
  EXPECT_TRUE(cluster_.List<discoveryv1::EndpointSlice>().empty());
}

TEST_F(EndpointsTest, EndpointsGoWithTheirService) {
  ASSERT_TRUE(cluster_.api.Create(NewService("web")));
  Start();
  EXPECT_EQ(cluster_.List<corev1::Endpoints>().size(), 1u);
  ASSERT_TRUE(cluster_.api.Delete<corev1::Service>("default", "web"));
  Drain();
  EXPECT_TRUE(cluster_.List<corev1::Endpoints>().empty());
}

}  // namespace
}  // namespace keelson::controllers
