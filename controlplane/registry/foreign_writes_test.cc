// Writes in the form that other clients send, and objects in the form that other servers leave.
#include "controlplane/registry/testing/fixture.h"
#include "lib/api/proto/apiextensions_v1.pb.h"

namespace keelson::registry {
namespace {

using Definition = api::apiextensions::v1::CustomResourceDefinition;

class ForeignWrites : public RegistryTest {
 protected:
  static bool Owns(const metav1::ObjectMeta& meta, std::string_view manager, std::string_view field) {
    for (const auto& entry : meta.managed_fields()) {
      if (entry.manager() == manager && entry.fields_v1().raw().find(field) != std::string::npos) return true;
    }
    return false;
  }
  static WriteOptions As(const std::string& manager) {
    WriteOptions options;
    options.field_manager = manager;
    return options;
  }
};

TEST_F(ForeignWrites, CreatesMayCarryAVersionThatIsNone) {
  struct Case {
    const char* version;
    bool stored;  // otherwise refused, unless it is a dry run
  };
  const Case cases[] = {{"", true},   {"0", true},   {"000", true}, {"abc", true},
                        {"-5", true}, {"+5", true},  {"5x", true},  {"99999999999999999999999", true},
                        {"5", false}, {"007", false}};
  int count = 0;
  for (const Case& one : cases) {
    SCOPED_TRACE(one.version);
    auto map = ConfigMap("m" + std::to_string(++count));
    map.mutable_metadata()->set_resource_version(one.version);
    WriteOptions dry;
    dry.dry_run = true;
    auto tried = Create(map, "default", dry);
    ASSERT_TRUE(tried) << tried.error().message();
    EXPECT_EQ(tried->metadata().resource_version(), one.version)
        << "a dry run shows what the client has said";
    auto made = Create(map);
    ASSERT_EQ(static_cast<bool>(made), one.stored);
    if (made) {
      EXPECT_GT(std::stoll(made->metadata().resource_version()), 0);
      EXPECT_NE(made->metadata().resource_version(), one.version);
      EXPECT_EQ(Get<corev1::ConfigMap>(map.metadata().name())->metadata().resource_version(),
                made->metadata().resource_version());
    } else {
      EXPECT_EQ(made.error().message(), "resourceVersion should not be set on objects to be created");
      EXPECT_EQ(made.error().code(), Code::kInternal);
    }
  }
  // kubeadm's form of the cluster's DNS Service.
  auto service = Service("kube-dns");
  service.mutable_metadata()->set_resource_version("0");
  EXPECT_TRUE(Create(service));
}

TEST_F(ForeignWrites, PatchesMayNameAKind) {
  ASSERT_TRUE(Create(Deployment("d")));
  constexpr char kElse[] = R"({"kind":"Nothing","apiVersion":"no.such/v1","spec":{"replicas":4}})";
  auto ignored = Patch<appsv1::Deployment>("d", PatchType::kStrategicMerge, kElse);
  ASSERT_TRUE(ignored) << ignored.error().message();
  EXPECT_EQ(ignored->spec().replicas(), 4);

  struct Case {
    PatchType type;
    const char *patch, *why;  // null: accepted
  };
  const Case cases[] = {
      {PatchType::kMerge, R"({"kind":"Deployment","apiVersion":"apps/v1","spec":{"replicas":5}})", nullptr},
      {PatchType::kMerge, R"({"kind":null,"apiVersion":null})", nullptr},
      {PatchType::kMerge, kElse,
       "no kind \"Nothing\" is registered for version \"no.such/v1\" in scheme \"keelson\""},
      {PatchType::kMerge, R"({"apiVersion":"extensions/v1beta1"})",
       "no kind \"Deployment\" is registered for version \"extensions/v1beta1\" in scheme \"keelson\""},
      {PatchType::kMerge, R"({"kind":"ReplicaSet"})",
       "converting (v1.ReplicaSet) to (apps.Deployment): unknown conversion"},
      {PatchType::kJson, R"([{"op":"replace","path":"/kind","value":"Odd"}])",
       "no kind \"Odd\" is registered for version \"apps/v1\" in scheme \"keelson\""}};
  for (const Case& one : cases) {
    auto patched = Patch<appsv1::Deployment>("d", one.type, one.patch);
    if (!one.why) {
      EXPECT_TRUE(patched) << one.patch << patched.error().message();
      continue;
    }
    ASSERT_FALSE(patched) << one.patch;
    EXPECT_EQ(patched.error().code(), Code::kInvalid);
    const std::string message = patched.error().message();
    EXPECT_EQ(message.substr(0, 42), " \"\" is invalid: patch: Invalid value: \"{\\\"") << message;
    EXPECT_TRUE(message.ends_with(one.why)) << message;
  }
  // Ansible's way to scale: a Scale under the name of its parent's kind.
  auto scaled = (*plane_)->Patch(Row("apps", "deployments/scale"), "default", "d", PatchType::kStrategicMerge,
                                 R"({"kind":"Deployment","apiVersion":"apps/v1","spec":{"replicas":2}})", {});
  ASSERT_TRUE(scaled) << scaled.error().message();
  EXPECT_EQ(Get<appsv1::Deployment>("d")->spec().replicas(), 2);
}

TEST_F(ForeignWrites, WrongTypesAreWordedAsTheConverterDoes) {
  ASSERT_TRUE(Create(Deployment("d")));
  struct Case {
    const char *patch, *why;
  };
  const Case cases[] = {{R"({"spec":{"replicas":"two"}})", "unrecognized type: int32"},
                        {R"({"spec":{"replicas":1.5}})", "cannot convert float64 to int32"},
                        {R"({"spec":{"paused":"yes"}})", "unrecognized type: bool"},
                        {R"({"spec":{"paused":1}})", "unrecognized type: bool"},
                        {R"({"metadata":{"labels":{"a":1}}})", "cannot convert int64 to string"},
                        {R"({"metadata":{"labels":{"a":true}}})", "unrecognized type: string"},
                        {R"({"metadata":{"labels":{"a":{}}}})", "unrecognized type: string"},
                        {R"({"metadata":{"labels":[]}})", "cannot restore map from slice"},
                        {R"({"metadata":{"finalizers":"a"}})", "cannot restore slice from string"},
                        {R"({"spec":"much"})", "cannot restore struct from: string"},
                        {R"({"spec":{"template":[]}})", "cannot restore struct from: slice"}};
  for (const Case& one : cases) {
    auto patched = Patch<appsv1::Deployment>("d", PatchType::kStrategicMerge, one.patch);
    ASSERT_FALSE(patched) << one.patch;
    EXPECT_EQ(patched.error().code(), Code::kInvalid);
    EXPECT_TRUE(patched.error().message().ends_with(std::string(": ") + one.why))
        << one.patch << " " << patched.error().message();
  }
}

TEST_F(ForeignWrites, PatchesMayMakeAnotherVersion) {
  autoscalingv1::HorizontalPodAutoscaler made;
  made.mutable_metadata()->set_name("h");
  made.mutable_spec()->mutable_scale_target_ref()->set_kind("Deployment");
  made.mutable_spec()->mutable_scale_target_ref()->set_name("d");
  made.mutable_spec()->mutable_scale_target_ref()->set_api_version("apps/v1");
  made.mutable_spec()->set_max_replicas(3);
  ASSERT_TRUE(Create(made));
  const ResourceInfo& v2 = *api::FindResource("autoscaling", "v2", "horizontalpodautoscalers");
  auto written = (*plane_)->Patch(v2, "default", "h", PatchType::kMerge,
                                  R"({"apiVersion":"autoscaling/v1","spec":{"metrics":null,"minReplicas":2,)"
                                  R"("targetCPUUtilizationPercentage":44}})",
                                  {});
  ASSERT_TRUE(written) << written.error().message();
  EXPECT_EQ(written->object->info().version, "v2");
  EXPECT_EQ(Get<autoscalingv1::HorizontalPodAutoscaler>("h")->spec().target_cpu_utilization_percentage(), 44);
}

TEST_F(ForeignWrites, StringDataIsOwnedAsData) {
  corev1::Secret secret;
  secret.mutable_metadata()->set_name("s");
  (*secret.mutable_string_data())["password"] = "p";
  auto made = Create(secret, "default", As("one"));
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_TRUE(Owns(made->metadata(), "one", R"("f:data":{".":{},"f:password":{}})"));
  EXPECT_FALSE(Owns(made->metadata(), "one", "f:stringData"));
  auto patched = Patch<corev1::Secret>("s", PatchType::kMerge, R"({"stringData":{"more":"m"}})", As("two"));
  ASSERT_TRUE(patched) << patched.error().message();
  EXPECT_EQ(patched->data().at("more"), "m");
  EXPECT_TRUE(Owns(patched->metadata(), "two", R"("f:data":{"f:more":{}})"));
  EXPECT_FALSE(Owns(patched->metadata(), "two", "f:stringData"));
  // Another manager's apply conflicts instead of overwriting the value.
  auto applied = Patch<corev1::Secret>(
      "s", PatchType::kApply,
      R"({"kind":"Secret","apiVersion":"v1","metadata":{"name":"s"},"data":{"password":"eA=="}})",
      As("three"));
  ASSERT_FALSE(applied);
  EXPECT_EQ(applied.error().code(), Code::kConflict);
}

TEST_F(ForeignWrites, DaemonSetsOwnTheirTemplateGeneration) {
  appsv1::DaemonSet set;
  set.mutable_metadata()->set_name("d");
  (*set.mutable_spec()->mutable_selector()->mutable_match_labels())["app"] = "d";
  auto& pod = *set.mutable_spec()->mutable_template_();
  (*pod.mutable_metadata()->mutable_labels())["app"] = "d";
  pod.mutable_spec()->add_containers()->set_name("c");
  pod.mutable_spec()->mutable_containers(0)->set_image("busybox");
  constexpr char kAnnotation[] = "deprecated.daemonset.template.generation";
  constexpr char kField[] = R"("f:annotations":{".":{},"f:deprecated.daemonset.template.generation":{}})";
  auto made = Create(set, "default", As("one"));
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_EQ(made->metadata().annotations().at(kAnnotation), "1");
  EXPECT_TRUE(Owns(made->metadata(), "one", kField));
  // A status without it does not change it.
  appsv1::DaemonSet status = *made;
  status.mutable_metadata()->clear_annotations();
  status.mutable_status()->set_observed_generation(1);
  auto reported = Update(status, &Row("apps", "daemonsets/status"));
  ASSERT_TRUE(reported) << reported.error().message();
  EXPECT_EQ(reported->metadata().annotations().at(kAnnotation), "1");
  // An update does not either; a changed template counts.
  appsv1::DaemonSet changed = *reported;
  changed.mutable_metadata()->clear_annotations();
  changed.mutable_spec()->mutable_template_()->mutable_spec()->mutable_containers(0)->set_image("other");
  auto updated = Update(changed);
  ASSERT_TRUE(updated) << updated.error().message();
  EXPECT_EQ(updated->metadata().annotations().at(kAnnotation), "2");
}

TEST_F(ForeignWrites, JsonInEtcdIsWrittenOver) {
  constexpr char kKey[] = "/registry/apiextensions.k8s.io/customresourcedefinitions/odds.a.io";
  ASSERT_TRUE(plane_->client().PutIf(
      kKey,
      R"({"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","metadata":{"name":"odds.a.io",)"
      R"("uid":"u","generation":1,"creationTimestamp":"2026-01-01T00:00:00Z"},"spec":{"group":"a.io","names":)"
      R"({"plural":"odds","singular":"odd","kind":"Odd","listKind":"OddList"},"scope":"Namespaced","versions":[)"
      R"({"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}],)"
      R"("conversion":{"strategy":"None"}},"status":{"conditions":null,"acceptedNames":{"plural":"","kind":""},)"
      R"("storedVersions":["v1"]}})"
      "\n",
      0, 0, {SteadyTime::max(), {}}));
  auto read = Get<Definition>("odds.a.io", "");
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->spec().names().kind(), "Odd");
  Definition changed = *read;
  changed.mutable_spec()->mutable_versions(0)->set_served(false);
  auto updated = Update(changed);
  ASSERT_TRUE(updated) << updated.error().message();
  EXPECT_EQ(updated->metadata().generation(), 2);
  auto deleted = Delete(Row<Definition>(), "odds.a.io", {}, "");
  ASSERT_TRUE(deleted) << deleted.error().message();
  // The server deletes the objects first.
  auto held = Get<Definition>("odds.a.io", "");
  ASSERT_TRUE(held) << held.error().message();
  EXPECT_EQ(held->metadata().finalizers(0), "customresourcecleanup.apiextensions.k8s.io");
  EXPECT_EQ(held->status().conditions(0).reason(), "InstanceDeletionPending");
}

TEST_F(ForeignWrites, WhatCannotBeReadIsDeletedWhenAskedFor) {
  ASSERT_TRUE(
      plane_->client().PutIf("/registry/configmaps/default/bad", "junk", 0, 0, {SteadyTime::max(), {}}));
  ASSERT_TRUE(Create(ConfigMap("good")));
  const ResourceInfo& maps = Row<corev1::ConfigMap>();
  EXPECT_EQ(Create(ConfigMap("bad")).error().message(), "configmaps \"bad\" already exists");
  auto plain = Delete(maps, "bad");
  ASSERT_FALSE(plain);
  EXPECT_NE(plain.error().message().find("corrupt object"), std::string::npos);
  metav1::DeleteOptions unsafe;
  unsafe.set_ignore_store_read_error_with_cluster_breaking_potential(true);
  for (const char* name : {"good", "none"}) {
    auto refused = Delete(maps, name, unsafe);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message(),
              "configmaps \"" + std::string(name) +
                  "\" is invalid: ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: true: is "
                  "exclusively used to delete corrupt object(s), try again by removing this option");
  }
  auto all = (*plane_)->DeleteCollection(maps, "default", {}, unsafe, {});
  ASSERT_FALSE(all);
  EXPECT_NE(all.error().message().find("is not allowed with DELETECOLLECTION"), std::string::npos);
  auto deleted = Delete(maps, "bad", unsafe);
  ASSERT_TRUE(deleted) << deleted.error().message();
  EXPECT_TRUE(deleted->gone);
  EXPECT_FALSE(deleted->object);
  auto list = (*plane_)->List(maps, "default", {});
  ASSERT_TRUE(list) << list.error().message();
  EXPECT_EQ(list->items.size(), 1u);
}

}  // namespace
}  // namespace keelson::registry
