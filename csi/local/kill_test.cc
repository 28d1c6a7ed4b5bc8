// Kills the driver after each of its steps, in every call that changes something. After the next start the call can be
// repeated, and once everything is deleted nothing remains: no file, no mount, no loop device.
#include <gmock/gmock.h>

#include <functional>

#include "csi/local/testing/driver_fixture.h"
#include "csi/local/testing/stepped_process.h"
#include "lib/base/file.h"

namespace keelson::csi::local {
namespace {

using grpc::StatusCode;
using testing::IsEmpty;

class KillTest : public DriverFixture {
 protected:
  // Runs `call` in drivers that are killed after 0, 1, 2, ... steps, until one survives it. Before each, an
  // undisturbed driver runs `prepare`; after each, another repeats `call` and runs `check`.
  void KillAtEachStep(const std::function<void()>& prepare, const std::function<StatusCode()>& call,
                      const std::function<void()>& check) {
    for (int steps = 0;; ++steps) {
      SCOPED_TRACE("killed after " + std::to_string(steps) + " steps");
      ASSERT_LT(steps, 500);
      Start(flags_);
      prepare();
      Stop();
      StatusCode code;
      {
        SteppedProcess driver(Command(flags_), dir_ + "/log");
        AwaitReady();
        driver.KillAfter(steps);
        code = call();
        ASSERT_TRUE(code == StatusCode::OK || code == StatusCode::UNAVAILABLE) << code << Log();
      }
      Start(flags_);
      ASSERT_EQ(call(), StatusCode::OK);
      check();
      Stop();
      EXPECT_THAT(Mounts(), IsEmpty());
      EXPECT_THAT(Loops(), IsEmpty());
      for (const char* folder : {"volumes", "snapshots", "groups", "frozen", "tmp"}) {
        EXPECT_THAT(Files(folder), IsEmpty()) << folder;
      }
      if (HasFailure()) return;
      if (code == StatusCode::OK) {
        EXPECT_GT(steps, 1) << "the call has steps";
        return;
      }
    }
  }
  StatusCode Create(const std::string& name, int64_t bytes) {
    auto answer = Call(&v1::Controller::Stub::CreateVolume, VolumeRequest(name, bytes));
    id_ = answer.reply.volume().volume_id();
    return answer.code;
  }
  // Unpublishes and unstages the volume that `prepare` has published, killed at each step.
  void KillWhileLeaving(const std::function<void()>& prepare) {
    KillAtEachStep(
        prepare,
        [&] {
          v1::NodeUnpublishVolumeRequest unpublish;
          unpublish.set_volume_id(id_);
          unpublish.set_target_path(Target("target"));
          auto unpublished = Call(&v1::Node::Stub::NodeUnpublishVolume, unpublish);
          if (!unpublished.ok()) return unpublished.code;
          v1::NodeUnstageVolumeRequest unstage;
          unstage.set_volume_id(id_);
          unstage.set_staging_target_path(Staging(id_));
          return Call(&v1::Node::Stub::NodeUnstageVolume, unstage).code;
        },
        [&] {
          EXPECT_FALSE(PathExists(Target("target")));
          DriverFixture::DeleteVolume(id_);
        });
  }
  std::string id_;
  std::vector<std::string> flags_;
};

TEST_F(KillTest, CreateVolume) {
  KillAtEachStep([] {}, [&] { return Create("a", 32 * kMi); },
                 [&] {
                   Stage(id_);
                   Unstage(id_);
                   DeleteVolume(id_);
                 });
}

TEST_F(KillTest, DeleteVolume) {
  KillAtEachStep([&] { id_ = CreateVolume("a", 32 * kMi); },
                 [&] {
                   v1::DeleteVolumeRequest request;
                   request.set_volume_id(id_);
                   return Call(&v1::Controller::Stub::DeleteVolume, request).code;
                 },
                 [] {});
}

TEST_F(KillTest, Expand) {
  KillAtEachStep([&] { id_ = CreateVolume("a", 32 * kMi); },
                 [&] {
                   v1::ControllerExpandVolumeRequest request;
                   request.set_volume_id(id_);
                   request.mutable_capacity_range()->set_required_bytes(64 * kMi);
                   return Call(&v1::Controller::Stub::ControllerExpandVolume, request).code;
                 },
                 [&] { DriverFixture::DeleteVolume(id_); });
}

TEST_F(KillTest, StageAndPublish) {
  KillAtEachStep([&] { id_ = CreateVolume("a", 32 * kMi); },
                 [&] {
                   auto staged = Call(&v1::Node::Stub::NodeStageVolume, StageRequest(id_));
                   if (!staged.ok()) return staged.code;
                   return Call(&v1::Node::Stub::NodePublishVolume, PublishRequest(id_)).code;
                 },
                 [&] {
                   EXPECT_TRUE(WriteFile(Target("target") + "/file", "x"));
                   EXPECT_EQ(Mounts().size(), 2u);
                   EXPECT_EQ(Loops().size(), 1u);
                   Unpublish(id_);
                   Unstage(id_);
                   DriverFixture::DeleteVolume(id_);
                 });
}

TEST_F(KillTest, UnpublishAndUnstage) {
  KillWhileLeaving([&] {
    id_ = CreateVolume("a", 32 * kMi);
    Stage(id_);
    Publish(id_);
  });
}

TEST_F(KillTest, StageAndPublishOfADevice) {
  KillAtEachStep([&] { id_ = CreateVolume("a", 8 * kMi, Block()); },
                 [&] {
                   auto staged = Call(&v1::Node::Stub::NodeStageVolume, StageRequest(id_, Block()));
                   if (!staged.ok()) return staged.code;
                   return Call(&v1::Node::Stub::NodePublishVolume, PublishRequest(id_, Block())).code;
                 },
                 [&] {
                   EXPECT_EQ(Loops().size(), 1u);
                   Unpublish(id_);
                   Unstage(id_);
                   DriverFixture::DeleteVolume(id_);
                 });
}

TEST_F(KillTest, SnapshotOfAMountedVolume) {
  std::string snapshot;
  KillAtEachStep(
      [&] {
        id_ = CreateVolume("a", 32 * kMi);
        Stage(id_);
        EXPECT_TRUE(WriteFile(Staging(id_) + "/file", "x"));
      },
      [&] {
        v1::CreateSnapshotRequest request;
        request.set_name("s");
        request.set_source_volume_id(id_);
        auto answer = Call(&v1::Controller::Stub::CreateSnapshot, request);
        snapshot = answer.reply.snapshot().snapshot_id();
        return answer.code;
      },
      [&] {
        // Not frozen.
        EXPECT_TRUE(WriteFile(Staging(id_) + "/file", "y"));
        v1::CreateVolumeRequest restore = VolumeRequest("b", 32 * kMi);
        restore.mutable_volume_content_source()->mutable_snapshot()->set_snapshot_id(snapshot);
        auto restored = Call(&v1::Controller::Stub::CreateVolume, restore);
        ASSERT_TRUE(restored.ok()) << restored.message;
        const std::string other = restored.reply.volume().volume_id();
        Stage(other);
        EXPECT_EQ(*ReadFile(Staging(other) + "/file"), "x");
        Unstage(other);
        DriverFixture::DeleteVolume(other);
        DeleteSnapshot(snapshot);
        Unstage(id_);
        DriverFixture::DeleteVolume(id_);
      });
}

TEST_F(KillTest, GroupSnapshot) {
  std::string other, group;
  KillAtEachStep(
      [&] {
        id_ = CreateVolume("a", 8 * kMi);
        other = CreateVolume("b", 8 * kMi);
      },
      [&] {
        v1::CreateVolumeGroupSnapshotRequest request;
        request.set_name("g");
        request.add_source_volume_ids(id_);
        request.add_source_volume_ids(other);
        auto answer = Call(&v1::GroupController::Stub::CreateVolumeGroupSnapshot, request);
        group = answer.reply.group_snapshot().group_snapshot_id();
        return answer.code;
      },
      [&] {
        v1::DeleteVolumeGroupSnapshotRequest request;
        request.set_group_snapshot_id(group);
        EXPECT_TRUE(Call(&v1::GroupController::Stub::DeleteVolumeGroupSnapshot, request).ok());
        DriverFixture::DeleteVolume(id_);
        DriverFixture::DeleteVolume(other);
      });
}

TEST_F(KillTest, UnpublishAndUnstageOfADevice) {
  KillWhileLeaving([&] {
    id_ = CreateVolume("a", 8 * kMi, Block());
    Stage(id_, Block());
    Publish(id_, Block());
  });
}

TEST_F(KillTest, NodeExpandOfADevice) {
  KillAtEachStep(
      [&] {
        id_ = CreateVolume("a", 8 * kMi, Block());
        Stage(id_, Block());
        Publish(id_, Block());
      },
      [&] {
        v1::NodeExpandVolumeRequest request;
        request.set_volume_id(id_);
        request.set_volume_path(Target("target"));
        request.mutable_capacity_range()->set_required_bytes(16 * kMi);
        return Call(&v1::Node::Stub::NodeExpandVolume, request).code;
      },
      [&] {
        Unpublish(id_);
        Unstage(id_);
        DriverFixture::DeleteVolume(id_);
      });
}

TEST_F(KillTest, Clone) {
  KillAtEachStep([&] { id_ = CreateVolume("a", 8 * kMi); },
                 [&] {
                   v1::CreateVolumeRequest clone = VolumeRequest("b", 8 * kMi);
                   clone.mutable_volume_content_source()->mutable_volume()->set_volume_id(id_);
                   return Call(&v1::Controller::Stub::CreateVolume, clone).code;
                 },
                 [&] {
                   v1::CreateVolumeRequest clone = VolumeRequest("b", 8 * kMi);
                   clone.mutable_volume_content_source()->mutable_volume()->set_volume_id(id_);
                   DriverFixture::DeleteVolume(
                       Call(&v1::Controller::Stub::CreateVolume, clone).reply.volume().volume_id());
                   DriverFixture::DeleteVolume(id_);
                 });
}

TEST_F(KillTest, DeleteSnapshot) {
  std::string snapshot;
  KillAtEachStep(
      [&] {
        id_ = CreateVolume("a", 8 * kMi);
        snapshot = CreateSnapshot("s", id_);
      },
      [&] {
        v1::DeleteSnapshotRequest request;
        request.set_snapshot_id(snapshot);
        return Call(&v1::Controller::Stub::DeleteSnapshot, request).code;
      },
      [&] { DriverFixture::DeleteVolume(id_); });
}

TEST_F(KillTest, ADirectory) {
  flags_ = {"--directory-quotas=false"};
  KillAtEachStep([] {},
                 [&] {
                   v1::CreateVolumeRequest request = VolumeRequest("a", 8 * kMi);
                   (*request.mutable_parameters())["type"] = "directory";
                   auto created = Call(&v1::Controller::Stub::CreateVolume, request);
                   if (!created.ok()) return created.code;
                   id_ = created.reply.volume().volume_id();
                   auto staged = Call(&v1::Node::Stub::NodeStageVolume, StageRequest(id_));
                   if (!staged.ok()) return staged.code;
                   return Call(&v1::Node::Stub::NodePublishVolume, PublishRequest(id_)).code;
                 },
                 [&] {
                   EXPECT_TRUE(WriteFile(Target("target") + "/file", "x"));
                   Unpublish(id_);
                   Unstage(id_);
                   DriverFixture::DeleteVolume(id_);
                 });
}

TEST_F(KillTest, AnInlineVolume) {
  const std::string handle = "csi-" + std::string(64, '7');
  v1::NodePublishVolumeRequest request = PublishRequest(handle);
  request.clear_staging_target_path();
  (*request.mutable_volume_context())["csi.storage.k8s.io/ephemeral"] = "true";
  (*request.mutable_volume_context())["size"] = "8Mi";
  const auto publish = [&] { return Call(&v1::Node::Stub::NodePublishVolume, request).code; };
  KillAtEachStep([] {}, publish,
                 [&] {
                   ASSERT_TRUE(WriteFile(Target("target") + "/file", "x"));
                   Unpublish(handle);
                 });
  KillAtEachStep([&] { ASSERT_EQ(publish(), StatusCode::OK); },
                 [&] {
                   v1::NodeUnpublishVolumeRequest leave;
                   leave.set_volume_id(handle);
                   leave.set_target_path(Target("target"));
                   return Call(&v1::Node::Stub::NodeUnpublishVolume, leave).code;
                 },
                 [&] { EXPECT_FALSE(PathExists(Target("target"))); });
}

}  // namespace
}  // namespace keelson::csi::local
