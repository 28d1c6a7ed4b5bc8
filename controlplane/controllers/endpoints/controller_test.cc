#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controlplane/controllers/endpoints/endpoints_controller.h"
#include "controlplane/controllers/endpoints/slice_controller.h"
#include "controlplane/controllers/testing/cluster.h"
#include "controlplane/controllers/testing/metrics.h"
#include "lib/api/meta.h"
#include "lib/api/quantity.h"
#include "lib/k8s/int_or_string.h"

namespace keelson::controllers {
namespace {

using namespace std::chrono_literals;

class EndpointsTest : public ::testing::Test {
 protected:
  EndpointsTest() {
    for (const char* name : {"n", "n1"}) cluster_.fake->Put(NodeNamed(name));
  }
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

TEST_F(EndpointsTest, PodsOfUnknownNodesAreLeftOutUnlessAllArePublished) {
  ASSERT_TRUE(cluster_.api.Create(NewService("web")));
  corev1::Service all = NewService("all");
  all.mutable_spec()->set_publish_not_ready_addresses(true);
  (*all.mutable_spec()->mutable_selector())["app"] = "web";
  ASSERT_TRUE(cluster_.api.Create(all));
  ASSERT_TRUE(cluster_.api.Create(PodNamed("a", {{"app", "web"}})));
  ASSERT_TRUE(cluster_.api.Create(PodNamed("b", {{"app", "web"}}, "gone")));
  Start();
  cluster_.RunPods();
  Drain();
  std::map<std::string, int> count;
  const auto look = [&] {
    count.clear();
    for (const auto& slice : cluster_.List<discoveryv1::EndpointSlice>()) {
      count[slice.metadata().labels().at(kServiceName)] += slice.endpoints_size();
    }
    return count;
  };
  EXPECT_EQ(look(), (std::map<std::string, int>{{"all", 2}, {"web", 1}}));
  EXPECT_EQ(Subset(), std::pair(2, 0)) << "Endpoints never look at nodes";
  cluster_.fake->Put(NodeNamed("gone"));
  Drain();
  EXPECT_EQ(look(), (std::map<std::string, int>{{"all", 2}, {"web", 2}})) << "it has come back";
}

TEST_F(EndpointsTest, AreCounted) {
  const std::string prefix = "endpoint_slice_controller_";
  const Growth endpoints(prefix + "endpoints_desired"), slices(prefix + "num_endpoint_slices"),
      ideal(prefix + "desired_endpoint_slices"), added(prefix + "endpoints_added_per_sync_sum"),
      removed(prefix + "endpoints_removed_per_sync_sum"),
      changed(
          prefix +
          "endpointslices_changed_per_sync_sum{topology=\"Disabled\",traffic_distribution=\"PreferClose\"}"),
      services(prefix + "services_count_by_traffic_distribution{traffic_distribution=\"PreferClose\"}");
  corev1::Service service = NewService("web");
  service.mutable_spec()->set_traffic_distribution("PreferClose");
  ASSERT_TRUE(cluster_.api.Create(service));
  Start();
  EXPECT_EQ(slices(), 1) << "an empty one";
  EXPECT_EQ(ideal(), 1);
  EXPECT_EQ(services(), 1);
  for (int i = 0; i < 101; ++i) {
    corev1::Pod pod = PodNamed("p" + std::to_string(i), {{"app", "web"}}, "n");
    pod.mutable_status()->set_phase("Running");
    pod.mutable_status()->set_pod_ip("10.1.0." + std::to_string(i));
    pod.mutable_status()->add_pod_ips()->set_ip(pod.status().pod_ip());
    cluster_.fake->Put(pod);
  }
  Drain();
  EXPECT_EQ(endpoints(), 101);
  EXPECT_EQ(slices(), 2);
  EXPECT_EQ(ideal(), 2);
  EXPECT_EQ(added(), 101);
  EXPECT_EQ(changed(), 1 + 3) << "two made, the empty one gone";
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(
        cluster_.api.Delete<corev1::Pod>("default", "p" + std::to_string(i), {.grace_period_seconds = 0}));
  }
  Drain();
  EXPECT_EQ(endpoints(), 98);
  EXPECT_EQ(removed(), 3);
  EXPECT_EQ(ideal(), 1);
  ASSERT_TRUE(cluster_.api.Delete<corev1::Service>("default", "web"));
  Drain();
  EXPECT_EQ(endpoints(), 0);
  EXPECT_EQ(slices(), 0);
  EXPECT_EQ(ideal(), 0);
  EXPECT_EQ(services(), 0);
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

TEST_F(EndpointsTest, ZonesShareByTheCpusOfTheirNodes) {
  const auto put_node = [&](const std::string& name, const std::string& zone) {
    corev1::Node node = NodeNamed(name);
    (*node.mutable_metadata()->mutable_labels())["topology.kubernetes.io/zone"] = zone;
    (*node.mutable_status()->mutable_allocatable())["cpu"] = api::Amount::FromInt(4).ToQuantity();
    cluster_.fake->Put(node);
  };
  ASSERT_TRUE(cluster_.api.Delete<corev1::Node>("", "n"));
  put_node("n1", "a");
  corev1::Service service = NewService("web");
  (*service.mutable_metadata()->mutable_annotations())["service.kubernetes.io/topology-mode"] = "Auto";
  ASSERT_TRUE(cluster_.api.Create(service));
  for (const char* name : {"p", "q"}) {
    ASSERT_TRUE(cluster_.api.Create(PodNamed(name, {{"app", "web"}}, "n1")));
  }
  cluster_.RunPods();
  Start();
  const auto hints = [&] {
    std::multiset<std::string> out;
    for (const auto& slice : cluster_.List<discoveryv1::EndpointSlice>()) {
      for (const auto& endpoint : slice.endpoints()) {
        out.insert(endpoint.has_hints() ? endpoint.hints().for_zones(0).name() : "none");
      }
    }
    return out;
  };
  EXPECT_EQ(hints(), (std::multiset<std::string>{"none", "none"}));
  put_node("n2", "b");
  Drain();
  EXPECT_EQ(hints(), (std::multiset<std::string>{"a", "b"}));
  service = cluster_.Get<corev1::Service>("default", "web");
  service.mutable_metadata()->clear_annotations();
  ASSERT_TRUE(cluster_.api.Update(service));
  Drain();
  EXPECT_EQ(hints(), (std::multiset<std::string>{"none", "none"}));
  EXPECT_THAT(cluster_.Events(),
              ::testing::ElementsAre(
                  "TopologyAwareHintsDisabled: Insufficient Node information: allocatable CPU or zone not "
                  "specified on "
                  "one or more nodes, addressType: IPv4",
                  "TopologyAwareHintsDisabled: Topology Aware Hints has been disabled, addressType: IPv4",
                  "TopologyAwareHintsEnabled: Topology Aware Hints has been enabled, addressType: IPv4"));
}

TEST(TruncateSubsetsTest, EachKeepsItsPart) {
  struct Case {
    std::vector<std::pair<int, int>> before, after;  // ready and not ready addresses of each subset
    bool truncated;
  };
  for (const Case& c :
       {Case{{{600, 400}}, {{600, 400}}, false}, Case{{{600, 401}}, {{600, 400}}, true},
        Case{{{1200, 10}}, {{1000, 0}}, true}, Case{{{1500, 1}, {500, 1}}, {{750, 0}, {250, 0}}, true},
        Case{{{800, 300}, {0, 100}}, {{800, 150}, {0, 50}}, true},
        Case{{{1000, 0}, {0, 100}}, {{1000, 0}}, true},
        Case{{{667, 0}, {667, 0}, {667, 0}}, {{334, 0}, {334, 0}, {332, 0}}, true}}) {
    std::vector<corev1::EndpointSubset> subsets;
    for (const auto& [ready, not_ready] : c.before) {
      corev1::EndpointSubset& subset = subsets.emplace_back();
      for (int i = 0; i < ready; ++i) subset.add_addresses();
      for (int i = 0; i < not_ready; ++i) subset.add_not_ready_addresses();
    }
    EXPECT_EQ(TruncateSubsets(subsets), c.truncated);
    std::vector<std::pair<int, int>> after;
    for (const auto& subset : subsets) {
      after.emplace_back(subset.addresses_size(), subset.not_ready_addresses_size());
    }
    EXPECT_EQ(after, c.after);
  }
}

TEST_F(EndpointsTest, MoreThanAThousandAreMarked) {
  ASSERT_TRUE(cluster_.api.Create(NewService("web")));
  for (int i = 0; i < 1001; ++i) {
    corev1::Pod pod = PodNamed("p" + std::to_string(i), {{"app", "web"}}, "n1");
    pod.mutable_status()->add_pod_ips()->set_ip("10.2." + std::to_string(i / 250) + "." +
                                                std::to_string(i % 250));
    if (i > 0) MakeReady(pod, cluster_.clock.Now());
    cluster_.fake->Put(pod);
  }
  Start();
  constexpr char kOverCapacity[] = "endpoints.kubernetes.io/over-capacity";
  EXPECT_EQ(Subset(), std::pair(1000, 0));
  EXPECT_EQ(cluster_.Get<corev1::Endpoints>("default", "web").metadata().annotations().at(kOverCapacity),
            "truncated");
  EXPECT_EQ(Addresses().size(), 1001u);  // slices have them all
  for (const auto& slice : cluster_.List<discoveryv1::EndpointSlice>()) {
    EXPECT_LE(slice.endpoints_size(), 100);
  }
  ASSERT_TRUE(cluster_.api.Delete<corev1::Pod>("default", "p0", {.grace_period_seconds = 0}));
  Drain();
  EXPECT_FALSE(
      cluster_.Get<corev1::Endpoints>("default", "web").metadata().annotations().contains(kOverCapacity));
}

}  // namespace
}  // namespace keelson::controllers
