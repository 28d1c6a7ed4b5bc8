#include "controlplane/controllers/storageversionmigrator/controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "controlplane/controllers/testing/cluster.h"
#include "lib/api/codec/codec.h"

namespace keelson::controllers {
namespace {

using apiextensionsv1::CustomResourceDefinition;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kDefinition[] = "widgets.example.com";

template <typename T>
T Read(const std::string& json) {
  T out;
  const Result<> read = api::DecodeJson(json, out);
  EXPECT_TRUE(read) << (read ? "" : read.error().message()) << json;
  return out;
}

class MigratorTest : public ::testing::Test {
 protected:
  MigratorTest() {
    world_->fake->Serve({"example.com", "widgets", "Widget", true, {"v1", "v1beta1"}});
    world_->fake->Put(Read<CustomResourceDefinition>(
        R"({"metadata":{"name":"widgets.example.com","generation":4},
            "spec":{"group":"example.com","names":{"plural":"widgets","kind":"Widget"},"scope":"Namespaced",
              "versions":[{"name":"v1beta1","served":true},{"name":"v1","served":true,"storage":true}]},
            "status":{"storedVersions":["v1beta1","v1"],"conditions":[{"type":"Established","status":"True"}]}})"));
    for (const char* name : {"a", "b"}) AddWidget(name);
  }
  void AddWidget(const std::string& name) {
    metav1::ObjectMeta meta;
    meta.set_name(name);
    meta.set_namespace_("default");
    world_->fake->PutCustom("example.com", "widgets", meta);
  }
  void AddMigration(const std::string& name, const std::string& resource = "widgets",
                    const std::string& group = "example.com") {
    StorageVersionMigration migration = Read<StorageVersionMigration>(fmt::format(
        R"({{"metadata":{{"name":"{}"}},"spec":{{"resource":{{"group":"{}","resource":"{}"}}}}}})", name,
        group, resource));
    *migration.mutable_metadata()->mutable_creation_timestamp() = api::ToTime(world_->clock.Now());
    world_->fake->Put(migration);
  }
  void Start() {
    controller_ = &world_->Make<StorageVersionMigrator>();
    world_->Start();
  }
  void Drain() { world_->Drain({controller_}); }
  // "TYPE=STATUS REASON: MESSAGE" of each condition.
  std::vector<std::string> Conditions(const std::string& name) {
    std::vector<std::string> out;
    const auto migration = world_->Get<StorageVersionMigration>("", name);
    for (const auto& one : migration.status().conditions()) {
      out.push_back(fmt::format("{}={} {}: {}", one.type(), one.status(), one.reason(), one.message()));
    }
    return out;
  }
  std::vector<std::string> StoredVersions() {
    const auto stored = world_->Get<CustomResourceDefinition>("", kDefinition).status().stored_versions();
    return {stored.begin(), stored.end()};
  }
  std::string Migrating() {
    const auto definition = world_->Get<CustomResourceDefinition>("", kDefinition);
    for (const auto& one : definition.status().conditions()) {
      if (one.type() == "StorageMigrating") {
        return fmt::format("{} {} {}: {}", one.status(), one.observed_generation(), one.reason(),
                           one.message());
      }
    }
    return "";
  }
  std::vector<std::string> Patches() {
    std::vector<std::string> out;
    for (const std::string& request : world_->fake->Requests()) {
      if (request.starts_with("PATCH") && request.find("/widgets/") != request.npos) out.push_back(request);
    }
    return out;
  }

  std::unique_ptr<TestCluster> world_ = std::make_unique<TestCluster>();
  StorageVersionMigrator* controller_ = nullptr;
};

constexpr char kSuccess[] = "Succeeded=True StorageVersionMigrationSucceeded: ";
constexpr char kAllStored[] =
    "False 4 MigrationSucceeded: The migration has succeeded and the stored versions have been updated";

TEST_F(MigratorTest, WritesEachObjectAgain) {
  AddMigration("m");
  Start();
  Drain();
  EXPECT_THAT(Conditions("m"), ElementsAre(kSuccess));
  EXPECT_NE(world_->Get<StorageVersionMigration>("", "m").status().resource_version(), "");
  EXPECT_THAT(Patches(), ElementsAre("PATCH /apis/example.com/v1/namespaces/default/widgets/a",
                                     "PATCH /apis/example.com/v1/namespaces/default/widgets/b"));
  EXPECT_THAT(StoredVersions(), ElementsAre("v1"));
  EXPECT_EQ(Migrating(), kAllStored);
  EXPECT_THAT(world_->errors, IsEmpty());
  // What is over stays so.
  world_->fake->ForgetRequests();
  Drain();
  EXPECT_THAT(Patches(), IsEmpty());
}

TEST_F(MigratorTest, CoreResourcesHaveNoDefinition) {
  corev1::ConfigMap map;
  map.mutable_metadata()->set_name("c");
  map.mutable_metadata()->set_namespace_("default");
  world_->fake->Put(map);
  AddMigration("m", "configmaps", "");
  Start();
  Drain();
  EXPECT_THAT(Conditions("m"), ElementsAre(kSuccess));
  EXPECT_THAT(world_->fake->Requests(), testing::Contains("PATCH /api/v1/namespaces/default/configmaps/c"));
  EXPECT_THAT(world_->errors, IsEmpty());
}

// Two migrations of one resource follow each other; of two resources they do not wait.
TEST_F(MigratorTest, OneAtATime) {
  AddMigration("first");
  world_->clock.Advance(std::chrono::seconds(5));
  AddMigration("a-second");
  AddMigration("other", "configmaps", "");
  std::vector<std::string> order;
  world_->fake->SetInterceptor(
      [&](const client::ApiRequest& request) -> std::optional<Result<client::ApiResponse>> {
        if (request.method == "PUT") {
          order.push_back(request.target.substr(request.target.find("migrations/") + 11));
        }
        return std::nullopt;
      });
  Start();
  Drain();
  for (const char* name : {"first", "a-second", "other"}) {
    EXPECT_THAT(Conditions(name), ElementsAre(kSuccess));
  }
  std::erase(order, "other/status");
  EXPECT_THAT(order, ElementsAre("first/status", "first/status", "first/status", "first/status",
                                 "a-second/status", "a-second/status", "a-second/status", "a-second/status"));
}

TEST_F(MigratorTest, ResourcesThatNobodyServesFailAfterAMinute) {
  AddMigration("m", "gadgets");
  Start();
  Drain();
  EXPECT_THAT(Conditions("m"), ElementsAre("Running=True MigrationRunning: The migration is running"));
  world_->Advance(std::chrono::seconds(61), {controller_});
  EXPECT_THAT(Conditions("m"),
              ElementsAre("Failed=True StorageVersionMigrationFailed: resource does not exist in discovery"));
}

// An object that cannot be written ends the migration, and no version is forgotten.
TEST_F(MigratorTest, FailuresKeepTheStoredVersions) {
  AddMigration("m");
  world_->fake->SetInterceptor(
      [](const client::ApiRequest& request) -> std::optional<Result<client::ApiResponse>> {
        if (request.method != "PATCH" || !request.target.ends_with("widgets/b")) return std::nullopt;
        return client::FakeApi::Refuse(Error(Code::kInvalid, "spec.size: Required value"));
      });
  Start();
  Drain();
  EXPECT_THAT(Conditions("m"), ElementsAre("Failed=True StorageVersionMigrationFailed: migration encountered "
                                           "unhandled error: spec.size: Required value"));
  EXPECT_THAT(StoredVersions(), ElementsAre("v1beta1", "v1"));
  EXPECT_EQ(Migrating(), "False 4 MigrationFailed: The migration has failed");
}

TEST_F(MigratorTest, PassingErrorsAreTriedAgain) {
  AddMigration("m");
  int refused = 0;
  world_->fake->SetInterceptor(
      [&](const client::ApiRequest& request) -> std::optional<Result<client::ApiResponse>> {
        if (request.method != "PATCH" || !request.target.ends_with("widgets/b") || refused == 3) {
          return std::nullopt;
        }
        ++refused;
        return client::FakeApi::Refuse(Error(Code::kTooManyRequests, "later"));
      });
  Start();
  Drain();
  EXPECT_THAT(Conditions("m"), ElementsAre("Running=True MigrationRunning: The migration is running"));
  for (int i = 0; i < 10; ++i) world_->Advance(std::chrono::minutes(1), {controller_});
  EXPECT_EQ(refused, 3);
  EXPECT_THAT(Conditions("m"), ElementsAre(kSuccess));
}

// A definition that changes meanwhile may store objects in a third version.
TEST_F(MigratorTest, ChangedDefinitionsKeepTheirStoredVersions) {
  AddMigration("m");
  bool changed = false;
  world_->fake->SetInterceptor(
      [&](const client::ApiRequest& request) -> std::optional<Result<client::ApiResponse>> {
        if (request.method != "PATCH" || !request.target.ends_with("widgets/b") ||
            std::exchange(changed, true)) {
          return std::nullopt;
        }
        auto definition = world_->api.Get<CustomResourceDefinition>("", kDefinition).value();
        definition.mutable_metadata()->set_generation(5);
        world_->fake->Put(definition);
        return std::nullopt;
      });
  Start();
  Drain();
  EXPECT_THAT(Conditions("m"), ElementsAre(kSuccess));
  EXPECT_THAT(StoredVersions(), ElementsAre("v1beta1", "v1"));
  EXPECT_THAT(Migrating(), HasSubstr("due to a generation mismatch"));
}

// Whatever write is a controller's last, the next controller ends the migration.
TEST_F(MigratorTest, GoesOnAfterAKillAtAnyWrite) {
  for (int last = 0;; ++last) {
    world_ = std::make_unique<TestCluster>();
    world_->fake->Serve({"example.com", "widgets", "Widget", true, {"v1"}});
    world_->fake->Put(Read<CustomResourceDefinition>(
        R"({"metadata":{"name":"widgets.example.com","generation":4},
            "spec":{"group":"example.com","versions":[{"name":"v1","served":true,"storage":true}]},
            "status":{"storedVersions":["v1beta1","v1"]}})"));
    for (const char* name : {"a", "b"}) AddWidget(name);
    AddMigration("m");
    int writes = 0;
    bool dead = false;
    world_->fake->SetInterceptor(
        [&](const client::ApiRequest& request) -> std::optional<Result<client::ApiResponse>> {
          if (request.method == "GET") return std::nullopt;
          dead = dead || writes++ >= last;
          if (!dead) return std::nullopt;
          return Result<client::ApiResponse>(Error(Code::kUnavailable, "killed"));
        });
    Start();
    Drain();
    const bool killed = dead;
    world_->Stop();
    world_->fake->SetInterceptor(nullptr);
    Start();
    Drain();
    EXPECT_THAT(Conditions("m"), ElementsAre(kSuccess)) << last;
    EXPECT_THAT(StoredVersions(), ElementsAre("v1")) << last;
    EXPECT_EQ(Migrating(), kAllStored) << last;
    if (!killed) break;
    ASSERT_LT(last, 50);
  }
}

TEST(MigrationPlan, ComparesVersionsAsNumbers) {
  EXPECT_TRUE(IsNewer("10", "9"));
  EXPECT_FALSE(IsNewer("9", "10"));
  EXPECT_FALSE(IsNewer("10", "10"));
  EXPECT_TRUE(IsNewer("11", "10"));
}

}  // namespace
}  // namespace keelson::controllers
