#include "lib/k8s/defaulting/defaulting.h"

#include <gtest/gtest.h>

#include "lib/api/codec/codec.h"
#include "lib/api/proto/batch_v1.pb.h"
#include "lib/api/scheme.h"
#include "lib/api/testing/random_object.h"

namespace keelson::k8s {
namespace {

template <typename T>
T Defaulted(std::string_view json) {
  T object;
  const Result<> decoded = api::DecodeJson(json, object);
  EXPECT_TRUE(decoded) << (decoded ? "" : decoded.error().message());
  SetDefaults(object);
  return object;
}

TEST(DefaultPod, ANegativeGracePeriodIsOneSecondButInATemplate) {
  const std::string spec =
      R"("spec":{"terminationGracePeriodSeconds":-1,"containers":[{"name":"c","image":"a"}]})";
  const auto pod = Defaulted<corev1::Pod>("{" + spec + "}");
  EXPECT_EQ(pod.spec().termination_grace_period_seconds(), 1);
  const auto deployment = Defaulted<appsv1::Deployment>(R"({"spec":{"template":{)" + spec + "}}}");
  EXPECT_EQ(deployment.spec().template_().spec().termination_grace_period_seconds(), -1);
}

TEST(DefaultPod, FillsWhatUsersLeaveOut) {
  const auto pod = Defaulted<corev1::Pod>(R"({"spec":{"containers":[{"name":"c","image":"nginx",
      "ports":[{"containerPort":80}],"env":[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}],
      "livenessProbe":{"httpGet":{"port":80}}}]}})");
  const corev1::PodSpec& spec = pod.spec();
  EXPECT_EQ(spec.restart_policy(), "Always");
  EXPECT_EQ(spec.dns_policy(), "ClusterFirst");
  EXPECT_EQ(spec.scheduler_name(), "default-scheduler");
  EXPECT_EQ(spec.termination_grace_period_seconds(), 30);
  EXPECT_TRUE(spec.has_security_context());
  EXPECT_TRUE(spec.enable_service_links());
  const corev1::Container& container = spec.containers(0);
  EXPECT_EQ(container.termination_message_path(), "/dev/termination-log");
  EXPECT_EQ(container.termination_message_policy(), "File");
  EXPECT_EQ(container.image_pull_policy(), "Always");
  EXPECT_EQ(container.ports(0).protocol(), "TCP");
  EXPECT_EQ(container.env(0).value_from().field_ref().api_version(), "v1");
  const corev1::Probe& probe = container.liveness_probe();
  EXPECT_EQ(probe.handler().http_get().path(), "/");
  EXPECT_EQ(probe.handler().http_get().scheme(), "HTTP");
  EXPECT_EQ(probe.timeout_seconds(), 1);
  EXPECT_EQ(probe.period_seconds(), 10);
  EXPECT_EQ(probe.success_threshold(), 1);
  EXPECT_EQ(probe.failure_threshold(), 3);
}

TEST(DefaultPod, PullPolicyFollowsTheTag) {
  const std::pair<const char*, const char*> cases[] = {
      {"nginx", "Always"},
      {"nginx:latest", "Always"},
      {"nginx:1.27", "IfNotPresent"},
      {"host:5000/nginx", "Always"},
      {"host:5000/nginx:1", "IfNotPresent"},
      {"nginx@sha256:0123", "IfNotPresent"},
      {"nginx:latest@sha256:0123", "Always"},
      {"", "IfNotPresent"},
  };
  for (const auto& [image, policy] : cases) {
    corev1::Pod pod;
    pod.mutable_spec()->add_containers()->set_image(image);
    SetDefaults(pod);
    EXPECT_EQ(pod.spec().containers(0).image_pull_policy(), policy) << image;
  }
}

TEST(DefaultPod, RequestsFollowLimitsInPodsOnly) {
  constexpr char kSpec[] =
      R"({"containers":[{"name":"c","image":"i:1","resources":{"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"100m"}}}]})";
  const auto pod = Defaulted<corev1::Pod>(std::string(R"({"spec":)") + kSpec + "}");
  const auto& requests = pod.spec().containers(0).resources().requests();
  EXPECT_EQ(requests.at("cpu").string(), "100m");
  EXPECT_EQ(requests.at("memory").string(), "1Gi");
  const auto deployment =
      Defaulted<appsv1::Deployment>(std::string(R"({"spec":{"template":{"spec":)") + kSpec + "}}}");
  EXPECT_FALSE(deployment.spec().template_().spec().containers(0).resources().requests().contains("memory"));
  EXPECT_FALSE(deployment.spec().template_().spec().has_enable_service_links());
}

TEST(DefaultPod, HostNetworkPublishesPorts) {
  const auto pod = Defaulted<corev1::Pod>(
      R"({"spec":{"hostNetwork":true,"containers":[{"name":"c","ports":[{"containerPort":80}]}]}})");
  EXPECT_EQ(pod.spec().containers(0).ports(0).host_port(), 80);
}

TEST(DefaultPod, ServiceAccountHasTwoNames) {
  EXPECT_EQ(Defaulted<corev1::Pod>(R"({"spec":{"serviceAccount":"a"}})").spec().service_account_name(), "a");
  EXPECT_EQ(Defaulted<corev1::Pod>(R"({"spec":{"serviceAccountName":"b"}})").spec().service_account(), "b");
  const auto both = Defaulted<corev1::Pod>(R"({"spec":{"serviceAccountName":"b","serviceAccount":"a"}})");
  EXPECT_EQ(both.spec().service_account(), "b");
}

TEST(DefaultPod, Volumes) {
  const auto pod = Defaulted<corev1::Pod>(R"({"spec":{"volumes":[{"name":"none"},
      {"name":"s","secret":{"secretName":"x"}},{"name":"c","configMap":{"name":"x","defaultMode":0}},
      {"name":"h","hostPath":{"path":"/x"}},
      {"name":"p","projected":{"sources":[{"serviceAccountToken":{"path":"t"}},
        {"downwardAPI":{"items":[{"path":"n","fieldRef":{"fieldPath":"metadata.name"}}]}}]}}]}})");
  const auto source = [&](int i) -> const corev1::VolumeSource& {
    return pod.spec().volumes(i).volume_source();
  };
  EXPECT_TRUE(source(0).has_empty_dir());
  EXPECT_FALSE(source(1).has_empty_dir());
  EXPECT_EQ(source(1).secret().default_mode(), 0644);
  EXPECT_TRUE(source(2).config_map().has_default_mode());
  EXPECT_EQ(source(2).config_map().default_mode(), 0);
  EXPECT_TRUE(source(3).host_path().has_type());
  EXPECT_EQ(source(4).projected().default_mode(), 0644);
  EXPECT_EQ(source(4).projected().sources(0).service_account_token().expiration_seconds(), 3600);
  EXPECT_EQ(source(4).projected().sources(1).downward_api().items(0).field_ref().api_version(), "v1");
}

TEST(DefaultPod, PodLevelRequestsFollowContainersThenLimits) {
  const auto pod = Defaulted<corev1::Pod>(R"({"spec":{"resources":{"limits":{"cpu":"2","memory":"1Gi"}},
      "containers":[{"name":"a","resources":{"requests":{"cpu":"300m"}}},
                    {"name":"b","resources":{"requests":{"cpu":"200m"}}}]}})");
  EXPECT_EQ(pod.spec().resources().requests().at("cpu").string(), "500m");
  EXPECT_EQ(pod.spec().resources().requests().at("memory").string(), "1Gi");
}

TEST(DefaultPod, FineQuantitiesRoundUp) {
  const auto pod = Defaulted<corev1::Pod>(
      R"({"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"100u","memory":"1Mi"}}}]}})");
  EXPECT_EQ(pod.spec().containers(0).resources().requests().at("cpu").string(), "1m");
  EXPECT_EQ(pod.spec().containers(0).resources().requests().at("memory").string(), "1Mi");
}

TEST(DefaultService, TypesAndPorts) {
  const auto plain = Defaulted<corev1::Service>(R"({"spec":{"ports":[{"port":80}]}})");
  EXPECT_EQ(plain.spec().type(), "ClusterIP");
  EXPECT_EQ(plain.spec().session_affinity(), "None");
  EXPECT_EQ(plain.spec().internal_traffic_policy(), "Cluster");
  EXPECT_EQ(plain.spec().external_traffic_policy(), "");
  EXPECT_EQ(plain.spec().ports(0).protocol(), "TCP");
  EXPECT_EQ(plain.spec().ports(0).target_port().int_val(), 80);
  const auto balanced = Defaulted<corev1::Service>(
      R"({"spec":{"type":"LoadBalancer","sessionAffinity":"ClientIP","ports":[{"port":80,"targetPort":"http"}]}})");
  EXPECT_EQ(balanced.spec().external_traffic_policy(), "Cluster");
  EXPECT_TRUE(balanced.spec().allocate_load_balancer_node_ports());
  EXPECT_EQ(balanced.spec().session_affinity_config().client_ip().timeout_seconds(), 10800);
  EXPECT_EQ(balanced.spec().ports(0).target_port().str_val(), "http");
  const auto named = Defaulted<corev1::Service>(R"({"spec":{"type":"ExternalName","externalName":"x.y"}})");
  EXPECT_FALSE(named.spec().has_internal_traffic_policy());
}

TEST(DefaultWorkloads, Deployment) {
  const auto object = Defaulted<appsv1::Deployment>(R"({"spec":{}})");
  EXPECT_EQ(object.spec().replicas(), 1);
  EXPECT_EQ(object.spec().strategy().type(), "RollingUpdate");
  EXPECT_EQ(object.spec().strategy().rolling_update().max_surge().str_val(), "25%");
  EXPECT_EQ(object.spec().revision_history_limit(), 10);
  EXPECT_EQ(object.spec().progress_deadline_seconds(), 600);
  const auto recreate =
      Defaulted<appsv1::Deployment>(R"({"spec":{"replicas":0,"strategy":{"type":"Recreate"}}})");
  EXPECT_FALSE(recreate.spec().strategy().has_rolling_update());
  EXPECT_TRUE(recreate.spec().has_replicas());
  EXPECT_EQ(recreate.spec().replicas(), 0);
}

TEST(DefaultWorkloads, Job) {
  namespace batchv1 = api::batch::v1;
  const auto object =
      Defaulted<batchv1::Job>(R"({"spec":{"template":{"metadata":{"labels":{"a":"b"}}},"completions":3}})");
  EXPECT_EQ(object.spec().parallelism(), 1);
  EXPECT_EQ(object.spec().completions(), 3);
  EXPECT_EQ(object.spec().backoff_limit(), 6);
  EXPECT_EQ(object.spec().completion_mode(), "NonIndexed");
  EXPECT_EQ(object.metadata().labels().at("a"), "b");
}

TEST(DefaultConfig, NamespaceCarriesItsName) {
  const auto object = Defaulted<corev1::Namespace>(R"({"metadata":{"name":"n"}})");
  EXPECT_EQ(object.metadata().labels().at("kubernetes.io/metadata.name"), "n");
  EXPECT_EQ(object.status().phase(), "Active");
}

TEST(DefaultConfig, RoleBindingGroups) {
  const auto object = Defaulted<rbacv1::RoleBinding>(
      R"({"roleRef":{"kind":"Role","name":"r"},"subjects":[{"kind":"User","name":"u"},{"kind":"ServiceAccount","name":"s"}]})");
  EXPECT_EQ(object.role_ref().api_group(), "rbac.authorization.k8s.io");
  EXPECT_EQ(object.subjects(0).api_group(), "rbac.authorization.k8s.io");
  EXPECT_EQ(object.subjects(1).api_group(), "");
}

TEST(SetDefaults, ListsDefaultTheirItems) {
  corev1::SecretList list;
  list.add_items();
  SetDefaults(list);
  EXPECT_EQ(list.items(0).type(), "Opaque");
}

// A defaulted object is canonical, and defaulting it again changes nothing: a client that reads a stored
// object and writes it back does not change it.
TEST(SetDefaults, IsIdempotentAndCanonicalForEveryKind) {
  for (const api::ResourceInfo& info : api::Resources()) {
    if (info.IsSubresource()) continue;
    std::unique_ptr<api::Message> object(info.prototype().New());
    SetDefaults(*object);
    const std::string once = api::EncodeRaw(*object);
    SetDefaults(*object);
    EXPECT_EQ(once, api::EncodeRaw(*object)) << info.kind;
    std::unique_ptr<api::Message> again(info.prototype().New());
    ASSERT_TRUE(api::DecodeRaw(once, *again)) << info.kind;
    EXPECT_EQ(once, api::EncodeRaw(*again)) << info.kind;
  }
}

TEST(SetDefaults, IsIdempotentForRandomObjects) {
  std::mt19937 random(20);
  for (const api::ResourceInfo& info : api::Resources()) {
    if (info.IsSubresource()) continue;
    for (int i = 0; i < 20; ++i) {
      std::unique_ptr<api::Message> object(info.prototype().New());
      api::FillRandom(*object, random);
      SetDefaults(*object);
      const std::string once = api::EncodeRaw(*object);
      SetDefaults(*object);
      ASSERT_EQ(once, api::EncodeRaw(*object)) << info.kind << " " << object->ShortDebugString();
    }
  }
}

}  // namespace
}  // namespace keelson::k8s
