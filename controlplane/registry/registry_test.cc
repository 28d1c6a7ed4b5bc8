// Writes: the behaviour common to all resources.
#include "controlplane/registry/testing/fixture.h"
#include "lib/api/proto/networking_v1.pb.h"

namespace keelson::registry {
namespace {

TEST_F(RegistryTest, CreatesReadsUpdatesDeletes) {
  auto created = Create(ConfigMap("m"));
  ASSERT_TRUE(created) << created.error().message();
  EXPECT_EQ(created->metadata().namespace_(), "default");
  EXPECT_FALSE(created->metadata().uid().empty());
  EXPECT_TRUE(created->metadata().has_creation_timestamp());
  EXPECT_FALSE(created->metadata().resource_version().empty());

  auto again = Create(ConfigMap("m"));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code(), Code::kAlreadyExists);
  EXPECT_EQ(again.error().message(), "configmaps \"m\" already exists");

  corev1::ConfigMap changed = *created;
  (*changed.mutable_data())["a"] = "2";
  auto updated = Update(changed);
  ASSERT_TRUE(updated) << updated.error().message();
  EXPECT_NE(updated->metadata().resource_version(), created->metadata().resource_version());

  auto stale = Update(changed);
  ASSERT_FALSE(stale);
  EXPECT_EQ(stale.error().code(), Code::kConflict);
  EXPECT_EQ(stale.error().message(),
            "Operation cannot be fulfilled on configmaps \"m\": the object has been modified; please apply "
            "your changes "
            "to the latest version and try again");

  changed.mutable_metadata()->clear_resource_version();  // unconditional
  EXPECT_TRUE(Update(changed));
  auto deleted = Delete(Row<corev1::ConfigMap>(), "m");
  ASSERT_TRUE(deleted) << deleted.error().message();
  EXPECT_TRUE(deleted->gone);
  auto gone = Get<corev1::ConfigMap>("m");
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().message(), "configmaps \"m\" not found");
}

TEST_F(RegistryTest, NoOpWritesWriteNothing) {
  auto created = Create(ConfigMap("m"));
  ASSERT_TRUE(created);
  auto updated = Update(*created);
  ASSERT_TRUE(updated) << updated.error().message();
  EXPECT_EQ(updated->metadata().resource_version(), created->metadata().resource_version());
}

TEST_F(RegistryTest, GeneratesNames) {
  corev1::ConfigMap map = ConfigMap("");
  map.mutable_metadata()->clear_name();
  map.mutable_metadata()->set_generate_name("gen-");
  auto one = Create(map), two = Create(map);
  ASSERT_TRUE(one && two) << one.error().message();
  EXPECT_EQ(one->metadata().name().substr(0, 4), "gen-");
  EXPECT_EQ(one->metadata().name().size(), 9U);
  EXPECT_NE(one->metadata().name(), two->metadata().name());
}

TEST_F(RegistryTest, RefusesBadObjects) {
  auto bad_name = Create(ConfigMap("No_Good"));
  ASSERT_FALSE(bad_name);
  EXPECT_EQ(bad_name.error().code(), Code::kInvalid);
  ASSERT_NE(bad_name.error().details(), nullptr);
  EXPECT_EQ(bad_name.error().details()->causes.at(0).field, "metadata.name");

  auto no_namespace = Create(ConfigMap("m"), "nowhere");
  ASSERT_FALSE(no_namespace);
  EXPECT_EQ(no_namespace.error().message(), "namespaces \"nowhere\" not found");

  corev1::ConfigMap elsewhere = ConfigMap("m");
  elsewhere.mutable_metadata()->set_namespace_("other");
  auto mismatch = Create(elsewhere);
  ASSERT_FALSE(mismatch);
  EXPECT_EQ(mismatch.error().code(), Code::kBadRequest);
}

TEST_F(RegistryTest, DryRunLeavesNoTrace) {
  WriteOptions dry;
  dry.dry_run = true;
  auto created = Create(Service("s"), "default", dry);
  ASSERT_TRUE(created) << created.error().message();
  EXPECT_FALSE(created->spec().cluster_ip().empty());
  EXPECT_TRUE(created->metadata().resource_version().empty());
  EXPECT_FALSE(Get<corev1::Service>("s"));
  Result<ObjectList> addresses = (*plane_)->List(Row<api::networking::v1::IPAddress>(), "", {});
  ASSERT_TRUE(addresses);
  EXPECT_TRUE(addresses->items.empty());
}

TEST_F(RegistryTest, GenerationFollowsTheSpecOnly) {
  auto created = Create(Deployment("d"));
  ASSERT_TRUE(created) << created.error().message();
  EXPECT_EQ(created->metadata().generation(), 1);
  auto labelled = Patch<appsv1::Deployment>("d", PatchType::kMerge, R"({"metadata":{"labels":{"x":"y"}}})");
  ASSERT_TRUE(labelled) << labelled.error().message();
  EXPECT_EQ(labelled->metadata().generation(), 1);
  auto scaled =
      Patch<appsv1::Deployment>("d", PatchType::kMerge, R"({"spec":{"replicas":3},"status":{"replicas":9}})");
  ASSERT_TRUE(scaled) << scaled.error().message();
  EXPECT_EQ(scaled->metadata().generation(), 2);
  EXPECT_EQ(scaled->status().replicas(), 0) << "status has a subresource of its own";

  appsv1::Deployment status = *scaled;
  status.mutable_status()->set_replicas(2);
  status.mutable_spec()->set_replicas(7);
  auto written = Update(status, &Row("apps", "deployments/status"));
  ASSERT_TRUE(written) << written.error().message();
  EXPECT_EQ(written->status().replicas(), 2);
  EXPECT_EQ(written->spec().replicas(), 3);
  EXPECT_EQ(written->metadata().generation(), 2);
}

TEST_F(RegistryTest, PatchesThreeWays) {
  ASSERT_TRUE(Create(Deployment("d")));
  auto strategic = Patch<appsv1::Deployment>(
      "d", PatchType::kStrategicMerge,
      R"({"spec":{"template":{"spec":{"containers":[{"name":"c","image":"new"},{"name":"b","image":"x"}]}}}})");
  ASSERT_TRUE(strategic) << strategic.error().message();
  ASSERT_EQ(strategic->spec().template_().spec().containers_size(), 2);
  auto json = Patch<appsv1::Deployment>("d", PatchType::kJson,
                                        R"([{"op":"replace","path":"/spec/replicas","value":4}])");
  ASSERT_TRUE(json) << json.error().message();
  EXPECT_EQ(json->spec().replicas(), 4);

  WriteOptions strict;
  strict.field_validation = FieldValidation::kStrict;
  auto unknown = Patch<appsv1::Deployment>("d", PatchType::kMerge, R"({"spec":{"foo":1}})", strict);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code(), Code::kInvalid);
  EXPECT_NE(unknown.error().message().find("unknown field \"spec.foo\""), std::string::npos);
  auto stale = Patch<appsv1::Deployment>("d", PatchType::kMerge, R"({"metadata":{"resourceVersion":"1"}})");
  ASSERT_FALSE(stale);
  EXPECT_EQ(stale.error().code(), Code::kConflict);
  auto immutable = Patch<appsv1::Deployment>("d", PatchType::kMerge, R"({"metadata":{"uid":"x"}})");
  ASSERT_FALSE(immutable);
}

TEST_F(RegistryTest, ConcurrentPatchesAllLand) {
  ASSERT_TRUE(Create(ConfigMap("m")));
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5; ++i) {
        std::string patch = R"({"data":{"k)" + std::to_string(t) + std::to_string(i) + R"(":"v"}})";
        if (!Patch<corev1::ConfigMap>("m", PatchType::kMerge, patch)) ++failures;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(Get<corev1::ConfigMap>("m")->data_size(), 21);
}

TEST_F(RegistryTest, FinalizersHoldObjects) {
  corev1::ConfigMap map = ConfigMap("m");
  map.mutable_metadata()->add_finalizers("example.com/hold");
  ASSERT_TRUE(Create(map));
  auto deleted = Delete(Row<corev1::ConfigMap>(), "m");
  ASSERT_TRUE(deleted);
  EXPECT_FALSE(deleted->gone);
  EXPECT_EQ(Get<corev1::ConfigMap>("m")->metadata().deletion_grace_period_seconds(), 0);
  auto freed = Patch<corev1::ConfigMap>("m", PatchType::kMerge, R"({"metadata":{"finalizers":null}})");
  ASSERT_TRUE(freed) << freed.error().message();
  EXPECT_FALSE(Get<corev1::ConfigMap>("m"));
}

TEST_F(RegistryTest, PropagationBecomesFinalizers) {
  ASSERT_TRUE(Create(Deployment("d")));
  metav1::DeleteOptions options;
  options.set_propagation_policy("Foreground");
  auto deleted = Delete(Row<appsv1::Deployment>(), "d", options);
  ASSERT_TRUE(deleted);
  EXPECT_FALSE(deleted->gone);
  EXPECT_EQ(Get<appsv1::Deployment>("d")->metadata().finalizers(0), "foregroundDeletion");
  options.set_propagation_policy("Sideways");
  auto refused = Delete(Row<appsv1::Deployment>(), "d", options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kInvalid);
}

}  // namespace
}  // namespace keelson::registry
