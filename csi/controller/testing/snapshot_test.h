// Snapshots with a fake API, for tests: the objects of snapshot.storage.k8s.io beside those of ControllerTest.
#pragma once

#include <string>

#include "csi/controller/model/snapshot_names.h"
#include "csi/controller/model/snapshots.h"
#include "csi/controller/snapshotter/content_controller.h"
#include "csi/controller/snapshotter/snapshot_controller.h"
#include "csi/controller/testing/controller_test.h"

namespace keelson::csi::controller {

class SnapshotTest : public ControllerTest {
 protected:
  void SetUp() override {
    ControllerTest::SetUp();
    driver_->SetCapabilities({"CREATE_DELETE_VOLUME", "CREATE_DELETE_SNAPSHOT", "LIST_SNAPSHOTS"});
    fake_->Serve({kSnapshotGroup, "volumesnapshots", "VolumeSnapshot", true, {"v1"}});
    fake_->Serve({kSnapshotGroup, "volumesnapshotcontents", "VolumeSnapshotContent", false, {"v1"}});
    fake_->Serve({kSnapshotGroup, "volumesnapshotclasses", "VolumeSnapshotClass", false, {"v1"}});
  }

  void AddControllers(const Environment& environment, bool distributed = false,
                      const SnapshotterOptions& options = {}) {
    controllers_.push_back(std::make_unique<SnapshotController>(SnapshotEnvironment{
        environment.api, *custom_, environment.events, environment.clock, environment.retry, distributed}));
    controllers_.push_back(std::make_unique<ContentController>(environment, *custom_, options));
  }
  void Start(const std::string& node = "") {
    StartControllers([&](const Environment& environment) { AddControllers(environment, !node.empty()); },
                     node);
  }

  CustomObject Create(const api::ResourceInfo& row, const std::string& json) {
    CustomObject object;
    const auto decoded = api::DecodeJson(json, object);
    EXPECT_TRUE(decoded) << decoded.error().message();
    auto created = custom_api_.Create(row, object);
    EXPECT_TRUE(created) << created.error().message();
    return created ? *std::move(created) : object;
  }
  void PutClass(const std::string& name, const std::string& policy = "Delete",
                const std::string& more = R"(,"parameters":{"speed":"high"})", bool is_default = false) {
    Create(SnapshotClassRow(), R"({"metadata":{"name":")" + name +
                                   R"(","annotations":{"snapshot.storage.kubernetes.io/is-default-class":")" +
                                   (is_default ? "true" : "false") +
                                   R"("}},"driver":"disk.example.com","deletionPolicy":")" + policy + R"(")" +
                                   more + "}");
  }
  // A bound claim and its volume, which the driver has.
  void PutClaim(const std::string& name, const std::string& more = "") {
    driver_->AddVolume("id-" + name, 1 << 20);
    Put<Volume>(R"({"metadata":{"name":"pv-)" + name + R"("},"spec":{"volumeMode":"Filesystem","claimRef":{
        "namespace":"default","name":")" +
                name + R"(","uid":"uid-)" + name +
                R"("},"csi":{"driver":"disk.example.com","volumeHandle":"id-)" + name + R"("})" + more +
                R"(},"status":{"phase":"Bound"}})");
    Put<Claim>(R"({"metadata":{"name":")" + name + R"(","namespace":"default","uid":"uid-)" + name +
               R"("},"spec":{"volumeName":"pv-)" + name + R"("},"status":{"phase":"Bound"}})");
  }
  Snapshot PutSnapshot(const std::string& name, const std::string& claim,
                       const std::string& class_name = "fast") {
    const std::string named =
        class_name.empty() ? "" : R"(,"volumeSnapshotClassName":")" + class_name + R"(")";
    return *ReadSnapshot(Create(SnapshotRow(), R"({"metadata":{"name":")" + name +
                                                   R"(","namespace":"default"},"spec":{"source":{
        "persistentVolumeClaimName":")" + claim + R"("})" +
                                                   named + "}}"));
  }
  std::optional<Snapshot> GetSnapshot(const std::string& name) {
    const auto object = custom_api_.Get(SnapshotRow(), "default", name);
    return object ? std::optional(*ReadSnapshot(*object)) : std::nullopt;
  }
  std::optional<SnapshotContent> GetContent(const std::string& name) {
    const auto object = custom_api_.Get(SnapshotContentRow(), "", name);
    return object ? std::optional(*ReadSnapshotContent(*object)) : std::nullopt;
  }
  bool AwaitReady(const std::string& name) {
    return Eventually([&] {
      const auto snapshot = GetSnapshot(name);
      return snapshot && snapshot->IsReady();
    });
  }
  bool AwaitError(const std::string& name, const std::string& text) {
    return Eventually([&] {
      const auto snapshot = GetSnapshot(name);
      return snapshot && snapshot->status && snapshot->status->error &&
             snapshot->status->error->message.find(text) != std::string::npos;
    });
  }
  void DeleteSnapshot(const std::string& name) {
    const auto deleted = custom_api_.Delete(SnapshotRow(), "default", name);
    EXPECT_TRUE(deleted) << deleted.error().message();
  }
  bool AwaitGone(const std::string& name) {
    return Eventually([&] { return !GetSnapshot(name); });
  }
  bool IsProtected(const std::string& claim) {
    return HasFinalizer(Get<Claim>("default", claim)->metadata(), kClaimSourceFinalizer);
  }

  client::CustomClient custom_api_{client::RestClient(fake_)};
};

}  // namespace keelson::csi::controller
