// The writable parts of a kind, and fields that the server fills in: volumes, certificates,
// autoscalers, custom resources and the like.
#include "controlplane/registry/testing/fixture.h"
#include "lib/api/proto/apiextensions_v1.pb.h"
#include "lib/api/proto/apiregistration_v1.pb.h"
#include "lib/api/proto/autoscaling_v2.pb.h"
#include "lib/api/proto/certificates_v1.pb.h"
#include "lib/api/proto/resource_v1.pb.h"
#include "lib/api/proto/scheduling_v1.pb.h"

namespace keelson::registry {
namespace {

namespace apiextensionsv1 = api::apiextensions::v1;
namespace apiregistrationv1 = api::apiregistration::v1;
namespace autoscalingv2 = api::autoscaling::v2;
namespace certificatesv1 = api::certificates::v1;
namespace resourcev1 = api::resource::v1;
namespace schedulingv1 = api::scheduling::v1;

class StrategyTest : public RegistryTest {
 protected:
  template <typename T>
  T From(const std::string& json) {
    T object;
    const Result<> decoded = api::DecodeJson(json, object);
    EXPECT_TRUE(decoded) << json;
    return object;
  }
  template <typename T>
  Result<T> Make(const std::string& json, std::string_view ns = "") {
    return Create(From<T>(json), ns);
  }
};

TEST_F(StrategyTest, VolumesTellWhenTheirPhaseChanged) {
  auto made = Make<corev1::PersistentVolume>(
      R"({"metadata":{"name":"v"},"spec":{"accessModes":["ReadWriteOnce"],"capacity":{"storage":"1Gi"},)"
      R"("hostPath":{"path":"/a"}},"status":{"phase":"Bound"}})");
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_EQ(made->status().phase(), "Pending");
  EXPECT_TRUE(made->status().has_last_phase_transition_time());
  corev1::PersistentVolume bound = *made;
  bound.mutable_status()->set_phase("Bound");
  bound.mutable_status()->mutable_last_phase_transition_time()->set_seconds(1);
  bound.mutable_spec()->set_persistent_volume_reclaim_policy("Delete");
  auto written = Update(bound, &Row("", "persistentvolumes/status"));
  ASSERT_TRUE(written) << written.error().message();
  EXPECT_EQ(written->status().phase(), "Bound");
  EXPECT_EQ(written->status().last_phase_transition_time().seconds(), 1);
  EXPECT_EQ(written->spec().persistent_volume_reclaim_policy(), "Retain");
  corev1::PersistentVolume same = *written;
  same.mutable_status()->clear_last_phase_transition_time();
  same.mutable_status()->set_message("hello");
  written = Update(same, &Row("", "persistentvolumes/status"));
  ASSERT_TRUE(written);
  EXPECT_EQ(written->status().last_phase_transition_time().seconds(), 1);
}

TEST_F(StrategyTest, ClaimsSettleTheirSources) {
  const std::string rest = R"("accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}})";
  auto by_source = Make<corev1::PersistentVolumeClaim>(
      R"({"metadata":{"name":"a"},"spec":{"dataSource":{"kind":"PersistentVolumeClaim","name":"x"},)" + rest +
          "}",
      "default");
  ASSERT_TRUE(by_source) << by_source.error().message();
  EXPECT_EQ(by_source->spec().data_source_ref().name(), "x");
  EXPECT_EQ(by_source->status().phase(), "Pending");
  auto by_reference = Make<corev1::PersistentVolumeClaim>(
      R"({"metadata":{"name":"b"},"spec":{"dataSourceRef":{"apiGroup":"a.io","kind":"Odd","name":"x"},)" +
          rest + "}",
      "default");
  ASSERT_TRUE(by_reference) << by_reference.error().message();
  EXPECT_EQ(by_reference->spec().data_source().kind(), "Odd");
  auto odd = Make<corev1::PersistentVolumeClaim>(
      R"({"metadata":{"name":"c"},"spec":{"dataSource":{"apiGroup":"a.io","kind":"Odd","name":"x"},)" + rest +
          "}",
      "default");
  ASSERT_TRUE(odd) << odd.error().message();
  EXPECT_FALSE(odd->spec().has_data_source());
}

TEST_F(StrategyTest, RequestsAreDecidedByApproversOnly) {
  constexpr char kRequest[] =
      "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUEwd0J3SUJBREFBTUFBd0FBTUEKLS0tLS1FTkQgQ0VSVElGSUNBVE"
      "UgUkVR"
      "VUVTVC0tLS0tCg==";
  using Request = certificatesv1::CertificateSigningRequest;
  auto made = Make<Request>(R"({"metadata":{"name":"r"},"spec":{"request":")" + std::string(kRequest) +
                            R"(","signerName":"a.io/s","usages":["any"],"username":"liar"}})");
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_EQ(made->spec().username(), "");
  Request approved = *made;
  auto& condition = *approved.mutable_status()->add_conditions();
  condition.set_type("Approved");
  condition.set_status("True");
  auto refused = Update(approved, &Row("certificates.k8s.io", "certificatesigningrequests/status"));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("updates may not add a condition of type \"Approved\""),
            std::string::npos);
  (*approved.mutable_metadata()->mutable_labels())["by"] = "me";
  auto written = Update(approved, &Row("certificates.k8s.io", "certificatesigningrequests/approval"));
  ASSERT_TRUE(written) << written.error().message();
  ASSERT_EQ(written->status().conditions_size(), 1);
  EXPECT_TRUE(written->status().conditions(0).has_last_update_time());
  EXPECT_TRUE(written->status().conditions(0).has_last_transition_time());
  EXPECT_EQ(written->metadata().labels().at("by"), "me");
  // Status writers cannot change a decision's text.
  Request reworded = *written;
  reworded.mutable_status()->mutable_conditions(0)->set_message("changed");
  written = Update(reworded, &Row("certificates.k8s.io", "certificatesigningrequests/status"));
  ASSERT_TRUE(written) << written.error().message();
  EXPECT_EQ(written->status().conditions(0).message(), "");
}

TEST_F(StrategyTest, AutoscalersAreOneInBothVersions) {
  auto made = Make<autoscalingv2::HorizontalPodAutoscaler>(
      R"({"metadata":{"name":"h"},"spec":{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"d"},"maxReplicas":3,"metrics":[)"
      R"({"type":"Pods","pods":{"metric":{"name":"qps"},"target":{"type":"AverageValue","averageValue":"5"}}}]}})",
      "default");
  ASSERT_TRUE(made) << made.error().message();
  const ResourceInfo& v1 = *api::FindResource("autoscaling", "v1", "horizontalpodautoscalers");
  const ResourceInfo& v1_status = *api::FindResource("autoscaling", "v1", "horizontalpodautoscalers/status");
  auto old = Get<autoscalingv1::HorizontalPodAutoscaler>("h");
  ASSERT_TRUE(old) << old.error().message();
  EXPECT_TRUE(old->metadata().annotations().contains("autoscaling.alpha.kubernetes.io/metrics"));
  autoscalingv1::HorizontalPodAutoscaler status = *old;
  status.mutable_status()->set_current_cpu_utilization_percentage(7);
  status.mutable_metadata()->mutable_annotations()->clear();
  auto written = Update(status, &v1_status);
  ASSERT_TRUE(written) << written.error().message();
  autoscalingv1::HorizontalPodAutoscaler grown = *written;
  grown.mutable_spec()->set_max_replicas(9);
  written = Update(grown, &v1);
  ASSERT_TRUE(written) << written.error().message();
  auto now = Get<autoscalingv2::HorizontalPodAutoscaler>("h");
  ASSERT_TRUE(now);
  EXPECT_EQ(now->spec().max_replicas(), 9);
  ASSERT_EQ(now->spec().metrics_size(), 1);
  EXPECT_EQ(now->spec().metrics(0).pods().metric().name(), "qps");
  ASSERT_EQ(now->status().current_metrics_size(), 1);
  EXPECT_EQ(now->status().current_metrics(0).resource().current().average_utilization(), 7);
  EXPECT_TRUE(now->metadata().annotations().empty());
}

TEST_F(StrategyTest, GenerationsCountWhatTheKindSays) {
  auto slice = Make<discoveryv1::EndpointSlice>(
      R"({"metadata":{"name":"s"},"addressType":"IPv4","endpoints":[{"addresses":["10.0.0.1"],"deprecatedTopology":{"a":"b"}}]})",
      "default");
  ASSERT_TRUE(slice) << slice.error().message();
  EXPECT_TRUE(slice->endpoints(0).deprecated_topology().empty());
  EXPECT_EQ(slice->metadata().generation(), 1);
  (*slice->mutable_metadata()->mutable_annotations())["a"] = "b";
  auto written = Update(*slice);
  ASSERT_TRUE(written);
  EXPECT_EQ(written->metadata().generation(), 1);
  (*written->mutable_metadata()->mutable_labels())["kubernetes.io/service-name"] = "other";
  written = Update(*written);
  ASSERT_TRUE(written);
  EXPECT_EQ(written->metadata().generation(), 2);

  auto priority = Make<schedulingv1::PriorityClass>(R"({"metadata":{"name":"p"},"value":5})");
  ASSERT_TRUE(priority);
  priority->set_description("better");
  priority = Update(*priority);
  ASSERT_TRUE(priority);
  EXPECT_EQ(priority->metadata().generation(), 1);
}

TEST_F(StrategyTest, WhatIsOffIsDropped) {
  auto set = Make<appsv1::StatefulSet>(
      R"({"metadata":{"name":"s"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":)"
      R"({"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}},"updateStrategy":{"rollingUpdate":)"
      R"({"maxUnavailable":0,"partition":1}}}})",
      "default");
  ASSERT_TRUE(set) << set.error().message();
  EXPECT_FALSE(set->spec().update_strategy().rolling_update().has_max_unavailable());
  EXPECT_EQ(set->spec().update_strategy().rolling_update().partition(), 1);
  appsv1::StatefulSet changed = *set;
  changed.mutable_spec()
      ->mutable_update_strategy()
      ->mutable_rolling_update()
      ->mutable_max_unavailable()
      ->set_int_val(2);
  auto written = Update(changed);
  ASSERT_TRUE(written) << written.error().message();
  EXPECT_FALSE(written->spec().update_strategy().rolling_update().has_max_unavailable());
  EXPECT_EQ(written->metadata().resource_version(), set->metadata().resource_version());
}

TEST_F(StrategyTest, ServersFillInStatus) {
  using Definition = apiextensionsv1::CustomResourceDefinition;
  auto definition = Make<Definition>(
      R"({"metadata":{"name":"cats.example.com"},"spec":{"group":"example.com","scope":"Namespaced",)"
      R"("names":{"plural":"cats","kind":"Cat"},"versions":[{"name":"v1","served":true,"storage":true,)"
      R"("schema":{"openAPIV3Schema":{"type":"object"}}}]}})");
  ASSERT_TRUE(definition) << definition.error().message();
  ASSERT_EQ(definition->status().stored_versions_size(), 1);
  EXPECT_EQ(definition->status().stored_versions(0), "v1");
  // Status writers cannot change metadata.
  Definition labelled = *definition;
  (*labelled.mutable_metadata()->mutable_labels())["a"] = "b";
  labelled.mutable_status()->set_observed_generation(1);
  auto written = Update(labelled, &Row("apiextensions.k8s.io", "customresourcedefinitions/status"));
  ASSERT_TRUE(written) << written.error().message();
  EXPECT_TRUE(written->metadata().labels().empty());

  auto local = Make<apiregistrationv1::APIService>(
      R"({"metadata":{"name":"v1.example.com"},"spec":{"group":"example.com","version":"v1",)"
      R"("groupPriorityMinimum":100,"versionPriority":10}})");
  ASSERT_TRUE(local) << local.error().message();
  ASSERT_EQ(local->status().conditions_size(), 1);
  EXPECT_EQ(local->status().conditions(0).reason(), "Local");

  auto account = Make<corev1::ServiceAccount>(
      R"({"metadata":{"name":"a"},"secrets":[{"name":"s","namespace":"elsewhere","kind":"Secret"}]})",
      "default");
  ASSERT_TRUE(account);
  EXPECT_EQ(account->secrets(0).namespace_(), "");
  EXPECT_EQ(account->secrets(0).name(), "s");

  auto lease = Make<coordinationv1::Lease>(
      R"({"metadata":{"name":"l"},"spec":{"strategy":"OldestEmulationVersion","preferredHolder":"me"}})",
      "default");
  ASSERT_TRUE(lease) << lease.error().message();
  EXPECT_FALSE(lease->spec().has_strategy());
  EXPECT_FALSE(lease->spec().has_preferred_holder());
}

TEST_F(StrategyTest, WhatDriversSayGoesWithTheAllocation) {
  auto claim = Make<resourcev1::ResourceClaim>(
      R"({"metadata":{"name":"c"},"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"d"}}]}},)"
      R"("status":{"reservedFor":[{"resource":"pods","name":"p","uid":"u"}]}})",
      "default");
  ASSERT_TRUE(claim) << claim.error().message();
  EXPECT_TRUE(claim->status().reserved_for().empty());
  const ResourceInfo& row = Row("resource.k8s.io", "resourceclaims/status");
  const auto allocate = [](resourcev1::ResourceClaim& of) {
    auto& result = *of.mutable_status()->mutable_allocation()->mutable_devices()->add_results();
    result.set_request("r");
    result.set_driver("d.io");
    result.set_pool("p");
    result.set_device("a");
  };
  allocate(*claim);
  auto& device = *claim->mutable_status()->add_devices();
  device.set_driver("d.io");
  device.set_pool("p");
  device.set_device("a");
  auto told = Update(*claim, &row);
  ASSERT_TRUE(told) << told.error().message();
  ASSERT_EQ(told->status().devices_size(), 1);
  told->mutable_status()->clear_allocation();
  auto freed = Update(*told, &row);
  ASSERT_TRUE(freed) << freed.error().message();
  EXPECT_TRUE(freed->status().devices().empty());
}

TEST_F(StrategyTest, AlphaFieldsOfSlicesAreDropped) {
  const std::string slice =
      R"({"metadata":{"name":"s"},"spec":{"driver":"d.io","nodeName":"n","pool":{"name":"p","generation":1,)"
      R"("resourceSliceCount":1},"devices":[{"name":"a","attributes":{"x":{"int":1}},)"
      R"("nodeAllocatableResourceMappings":{"cpu":{}}}]}})";
  auto made = Make<resourcev1::ResourceSlice>(slice);
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_TRUE(made->spec().devices(0).node_allocatable_resource_mappings().empty());
  (*made->mutable_spec()->mutable_devices(0)->mutable_attributes())["x"].clear_int_();
  (*made->mutable_spec()->mutable_devices(0)->mutable_attributes())["x"].add_ints(1);
  // Invalid without its list.
  EXPECT_EQ(Update(*made).error().code(), Code::kInvalid);
}

}  // namespace
}  // namespace keelson::registry
