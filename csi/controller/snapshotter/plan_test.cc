#include "csi/controller/snapshotter/plan.h"

#include <gmock/gmock.h>

#include "csi/controller/model/secret_reference.h"
#include "csi/controller/model/snapshot_names.h"
#include "lib/api/codec/codec.h"

namespace keelson::csi::controller {
namespace {

using ::testing::HasSubstr;

CustomObject Object(const std::string& json) {
  CustomObject out;
  const auto decoded = api::DecodeJson(json, out);
  EXPECT_TRUE(decoded) << decoded.error().message();
  return out;
}
Snapshot SnapshotOf(const std::string& more, const std::string& meta = "") {
  return *ReadSnapshot(
      Object(R"({"metadata":{"name":"s","namespace":"ns","uid":"u")" + meta + "}," + more + "}"));
}
SnapshotContent ContentOf(const std::string& spec, const std::string& more = "",
                          const std::string& meta = "") {
  return *ReadSnapshotContent(Object(R"({"metadata":{"name":"c")" + meta +
                                     R"(},"spec":{"driver":"d","deletionPolicy":"Delete",)" + spec + "}" +
                                     more + "}"));
}
constexpr char kOfClaim[] = R"("spec":{"source":{"persistentVolumeClaimName":"data"}})";
constexpr char kGiven[] = R"("spec":{"source":{"volumeSnapshotContentName":"c"}})";
constexpr char kMade[] =
    R"("source":{"volumeHandle":"v"},"volumeSnapshotRef":{"name":"s","namespace":"ns","uid":"u"})";

TEST(SnapshotPlanTest, Sources) {
  EXPECT_FALSE(CheckSource(SnapshotOf(kOfClaim)));
  EXPECT_FALSE(CheckSource(SnapshotOf(kGiven)));
  EXPECT_EQ(CheckSource(SnapshotOf(R"("spec":{"source":{}})"))->reason, "SnapshotValidationError");
  EXPECT_TRUE(CheckSource(
      SnapshotOf(R"("spec":{"source":{"persistentVolumeClaimName":"a","volumeSnapshotContentName":"b"}})")));
  EXPECT_TRUE(CheckSource(SnapshotOf(R"("spec":{"source":{"persistentVolumeClaimName":""}})")));
  EXPECT_EQ(BoundContentName(SnapshotOf(kOfClaim)), "snapcontent-u");
  EXPECT_EQ(BoundContentName(SnapshotOf(kGiven)), "c");
  EXPECT_EQ(BoundContentName(SnapshotOf(R"("status":{"boundVolumeSnapshotContentName":"x"},"spec":{})")),
            "x");
}

TEST(SnapshotPlanTest, WhichContentMayBeTheSnapshots) {
  const struct {
    const char *snapshot, *content, *reason;
  } kCases[] = {
      {kOfClaim, kMade, ""},
      {kOfClaim, R"("source":{"volumeHandle":"v"},"volumeSnapshotRef":{"name":"s","namespace":"ns"})",
       "SnapshotContentMisbound"},
      {kOfClaim,
       R"("source":{"volumeHandle":"v"},"volumeSnapshotRef":{"name":"s","namespace":"ns","uid":"other"})",
       "SnapshotContentMisbound"},
      {kOfClaim,
       R"("source":{"snapshotHandle":"h"},"volumeSnapshotRef":{"name":"s","namespace":"ns","uid":"u"})",
       "SnapshotContentMismatch"},
      {kGiven, R"("source":{"snapshotHandle":"h"},"volumeSnapshotRef":{"name":"s","namespace":"ns"})", ""},
      {kGiven,
       R"("source":{"snapshotHandle":"h"},"volumeSnapshotRef":{"name":"s","namespace":"ns","uid":"u"})", ""},
      {kGiven, R"("source":{"snapshotHandle":"h"},"volumeSnapshotRef":{"name":"s","namespace":"else"})",
       "SnapshotContentMisbound"},
      {kGiven,
       R"("source":{"snapshotHandle":"h"},"volumeSnapshotRef":{"name":"s","namespace":"ns","uid":"other"})",
       "SnapshotContentMisbound"},
      {kGiven, kMade, "SnapshotContentMismatch"},
  };
  for (const auto& one : kCases) {
    SCOPED_TRACE(std::string(one.snapshot) + one.content);
    const auto problem = CheckContent(SnapshotOf(one.snapshot), ContentOf(one.content));
    EXPECT_EQ(problem ? problem->reason : "", one.reason);
  }
}

TEST(SnapshotPlanTest, StepsOfTheSidecar) {
  const std::string made = kMade;
  const std::string given =
      R"("source":{"snapshotHandle":"h"},"volumeSnapshotRef":{"name":"s","namespace":"ns","uid":"u"})";
  const std::string reserved =
      R"("source":{"snapshotHandle":"h"},"volumeSnapshotRef":{"name":"s","namespace":"ns"})";
  const std::string going = R"(,"deletionTimestamp":"2026-01-01T00:00:00Z")";
  const std::string kept =
      R"(,"finalizers":["snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection"])";
  const std::string creating =
      R"(,"annotations":{"snapshot.storage.kubernetes.io/volumesnapshot-being-created":"yes"})";
  const std::string deleting =
      R"(,"annotations":{"snapshot.storage.kubernetes.io/volumesnapshot-being-deleted":"yes"})";
  const std::string both =
      R"(,"annotations":{"snapshot.storage.kubernetes.io/volumesnapshot-being-deleted":"yes",
      "snapshot.storage.kubernetes.io/volumesnapshot-being-created":"yes"})";
  const std::string ready = R"(,"status":{"readyToUse":true,"snapshotHandle":"h"})";
  const std::string unready = R"(,"status":{"readyToUse":false,"snapshotHandle":"h"})";
  const std::string group = R"(,"status":{"snapshotHandle":"h","volumeGroupSnapshotHandle":"g"})";
  const struct {
    std::string spec, status, meta;
    ContentStep step;
  } kCases[] = {
      {made, "", "", ContentStep::kCreate},
      {made, unready, "", ContentStep::kCreate},
      {made, R"(,"status":{"readyToUse":false,"error":{"message":"m"}})", "", ContentStep::kCreate},
      {made, ready, "", ContentStep::kNothing},
      {made, ready, creating, ContentStep::kSettle},
      {made, group, "", ContentStep::kNothing},
      {R"("source":{"volumeHandle":"v"},"volumeSnapshotRef":{"name":"s","namespace":"ns"})", "", "",
       ContentStep::kNothing},
      {given, "", "", ContentStep::kCheck},
      {reserved, "", "", ContentStep::kCheck},
      {given, ready, "", ContentStep::kNothing},
      // Deletion: only when the snapshot goes too, and nothing is under way.
      {made, ready, going + kept, ContentStep::kNothing},
      {made, ready, going + kept + deleting, ContentStep::kDelete},
      {made, ready, going + deleting, ContentStep::kNothing},
      {made, group, going + kept + deleting, ContentStep::kRelease},
      {made, "", going + kept + deleting, ContentStep::kRelease},
      {made, "", going + kept + both, ContentStep::kCreate},
      {made, ready, going + kept + both, ContentStep::kSettle},
      {made, "", going + kept, ContentStep::kNothing},
      {reserved, ready, going + kept, ContentStep::kDelete},
      {reserved, "", going + kept, ContentStep::kRelease},
      {R"("source":{},"volumeSnapshotRef":{})", "", "", ContentStep::kNothing},
  };
  for (const auto& one : kCases) {
    SCOPED_TRACE(one.spec + one.status + one.meta);
    EXPECT_EQ(static_cast<int>(NextStep(ContentOf(one.spec, one.status, one.meta))),
              static_cast<int>(one.step));
  }
  SnapshotContent retained = ContentOf(made, ready, going + kept + deleting);
  retained.deletion_policy = "Retain";
  EXPECT_EQ(static_cast<int>(NextStep(retained)), static_cast<int>(ContentStep::kRelease));
}

TEST(SnapshotPlanTest, DefaultClasses) {
  auto named = [](const std::string& name, const std::string& driver, const std::string& mark) {
    return *ReadSnapshotClass(
        Object(R"({"metadata":{"name":")" + name +
               R"(","annotations":{"snapshot.storage.kubernetes.io/is-default-class":")" + mark +
               R"("}},"driver":")" + driver + R"(","deletionPolicy":"Delete"})"));
  };
  EXPECT_EQ(*DefaultClass({named("a", "x", "true"), named("b", "d", "true"), named("c", "d", "false")}, "d"),
            "b");
  EXPECT_EQ(DefaultClass({named("a", "x", "true")}, "d").error().message(),
            "cannot find default snapshot class");
  EXPECT_EQ(DefaultClass({named("a", "d", "true"), named("b", "d", "true")}, "d").error().message(),
            "2 default snapshot classes were found");
}

TEST(SnapshotPlanTest, ANewContent) {
  Snapshot snapshot = SnapshotOf(kOfClaim);
  SnapshotClass snapshot_class = *ReadSnapshotClass(Object(
      R"({"metadata":{"name":"fast"},"driver":"d","deletionPolicy":"Retain","parameters":{
      "csi.storage.k8s.io/snapshotter-secret-name":"${volumesnapshot.name}-key",
      "csi.storage.k8s.io/snapshotter-secret-namespace":"${volumesnapshot.namespace}"}})"));
  Volume volume;
  ASSERT_TRUE(
      api::DecodeJson(R"({"spec":{"volumeMode":"Block","csi":{"driver":"d","volumeHandle":"v"}}})", volume));
  const auto plan = PlanContent(snapshot, snapshot_class, volume, "n1");
  ASSERT_TRUE(plan) << plan.error().message();
  const SnapshotContent content = *ReadSnapshotContent(NewSnapshotContent(*plan));
  EXPECT_EQ(content.meta.name(), "snapcontent-u");
  EXPECT_EQ(content.meta.labels().at(kManagedByNode), "n1");
  EXPECT_EQ(content.meta.annotations().at(kSnapshotSecretName), "s-key");
  EXPECT_EQ(content.meta.annotations().at(kSnapshotSecretNamespace), "ns");
  EXPECT_EQ(content.meta.finalizers(0), kContentFinalizer);
  EXPECT_TRUE(PointsTo(content, snapshot));
  EXPECT_EQ(content.volume_handle, "v");
  EXPECT_EQ(content.deletion_policy, "Retain");
  EXPECT_EQ(content.source_volume_mode, "Block");
  EXPECT_EQ(content.class_name, "fast");
  EXPECT_FALSE(content.status);
  // A user must not choose the secret's namespace.
  snapshot_class.parameters["csi.storage.k8s.io/snapshotter-secret-namespace"] = "${volumesnapshot.name}";
  EXPECT_THAT(PlanContent(snapshot, snapshot_class, volume, "").error().message(),
              HasSubstr("invalid tokens"));
}

TEST(SnapshotPlanTest, SecretsAndParameters) {
  Strings parameters;
  parameters["speed"] = "high";
  parameters["csi.storage.k8s.io/snapshotter-list-secret-name"] = "${volumesnapshot.name}";
  parameters["csi.storage.k8s.io/snapshotter-list-secret-namespace"] = "ns";
  EXPECT_EQ(SnapshotParameters(parameters)->size(), 1U);
  EXPECT_FALSE(*ResolveSnapshotSecret(SnapshotSecretUse::kSnapshotter, parameters, {"c", "ns", "s"}));
  EXPECT_EQ(
      (*ResolveSnapshotSecret(SnapshotSecretUse::kSnapshotterList, parameters, {"c", "ns", "s"}))->name(),
      "s");
  EXPECT_FALSE(ResolveSnapshotSecret(SnapshotSecretUse::kSnapshotterList, parameters, {"c", "", ""}));
  parameters.erase("csi.storage.k8s.io/snapshotter-list-secret-namespace");
  EXPECT_THAT(ResolveSnapshotSecret(SnapshotSecretUse::kSnapshotterList, parameters, {"c", "ns", "s"})
                  .error()
                  .message(),
              HasSubstr("Both must be specified"));
  parameters["csi.storage.k8s.io/fstype"] = "ext4";
  EXPECT_THAT(SnapshotParameters(parameters).error().message(), HasSubstr("found unknown parameter key"));
}

TEST(SnapshotPlanTest, StatusFollowsTheContent) {
  const Snapshot fresh = SnapshotOf(kOfClaim);
  SnapshotStatus status = StatusBy(fresh, ContentOf(kMade));
  EXPECT_EQ(status.bound_content, "c");
  EXPECT_EQ(status.ready, false);
  EXPECT_FALSE(status.creation_time || status.restore_size || status.error);
  status = StatusBy(fresh, ContentOf(kMade, R"(,"status":{"readyToUse":true,"restoreSize":1073741824,
      "creationTime":1700000000123456789,"snapshotHandle":"h"})"));
  EXPECT_EQ(status, (SnapshotStatus{"c", "2023-11-14T22:13:20Z", "1Gi", true, std::nullopt}));
  Snapshot known = fresh;
  known.status = status;
  known.status->error = SnapshotError{"t", "m"};
  // What is known stays; an error goes.
  EXPECT_EQ(StatusBy(known, ContentOf(kMade, R"(,"status":{"readyToUse":true,"restoreSize":5})")), status);
  EXPECT_EQ(StatusBy(known, ContentOf(kMade, R"(,"status":{"error":{"message":"e"}})")).error->message, "e");
}

TEST(SnapshotPlanTest, StatusByTheDriver) {
  const WallTime now{std::chrono::seconds(5)};
  SnapshotContent content = ContentOf(kMade, R"(,"status":{"error":{"message":"e"},"readyToUse":false})");
  ContentStatus status = StatusBy(content, TakenSnapshot{"h", false, std::nullopt, 0}, now);
  EXPECT_EQ(status, (ContentStatus{"h", std::nullopt, 5'000'000'000, std::nullopt, false, std::nullopt}));
  content.status = status;
  status = StatusBy(content, TakenSnapshot{"h", true, 7, 9}, now);
  EXPECT_EQ(status, (ContentStatus{"h", std::nullopt, 5'000'000'000, 9, true, std::nullopt}));
  status = StatusBy(content, "broken", now);
  EXPECT_EQ(status.error, (SnapshotError{"1970-01-01T00:00:05Z", "broken"}));
  content.status = status;
  EXPECT_EQ(StatusBy(content, "broken", now + std::chrono::hours(1)), status);
}

TEST(SnapshotPlanTest, NamesAndDelays) {
  EXPECT_EQ(*NameForDriver("snapshot", "a-b", -1), "snapshot-a-b");
  EXPECT_EQ(*NameForDriver("snapshot", "a-bc", 2), "snapshot-ab");
  EXPECT_FALSE(NameForDriver("snapshot", "", -1));
  SnapshotContent content;
  content.meta.mutable_creation_timestamp()->set_seconds(100);
  auto delay = [&](int64_t now) {
    return PollDelay(content, WallTime(std::chrono::seconds(now)), std::chrono::seconds(1),
                     std::chrono::seconds(60));
  };
  EXPECT_EQ(delay(100), std::chrono::seconds(1));
  EXPECT_EQ(delay(140), std::chrono::seconds(10));
  EXPECT_EQ(delay(100000), std::chrono::seconds(60));
}

}  // namespace
}  // namespace keelson::csi::controller
