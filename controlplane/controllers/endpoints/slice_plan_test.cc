#include "controlplane/controllers/endpoints/slice_plan.h"

#include <gtest/gtest.h>

#include "lib/api/meta.h"
#include "lib/k8s/int_or_string.h"

namespace keelson::controllers {
namespace {

corev1::Service ServiceNamed(const std::string& name) {
  corev1::Service service;
  service.mutable_metadata()->set_name(name);
  service.mutable_metadata()->set_namespace_("default");
  service.mutable_metadata()->set_uid("service-uid");
  service.mutable_spec()->set_cluster_ip("10.0.0.1");
  service.mutable_spec()->add_ip_families("IPv4");
  (*service.mutable_spec()->mutable_selector())["app"] = name;
  corev1::ServicePort& port = *service.mutable_spec()->add_ports();
  port.set_name("http");
  port.set_port(80);
  *port.mutable_target_port() = k8s::FromInt(8080);
  return service;
}

EndpointPodPointer Pod(int number, bool ready = true, bool terminating = false) {
  auto pod = std::make_shared<EndpointPod>();
  pod->ns = "default";
  pod->name = "pod-" + std::to_string(number);
  pod->uid = "uid-" + std::to_string(10000 + number);
  pod->node = "n" + std::to_string(number % 2);
  pod->ips = {"10.1." + std::to_string(number / 250) + "." + std::to_string(number % 250 + 1)};
  pod->ready = ready;
  pod->terminating = terminating;
  return pod;
}

std::vector<EndpointPodPointer> Pods(int from, int to) {
  std::vector<EndpointPodPointer> pods;
  for (int i = from; i < to; ++i) pods.push_back(Pod(i));
  return pods;
}

const ZoneOfNode kNoZone = [](const std::string&) { return std::string(); };

// Applies a plan as the API server would.
class Stored {
 public:
  SlicePlan Sync(const corev1::Service& service, const std::vector<EndpointPodPointer>& pods,
                 const ZoneOfNode& zone_of = kNoZone, size_t max_endpoints = kMaxEndpoints) {
    SlicePlan plan = PlanSlices(service, pods, slices, zone_of, {}, max_endpoints);
    for (const auto& removed : plan.remove) std::erase(slices, removed);
    for (const auto& updated : plan.update) {
      for (auto& slice : slices) {
        if (slice->metadata().name() == updated.metadata().name()) {
          slice = std::make_shared<discoveryv1::EndpointSlice>(updated);
        }
      }
    }
    for (discoveryv1::EndpointSlice created : plan.create) {
      created.mutable_metadata()->set_name(created.metadata().generate_name() + std::to_string(++names_));
      slices.push_back(std::make_shared<discoveryv1::EndpointSlice>(created));
    }
    return plan;
  }
  std::vector<int> Sizes() const {
    std::vector<int> sizes;
    for (const auto& slice : slices) sizes.push_back(slice->endpoints_size());
    std::sort(sizes.begin(), sizes.end());
    return sizes;
  }
  std::vector<SlicePointer> slices;

 private:
  int names_ = 0;
};

using Counts = std::vector<size_t>;
Counts CountsOf(const SlicePlan& plan) {
  return {plan.create.size(), plan.update.size(), plan.remove.size()};
}

TEST(PlanSlicesTest, FieldsOfASlice) {
  corev1::Service service = ServiceNamed("web");
  (*service.mutable_metadata()->mutable_labels())["team"] = "a";
  service.mutable_spec()->mutable_ports(0)->set_app_protocol("http");
  Stored stored;
  stored.Sync(service, {Pod(1)}, [](const std::string& node) { return "zone-of-" + node; });
  ASSERT_EQ(stored.slices.size(), 1u);
  const discoveryv1::EndpointSlice& slice = *stored.slices[0];
  EXPECT_EQ(slice.metadata().generate_name(), "web-");
  EXPECT_EQ(slice.metadata().labels().at("kubernetes.io/service-name"), "web");
  EXPECT_EQ(slice.metadata().labels().at("endpointslice.kubernetes.io/managed-by"),
            "endpointslice-controller.k8s.io");
  EXPECT_EQ(slice.metadata().labels().at("team"), "a");
  EXPECT_FALSE(slice.metadata().labels().contains(kHeadless));
  ASSERT_TRUE(api::ControllerOf(slice.metadata()));
  EXPECT_EQ(api::ControllerOf(slice.metadata())->uid(), "service-uid");
  EXPECT_EQ(slice.address_type(), "IPv4");
  ASSERT_EQ(slice.ports_size(), 1);
  EXPECT_EQ(slice.ports(0).name(), "http");
  EXPECT_EQ(slice.ports(0).port(), 8080);
  EXPECT_EQ(slice.ports(0).protocol(), "TCP");
  EXPECT_EQ(slice.ports(0).app_protocol(), "http");
  ASSERT_EQ(slice.endpoints_size(), 1);
  const discoveryv1::Endpoint& endpoint = slice.endpoints(0);
  EXPECT_EQ(endpoint.addresses(0), "10.1.0.2");
  EXPECT_EQ(endpoint.node_name(), "n1");
  EXPECT_EQ(endpoint.zone(), "zone-of-n1");
  EXPECT_EQ(endpoint.target_ref().name(), "pod-1");
  EXPECT_EQ(endpoint.target_ref().kind(), "Pod");
}

TEST(PlanSlicesTest, SlicesAreAsLargeAsTheyMayBe) {
  const corev1::Service service = ServiceNamed("web");
  Stored stored;
  EXPECT_EQ(stored.Sync(service, Pods(0, 7), kNoZone, 3).ideal_slices, 3u);
  EXPECT_EQ(stored.Sizes(), (std::vector<int>{1, 3, 3}));
  // Larger ones than that stay, and get no more.
  stored.Sync(service, Pods(0, 8), kNoZone, 2);
  EXPECT_EQ(stored.Sizes(), (std::vector<int>{2, 3, 3}));
  stored.Sync(service, Pods(0, 9), kNoZone, 2);
  EXPECT_EQ(stored.Sizes(), (std::vector<int>{1, 2, 3, 3}));
}

TEST(PlanSlicesTest, Conditions) {
  struct Case {
    bool publish, ready, terminating;
    bool want_ready, want_serving, want_terminating;
  };
  for (const Case& c :
       {Case{false, true, false, true, true, false}, Case{false, false, false, false, false, false},
        Case{false, true, true, false, true, true}, Case{true, false, false, true, false, false},
        Case{true, true, true, true, true, true}}) {
    corev1::Service service = ServiceNamed("web");
    if (c.publish) service.mutable_spec()->set_publish_not_ready_addresses(true);
    Stored stored;
    stored.Sync(service, {Pod(1, c.ready, c.terminating)});
    const auto& conditions = stored.slices[0]->endpoints(0).conditions();
    EXPECT_EQ(conditions.ready(), c.want_ready);
    EXPECT_EQ(conditions.serving(), c.want_serving);
    EXPECT_EQ(conditions.terminating(), c.want_terminating);
  }
}

TEST(PlanSlicesTest, FewestWrites) {
  corev1::Service service = ServiceNamed("web");
  Stored stored;
  EXPECT_EQ(CountsOf(stored.Sync(service, Pods(0, 250))), (Counts{3, 0, 0}));
  EXPECT_EQ(stored.Sizes(), (std::vector<int>{50, 100, 100}));
  EXPECT_EQ(CountsOf(stored.Sync(service, Pods(0, 250))), (Counts{0, 0, 0})) << "nothing changed";
  EXPECT_EQ(CountsOf(stored.Sync(service, Pods(0, 251))), (Counts{0, 1, 0})) << "one more fits into the last";
  EXPECT_EQ(CountsOf(stored.Sync(service, Pods(1, 252))), (Counts{0, 1, 0})) << "one replaces another";
  auto pods = Pods(1, 252);
  pods[5] = Pod(6, false);
  EXPECT_EQ(CountsOf(stored.Sync(service, pods)), (Counts{0, 1, 0})) << "one is not ready any more";
  EXPECT_EQ(CountsOf(stored.Sync(service, Pods(1, 5))), (Counts{0, 1, 2})) << "emptied slices go";
  EXPECT_EQ(stored.Sizes(), std::vector<int>{4});
}

TEST(PlanSlicesTest, ReplacedPodsReuseTheirSlice) {
  corev1::Service service = ServiceNamed("web");
  Stored stored;
  stored.Sync(service, Pods(0, 3));
  EXPECT_EQ(CountsOf(stored.Sync(service, Pods(10, 13))), (Counts{0, 1, 0}));
}

TEST(PlanSlicesTest, EmptyServiceKeepsAPlaceholder) {
  corev1::Service service = ServiceNamed("web");
  Stored stored;
  EXPECT_EQ(CountsOf(stored.Sync(service, {})), (Counts{1, 0, 0}));
  EXPECT_EQ(stored.slices[0]->ports_size(), 0);
  EXPECT_EQ(CountsOf(stored.Sync(service, {})), (Counts{0, 0, 0}));
  EXPECT_EQ(CountsOf(stored.Sync(service, {Pod(1)})), (Counts{1, 0, 1}));
  EXPECT_EQ(CountsOf(stored.Sync(service, {})), (Counts{1, 0, 1}));
  EXPECT_EQ(stored.Sizes(), std::vector<int>{0});
}

TEST(PlanSlicesTest, NamedPortsSplitIntoGroups) {
  corev1::Service service = ServiceNamed("web");
  *service.mutable_spec()->mutable_ports(0)->mutable_target_port() = k8s::FromString("web");
  auto a = std::make_shared<EndpointPod>(*Pod(1)), b = std::make_shared<EndpointPod>(*Pod(2));
  a->ports = {{"web", "TCP", 8080}};
  b->ports = {{"web", "UDP", 1}, {"web", "TCP", 9090}};
  Stored stored;
  stored.Sync(service, {a, b, Pod(3)});
  ASSERT_EQ(stored.slices.size(), 3u);
  std::map<std::string, int32_t> numbers;  // 0: no port
  for (const auto& slice : stored.slices) {
    ASSERT_EQ(slice->endpoints_size(), 1);
    numbers[slice->endpoints(0).target_ref().name()] = slice->ports_size() == 0 ? 0 : slice->ports(0).port();
  }
  EXPECT_EQ(numbers, (std::map<std::string, int32_t>{{"pod-1", 8080}, {"pod-2", 9090}, {"pod-3", 0}}));
  EXPECT_EQ(CountsOf(stored.Sync(service, {a, b, Pod(3)})), (Counts{0, 0, 0}));
  EXPECT_EQ(CountsOf(stored.Sync(service, {a, b})), (Counts{0, 0, 1}));
}

TEST(PlanSlicesTest, RoomIsComparedWithTheRemainder) {
  corev1::Service service = ServiceNamed("web");
  Stored stored;
  stored.Sync(service, Pods(0, 60));
  EXPECT_EQ(CountsOf(stored.Sync(service, Pods(0, 60 + 130))), (Counts{1, 1, 0}));
  EXPECT_EQ(stored.Sizes(), (std::vector<int>{90, 100})) << "30 of the 130 go into what is there";
  EXPECT_EQ(CountsOf(stored.Sync(service, Pods(0, 60 + 130 + 15))), (Counts{1, 0, 0}))
      << "no slice has room for 15";
  EXPECT_EQ(stored.Sizes(), (std::vector<int>{15, 90, 100}));
}

TEST(PlanSlicesTest, DualStackHasSlicesAFamily) {
  corev1::Service service = ServiceNamed("web");
  service.mutable_spec()->add_ip_families("IPv6");
  auto pod = std::make_shared<EndpointPod>(*Pod(1));
  pod->ips = {"10.1.0.2", "fd00::2"};
  Stored stored;
  stored.Sync(service, {pod});
  ASSERT_EQ(stored.slices.size(), 2u);
  for (const auto& slice : stored.slices) {
    EXPECT_EQ(slice->endpoints(0).addresses(0), slice->address_type() == "IPv4" ? "10.1.0.2" : "fd00::2");
  }
  service.mutable_spec()->mutable_ip_families()->RemoveLast();
  EXPECT_EQ(CountsOf(stored.Sync(service, {pod})), (Counts{0, 0, 1}));
}

TEST(PlanSlicesTest, HeadlessServices) {
  corev1::Service service = ServiceNamed("web");
  service.mutable_spec()->set_cluster_ip("None");
  service.mutable_spec()->clear_ports();
  auto pod = std::make_shared<EndpointPod>(*Pod(1));
  pod->hostname = "first";
  pod->subdomain = "web";
  Stored stored;
  stored.Sync(service, {pod});
  ASSERT_EQ(stored.slices.size(), 1u);
  EXPECT_TRUE(stored.slices[0]->metadata().labels().contains(kHeadless));
  EXPECT_EQ(stored.slices[0]->ports_size(), 0);
  EXPECT_EQ(stored.slices[0]->endpoints(0).hostname(), "first");
}

TEST(PlanSlicesTest, HintsFollowTheDistribution) {
  corev1::Service service = ServiceNamed("web");
  Stored stored;
  const ZoneOfNode zone_of = [](const std::string& node) { return node == "n0" ? "a" : "b"; };
  stored.Sync(service, Pods(0, 4), zone_of);
  const auto hints = [&] {
    std::string out;
    for (const auto& endpoint : stored.slices[0]->endpoints()) {
      for (const auto& zone : endpoint.hints().for_zones()) out += zone.name();
      for (const auto& node : endpoint.hints().for_nodes()) out += node.name();
    }
    return out;
  };
  EXPECT_EQ(hints(), "");
  service.mutable_spec()->set_traffic_distribution("PreferSameZone");
  EXPECT_EQ(CountsOf(stored.Sync(service, Pods(0, 4), zone_of)), (Counts{0, 1, 0}));
  EXPECT_EQ(hints(), "abab");
  EXPECT_EQ(CountsOf(stored.Sync(service, Pods(0, 4), zone_of)), (Counts{0, 0, 0}));
  service.mutable_spec()->set_traffic_distribution("PreferSameNode");
  stored.Sync(service, Pods(0, 4), zone_of);
  EXPECT_EQ(hints(), "an0bn1an0bn1");
  service.mutable_spec()->clear_traffic_distribution();
  EXPECT_EQ(CountsOf(stored.Sync(service, Pods(0, 4), zone_of)), (Counts{0, 1, 0}));
  EXPECT_EQ(hints(), "");
}

TEST(PlanSlicesTest, LabelsOfTheServiceAreFollowed) {
  corev1::Service service = ServiceNamed("web");
  Stored stored;
  stored.Sync(service, Pods(0, 2));
  (*service.mutable_metadata()->mutable_labels())["team"] = "b";
  EXPECT_EQ(CountsOf(stored.Sync(service, Pods(0, 2))), (Counts{0, 1, 0}));
  EXPECT_EQ(stored.slices[0]->metadata().labels().at("team"), "b");
}

}  // namespace
}  // namespace keelson::controllers
