#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controlplane/controllers/mirroring/controller.h"
#include "controlplane/controllers/testing/cluster.h"
#include "controlplane/controllers/testing/metrics.h"
#include "lib/api/meta.h"

namespace keelson::controllers {
namespace {

using discoveryv1::EndpointSlice;
using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

corev1::Endpoints Manual(const std::string& name, const std::vector<std::string>& ips, int port = 80) {
  corev1::Endpoints endpoints;
  endpoints.mutable_metadata()->set_name(name);
  endpoints.mutable_metadata()->set_namespace_("default");
  corev1::EndpointSubset& subset = *endpoints.add_subsets();
  for (const std::string& ip : ips) {
    (ip.ends_with("!") ? subset.add_not_ready_addresses() : subset.add_addresses())
        ->set_ip(ip.substr(0, ip.find('!')));
  }
  corev1::EndpointPort& added = *subset.add_ports();
  added.set_name("http");
  added.set_port(port);
  return endpoints;
}

corev1::Service Bare(const std::string& name) {
  corev1::Service service;
  service.mutable_metadata()->set_name(name);
  service.mutable_metadata()->set_namespace_("default");
  return service;
}

TEST(ShouldMirrorTest, UnlessAskedNotTo) {
  corev1::Endpoints plain = Manual("web", {}), skipped = plain, kept = plain, leader = plain;
  (*skipped.mutable_metadata()->mutable_labels())["endpointslice.kubernetes.io/skip-mirror"] = "true";
  (*kept.mutable_metadata()->mutable_labels())["endpointslice.kubernetes.io/skip-mirror"] = "false";
  (*leader.mutable_metadata()->mutable_annotations())["control-plane.alpha.kubernetes.io/leader"] = "{}";
  EXPECT_TRUE(ShouldMirror(plain));
  EXPECT_FALSE(ShouldMirror(skipped));
  EXPECT_TRUE(ShouldMirror(kept));
  EXPECT_FALSE(ShouldMirror(leader));
}

TEST(PlanMirrorTest, FieldsOfASlice) {
  corev1::Endpoints endpoints = Manual("web", {"192.0.2.1", "192.0.2.2!"});
  metav1::ObjectMeta& meta = *endpoints.mutable_metadata();
  meta.set_uid("u");
  (*meta.mutable_labels())["team"] = "a";
  (*meta.mutable_annotations())["note"] = "b";
  (*meta.mutable_annotations())["kubectl.kubernetes.io/last-applied-configuration"] = "{}";
  (*meta.mutable_annotations())["endpoints.kubernetes.io/last-change-trigger-time"] = "2026-01-01T00:00:00Z";
  corev1::EndpointAddress& first = *endpoints.mutable_subsets(0)->mutable_addresses(0);
  first.set_node_name("n1");
  first.set_hostname("h");
  first.mutable_target_ref()->set_kind("Pod");
  const MirrorPlan plan = PlanMirror(endpoints, {});
  ASSERT_EQ(plan.create.size(), 1u);
  const EndpointSlice& slice = plan.create[0];
  EXPECT_EQ(slice.metadata().generate_name(), "web-");
  EXPECT_EQ(slice.metadata().labels().at("team"), "a");
  EXPECT_EQ(slice.metadata().labels().at("kubernetes.io/service-name"), "web");
  EXPECT_EQ(slice.metadata().labels().at("endpointslice.kubernetes.io/managed-by"),
            "endpointslicemirroring-controller.k8s.io");
  ASSERT_EQ(slice.metadata().annotations().size(), 1u);
  EXPECT_EQ(slice.metadata().annotations().at("note"), "b");
  ASSERT_TRUE(api::ControllerOf(slice.metadata()));
  EXPECT_EQ(api::ControllerOf(slice.metadata())->kind(), "Endpoints");
  EXPECT_EQ(slice.address_type(), "IPv4");
  EXPECT_EQ(slice.ports(0).name(), "http");
  EXPECT_EQ(slice.ports(0).protocol(), "TCP");
  ASSERT_EQ(slice.endpoints_size(), 2);
  EXPECT_TRUE(slice.endpoints(0).conditions().ready());
  EXPECT_EQ(slice.endpoints(0).node_name(), "n1");
  EXPECT_EQ(slice.endpoints(0).hostname(), "h");
  EXPECT_EQ(slice.endpoints(0).target_ref().kind(), "Pod");
  EXPECT_FALSE(slice.endpoints(1).conditions().ready());
}

TEST(PlanMirrorTest, OneSliceForEachFamilyAndListOfPorts) {
  corev1::Endpoints endpoints = Manual("web", {"192.0.2.1", "fd00::1"});
  *endpoints.add_subsets() = Manual("web", {"192.0.2.2", "192.0.2.1"}).subsets(0);  // one of them twice
  *endpoints.add_subsets() = Manual("web", {"192.0.2.3"}, 81).subsets(0);
  std::vector<std::string> shapes;
  for (const EndpointSlice& slice : PlanMirror(endpoints, {}).create) {
    shapes.push_back(slice.address_type() + ":" + std::to_string(slice.ports(0).port()) + "=" +
                     std::to_string(slice.endpoints_size()));
  }
  EXPECT_THAT(shapes, UnorderedElementsAre("IPv4:80=2", "IPv6:80=1", "IPv4:81=1"));
}

TEST(PlanMirrorTest, WhatIsLeftOutIsCounted) {
  std::vector<std::string> ips = {"no address"};
  for (int i = 0; i < 1005; ++i) {
    ips.push_back("10.0." + std::to_string(i / 250) + "." + std::to_string(i % 250));
  }
  const MirrorPlan plan = PlanMirror(Manual("web", ips), {});
  EXPECT_EQ(plan.invalid, 1);
  EXPECT_EQ(plan.skipped, 6);
  EXPECT_EQ(plan.create.at(0).endpoints_size(), 1000);

  const MirrorPlan fewer = PlanMirror(Manual("web", ips), {}, 10);
  EXPECT_EQ(fewer.skipped, 996);
  EXPECT_EQ(fewer.create.at(0).endpoints_size(), 10);
}

class MirroringTest : public ::testing::Test {
 protected:
  void Drain() { cluster_.Drain({&controller_}); }
  void Start(const corev1::Service& service, const corev1::Endpoints& endpoints) {
    ASSERT_TRUE(cluster_.api.Create(service));
    ASSERT_TRUE(cluster_.api.Create(endpoints));
    cluster_.Start();
    Drain();
  }
  void Update(const corev1::Endpoints& wanted) {
    auto live = cluster_.Get<corev1::Endpoints>("default", "web");
    *live.mutable_subsets() = wanted.subsets();
    ASSERT_TRUE(cluster_.api.Update(live));
    Drain();
  }
  std::vector<EndpointSlice> Slices() { return cluster_.List<EndpointSlice>("default"); }
  std::vector<std::string> Addresses() {
    std::vector<std::string> out;
    for (const EndpointSlice& slice : Slices()) {
      for (const auto& endpoint : slice.endpoints()) out.push_back(endpoint.addresses(0));
    }
    return out;
  }

  TestCluster cluster_;
  EndpointSliceMirroringController& controller_ = cluster_.Make<EndpointSliceMirroringController>();
};

TEST_F(MirroringTest, FollowsTheEndpoints) {
  Start(Bare("web"), Manual("web", {"192.0.2.1"}));
  EXPECT_THAT(Addresses(), UnorderedElementsAre("192.0.2.1"));
  const std::string name = Slices().at(0).metadata().name();
  Update(Manual("web", {"192.0.2.2", "192.0.2.3"}));
  EXPECT_THAT(Addresses(), UnorderedElementsAre("192.0.2.2", "192.0.2.3"));
  Update(Manual("web", {"192.0.2.2"}, 8080));
  ASSERT_EQ(Slices().size(), 1u);
  EXPECT_EQ(Slices()[0].metadata().name(), name) << "used again";
  EXPECT_EQ(Slices()[0].ports(0).port(), 8080);
  cluster_.fake->ForgetRequests();
  auto live = cluster_.Get<corev1::Endpoints>("default", "web");
  (*live.mutable_metadata()->mutable_annotations())["endpoints.kubernetes.io/last-change-trigger-time"] = "x";
  ASSERT_TRUE(cluster_.api.Update(live));
  Drain();
  for (const std::string& request : cluster_.fake->Requests()) {
    EXPECT_EQ(request.find("endpointslices"), std::string::npos) << request << ": nothing has changed";
  }
  ASSERT_TRUE(cluster_.api.Delete<EndpointSlice>("default", name));
  Drain();
  EXPECT_THAT(Addresses(), UnorderedElementsAre("192.0.2.2")) << "made again";
  EXPECT_THAT(cluster_.errors, IsEmpty());
}

TEST_F(MirroringTest, IsCounted) {
  const std::string prefix = "endpoint_slice_mirroring_controller_";
  const Growth created(prefix + "changes{operation=\"create\"}"),
      updated(prefix + "changes{operation=\"update\"}"), added(prefix + "endpoints_added_per_sync_sum"),
      removed(prefix + "endpoints_removed_per_sync_sum"), changed(prefix + "endpoints_updated_per_sync_sum"),
      skipped(prefix + "addresses_skipped_per_sync_sum"), desired(prefix + "endpoints_desired"),
      slices(prefix + "num_endpoint_slices");
  Start(Bare("web"), Manual("web", {"192.0.2.1", "192.0.2.2", "nonsense"}));
  EXPECT_EQ(created(), 1);
  EXPECT_EQ(added(), 2);
  EXPECT_GE(skipped(), 1);
  EXPECT_EQ(desired(), 2);
  EXPECT_EQ(slices(), 1);
  Update(Manual("web", {"192.0.2.2!", "192.0.2.3"}));
  EXPECT_EQ(updated(), 1);
  EXPECT_EQ(added(), 3);
  EXPECT_EQ(removed(), 1);
  EXPECT_EQ(changed(), 1) << "not ready any more";
  ASSERT_TRUE(cluster_.api.Delete<corev1::Service>("default", "web"));
  Drain();
  EXPECT_EQ(desired(), 0);
  EXPECT_EQ(slices(), 0);
}

TEST_F(MirroringTest, GoesWithServiceEndpointsOrSelector) {
  const std::function<void(TestCluster&)> ends[] = {
      [](TestCluster& c) { ASSERT_TRUE(c.api.Delete<corev1::Service>("default", "web")); },
      [](TestCluster& c) { ASSERT_TRUE(c.api.Delete<corev1::Endpoints>("default", "web")); },
      [](TestCluster& c) {
        auto service = c.Get<corev1::Service>("default", "web");
        (*service.mutable_spec()->mutable_selector())["app"] = "web";
        ASSERT_TRUE(c.api.Update(service));
      },
      [](TestCluster& c) {
        auto endpoints = c.Get<corev1::Endpoints>("default", "web");
        (*endpoints.mutable_metadata()->mutable_labels())["endpointslice.kubernetes.io/skip-mirror"] = "true";
        ASSERT_TRUE(c.api.Update(endpoints));
      }};
  for (const auto& end : ends) {
    TestCluster cluster;
    auto& controller = cluster.Make<EndpointSliceMirroringController>();
    ASSERT_TRUE(cluster.api.Create(Bare("web")));
    ASSERT_TRUE(cluster.api.Create(Manual("web", {"192.0.2.1"})));
    cluster.Start();
    cluster.Drain({&controller});
    ASSERT_EQ(cluster.List<EndpointSlice>().size(), 1u);
    end(cluster);
    cluster.Drain({&controller});
    EXPECT_TRUE(cluster.List<EndpointSlice>().empty());
  }
}

TEST_F(MirroringTest, LeavesServicesWithSelectorsAlone) {
  corev1::Service service = Bare("web");
  (*service.mutable_spec()->mutable_selector())["app"] = "web";
  Start(service, Manual("web", {"192.0.2.1"}));
  EXPECT_THAT(Slices(), IsEmpty());
}

TEST_F(MirroringTest, InvalidAddressesAreTold) {
  Start(Bare("web"), Manual("web", {"192.0.2.1", "none"}));
  EXPECT_THAT(cluster_.Events(),
              Contains("InvalidIPAddress: Skipped 1 invalid IP addresses when mirroring to EndpointSlices"));
}

TEST_F(MirroringTest, FailedWritesAreTold) {
  cluster_.fake->SetInterceptor(
      [](const client::ApiRequest& request) -> std::optional<Result<client::ApiResponse>> {
        if (request.method != "POST" || request.target.find("endpointslices") == std::string::npos) {
          return std::nullopt;
        }
        return Error(Code::kForbidden, "not today");
      });
  Start(Bare("web"), Manual("web", {"192.0.2.1"}));
  EXPECT_THAT(cluster_.Events(), Contains(::testing::StartsWith(
                                     "FailedToUpdateEndpointSlices: Error updating Endpoint Slices for "
                                     "Endpoints default/web: ")));
}

}  // namespace
}  // namespace keelson::controllers
