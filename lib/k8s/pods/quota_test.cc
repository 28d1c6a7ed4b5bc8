#include "lib/k8s/pods/quota.h"

#include <gtest/gtest.h>

#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/api/proto/resource_v1.pb.h"

namespace keelson::k8s {
namespace {

template <typename T>
T Parse(std::string_view text) {
  T object;
  Result<> parsed = api::DecodeJson(text, object);
  EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message());
  return object;
}

std::string Print(const ResourceList& list) {
  std::string text;
  for (const auto& [name, amount] : list) text += (text.empty() ? "" : " ") + name + "=" + amount.ToString();
  return text;
}

template <typename T>
std::string UsageOf(std::string_view json, WallTime now = {}) {
  return Print(QuotaUsage(api::ResourceOf<T>(), Parse<T>(json), now));
}

TEST(Quota, UsageOfPods) {
  EXPECT_EQ(UsageOf<corev1::Pod>(R"({"spec":{"containers":[
    {"name":"a","resources":{"requests":{"cpu":"100m","memory":"1Gi","example.com/gpu":"2"},
                             "limits":{"cpu":"1","example.com/gpu":"2","ephemeral-storage":"1Gi"}}},
    {"name":"b","resources":{"requests":{"cpu":"400m","hugepages-2Mi":"4Mi"}}}]}})"),
            "count/pods=1 cpu=500m hugepages-2Mi=4Mi limits.cpu=1 limits.ephemeral-storage=1Gi memory=1Gi "
            "pods=1 requests.cpu=500m requests.example.com/gpu=2 requests.hugepages-2Mi=4Mi "
            "requests.memory=1Gi");
  EXPECT_EQ(UsageOf<corev1::Pod>(R"({"spec":{"containers":[{"name":"a"}]},"status":{"phase":"Failed"}})"),
            "count/pods=1");
  const char* stuck = R"({"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z",
                          "deletionGracePeriodSeconds":30},"spec":{"containers":[{"name":"a"}]}})";
  const WallTime deleted = api::FromTime(Parse<corev1::Pod>(stuck).metadata().deletion_timestamp());
  EXPECT_EQ(UsageOf<corev1::Pod>(stuck, deleted + std::chrono::seconds(29)), "count/pods=1 pods=1");
  EXPECT_EQ(UsageOf<corev1::Pod>(stuck, deleted + std::chrono::seconds(31)), "count/pods=1");
}

TEST(Quota, UsageOfOtherKinds) {
  EXPECT_EQ(UsageOf<corev1::Service>(R"({"spec":{"type":"NodePort","ports":[{"port":1},{"port":2}]}})"),
            "count/services=1 services=1 services.loadbalancers=0 services.nodeports=2");
  EXPECT_EQ(UsageOf<corev1::Service>(R"({"spec":{"type":"LoadBalancer","allocateLoadBalancerNodePorts":false,
                                         "ports":[{"port":1},{"port":2,"nodePort":30001}]}})"),
            "count/services=1 services=1 services.loadbalancers=1 services.nodeports=1");
  EXPECT_EQ(UsageOf<corev1::PersistentVolumeClaim>(
                R"({"spec":{"storageClassName":"gold","resources":{"requests":{"storage":"1Gi"}}},
                    "status":{"allocatedResources":{"storage":"3Gi"}}})"),
            "count/persistentvolumeclaims=1 gold.storageclass.storage.k8s.io/persistentvolumeclaims=1 "
            "gold.storageclass.storage.k8s.io/requests.storage=3Gi persistentvolumeclaims=1 "
            "requests.storage=3Gi");
  EXPECT_EQ(UsageOf<api::resource::v1::ResourceClaim>(R"({"spec":{"devices":{"requests":[
      {"name":"a","exactly":{"deviceClassName":"gpu","allocationMode":"ExactCount","count":2}},
      {"name":"b","exactly":{"deviceClassName":"nic","allocationMode":"All"}},
      {"name":"c","firstAvailable":[{"name":"x","deviceClassName":"gpu","count":4},
                                    {"name":"y","deviceClassName":"gpu","count":1}]}]}}})"),
            "count/resourceclaims.resource.k8s.io=1 gpu.deviceclass.resource.k8s.io/devices=6 "
            "nic.deviceclass.resource.k8s.io/devices=32");
  EXPECT_EQ(UsageOf<corev1::Secret>("{}"), "count/secrets=1 secrets=1");
  EXPECT_EQ(UsageOf<appsv1::Deployment>("{}"), "count/deployments.apps=1");
}

TEST(Quota, ResourcesOfKinds) {
  struct Case {
    const api::ResourceInfo& info;
    const char* resource;
    bool counts;
  } cases[] = {
      {api::ResourceOf<corev1::Pod>(), "limits.memory", true},
      {api::ResourceOf<corev1::Pod>(), "requests.example.com/gpu", true},
      {api::ResourceOf<corev1::Pod>(), "hugepages-1Gi", true},
      {api::ResourceOf<corev1::Pod>(), "requests.storage", false},
      {api::ResourceOf<corev1::Pod>(), "services", false},
      {api::ResourceOf<corev1::Service>(), "services.nodeports", true},
      {api::ResourceOf<corev1::PersistentVolumeClaim>(), "requests.storage", true},
      {api::ResourceOf<corev1::PersistentVolumeClaim>(), "a.storageclass.storage.k8s.io/requests.storage",
       true},
      {api::ResourceOf<appsv1::Deployment>(), "count/deployments.apps", true},
      {api::ResourceOf<appsv1::Deployment>(), "deployments", false},
      {api::ResourceOf<corev1::ConfigMap>(), "configmaps", true},
  };
  for (const Case& one : cases) EXPECT_EQ(QuotaCounts(one.info, one.resource), one.counts) << one.resource;
}

TEST(Quota, Scopes) {
  auto in = [](const char* pod, const char* name, const char* op = "Exists",
               std::vector<std::string> values = {}) {
    QuotaScope scope;
    scope.set_scope_name(name);
    scope.set_operator_(op);
    for (std::string& value : values) scope.add_values(std::move(value));
    return IsInScope(api::ResourceOf<corev1::Pod>(), Parse<corev1::Pod>(pod), scope);
  };
  const char* plain = R"({"spec":{"containers":[{"name":"a"}]}})";
  const char* ending = R"({"spec":{"activeDeadlineSeconds":5,"containers":[
                          {"name":"a","resources":{"requests":{"cpu":"1"}}}],"priorityClassName":"high"}})";
  EXPECT_TRUE(in(ending, "Terminating"));
  EXPECT_FALSE(in(plain, "Terminating"));
  EXPECT_TRUE(in(plain, "NotTerminating"));
  EXPECT_TRUE(in(plain, "BestEffort"));
  EXPECT_TRUE(in(ending, "NotBestEffort"));
  EXPECT_TRUE(in(ending, "PriorityClass"));
  EXPECT_FALSE(in(plain, "PriorityClass"));
  EXPECT_TRUE(in(ending, "PriorityClass", "In", {"low", "high"}));
  EXPECT_FALSE(in(ending, "PriorityClass", "NotIn", {"high"}));
  EXPECT_TRUE(in(plain, "PriorityClass", "NotIn", {"high"}));
  EXPECT_TRUE(in(plain, "PriorityClass", "DoesNotExist"));
  EXPECT_FALSE(in(plain, "CrossNamespacePodAffinity"));
  EXPECT_TRUE(in(R"({"spec":{"containers":[],"affinity":{"podAntiAffinity":{
      "preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"podAffinityTerm":{"topologyKey":"k",
      "namespaces":["x"]}}]}}}})",
                 "CrossNamespacePodAffinity"));
}

TEST(Quota, WhatMustBeSaid) {
  const api::ResourceInfo& pods = api::ResourceOf<corev1::Pod>();
  auto pod = Parse<corev1::Pod>(R"({"spec":{"initContainers":[{"name":"i"}],"containers":[
      {"name":"c","resources":{"limits":{"cpu":"1"}}},{"name":"b"}]}})");
  EXPECT_EQ(QuotaProblem(pods, pod, {"limits.cpu", "memory", "pods", "requests.example.com/gpu"}),
            "must specify limits.cpu for: b,i; memory for: b,c,i");
  EXPECT_EQ(QuotaProblem(pods, pod, {"pods"}), "");
  (*pod.mutable_spec()->mutable_resources()->mutable_limits())["cpu"] = api::Amount::FromInt(1).ToQuantity();
  EXPECT_EQ(QuotaProblem(pods, pod, {"limits.cpu"}), "");
}

}  // namespace
}  // namespace keelson::k8s
