#include "controlplane/controllers/common/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controlplane/controllers/testing/cluster.h"

namespace keelson::controllers {
namespace {

using ::testing::ElementsAre;

corev1::PodTemplateSpec Template(const std::string& image) {
  corev1::PodTemplateSpec out;
  (*out.mutable_metadata()->mutable_labels())["app"] = "web";
  *out.mutable_spec() = PodNamed("x").spec();
  out.mutable_spec()->mutable_containers(0)->set_image(image);
  return out;
}

RevisionPointer Revision(const std::string& name, int64_t number, int64_t created = 0,
                         const std::string& image = "v1") {
  appsv1::ControllerRevision out;
  out.mutable_metadata()->set_name(name);
  out.mutable_metadata()->mutable_creation_timestamp()->set_seconds(created);
  out.mutable_data()->set_raw(TemplatePatch(Template(image)));
  out.set_revision(number);
  return std::make_shared<appsv1::ControllerRevision>(out);
}

std::vector<std::string> NamesOf(const RevisionPointers& revisions) {
  std::vector<std::string> names;
  for (const RevisionPointer& revision : revisions) names.push_back(revision->metadata().name());
  return names;
}

TEST(HistoryTest, DataIsAPatchWithSortedKeys) {
  corev1::PodTemplateSpec pods;
  (*pods.mutable_metadata()->mutable_labels())["b\"{,"] = "<1>";
  (*pods.mutable_metadata()->mutable_labels())["a"] = "2";
  corev1::Container& container = *pods.mutable_spec()->add_containers();
  container.set_name("main");
  container.add_args("x");
  container.add_args("[]");
  EXPECT_EQ(
      TemplatePatch(pods),
      R"({"spec":{"template":{"$patch":"replace","metadata":{"labels":{"a":"2","b\"{,":"\u003c1\u003e"}},)"
      R"("spec":{"containers":[{"args":["x","[]"],"name":"main","resources":{}}]}}}})");
}

TEST(HistoryTest, RestoresWhatItWasMadeOf) {
  const struct {
    std::string data;
    bool restores;
  } cases[] = {
      {TemplatePatch(Template("v1")), true},
      {TemplatePatch(Template("v2")), false},
      // The format of older releases.
      {R"({"spec":{"template":{"$patch":"replace","metadata":{"creationTimestamp":null,"labels":{"app":"web"}},)"
       R"("spec":{"containers":[{"image":"v1","name":"main","resources":{}}]}}}})",
       true},
      {R"({"spec":{}})", false},
      {"no JSON", false},
  };
  for (const auto& c : cases) {
    appsv1::ControllerRevision revision;
    revision.mutable_data()->set_raw(c.data);
    EXPECT_EQ(Restores(revision, Template("v1")), c.restores) << c.data;
  }
  EXPECT_FALSE(TemplateOf({}));
}

TEST(HistoryTest, OrderIsByNumberThenAgeThenName) {
  RevisionPointers revisions = {Revision("d", 2), Revision("c", 1, 7), Revision("b", 1, 5),
                                Revision("a", 1, 7)};
  SortRevisions(revisions);
  EXPECT_THAT(NamesOf(revisions), ElementsAre("b", "a", "c", "d"));
  EXPECT_EQ(MaxRevision(revisions), 2);
  EXPECT_EQ(MaxRevision({}), 0);
}

TEST(HistoryTest, CleanUpSparesTheNewestAndTheLive) {
  const RevisionPointers old = {Revision("c", 3), Revision("a", 1), Revision("b", 2), Revision("d", 4)};
  const struct {
    int32_t limit;
    std::string live;
    std::vector<std::string> gone;
  } cases[] = {{4, "", {}},
               {2, "", {"a", "b"}},
               {2, "a", {"b", "c"}},
               {0, "d", {"a", "b", "c"}},
               {0, "", {"a", "b", "c", "d"}}};
  for (const auto& c : cases) {
    auto live = [&](const appsv1::ControllerRevision& one) { return one.metadata().name() == c.live; };
    EXPECT_EQ(NamesOf(RevisionsToCleanUp(old, c.limit, live)), c.gone) << c.limit << c.live;
  }
}

TEST(HistoryTest, NamesAndHashes) {
  EXPECT_EQ(RevisionName("web", "abc"), "web-abc");
  EXPECT_EQ(RevisionName(std::string(300, 'x'), "abc").size(), 227u);
  const auto a = Revision("a", 1), b = Revision("b", 2), c = Revision("c", 1, 0, "v2");
  EXPECT_EQ(RevisionHash(*a, 0), RevisionHash(*b, 0)) << "of the data alone";
  EXPECT_NE(RevisionHash(*a, 0), RevisionHash(*a, 1));
  EXPECT_NE(RevisionHash(*a, 0), RevisionHash(*c, 0));
}

class StoredHistoryTest : public ::testing::Test {
 protected:
  Result<appsv1::ControllerRevision> Create(const std::string& image) {
    appsv1::DaemonSet owner;
    owner.mutable_metadata()->set_name("web");
    owner.mutable_metadata()->set_namespace_("default");
    (*owner.mutable_metadata()->mutable_annotations())["note"] = "kept";
    // All templates have the same hash at first.
    return CreateRevision(
        cluster_.api, "web", NewRevision(owner, Template(image), 1), kPodRevisionLabel,
        [](int32_t collisions) { return "h" + std::to_string(collisions); }, collisions_);
  }
  TestCluster cluster_;
  int32_t collisions_ = 0;
};

TEST_F(StoredHistoryTest, CollisionsAreCountedAndTheSameDataIsFoundAgain) {
  auto first = Create("v1");
  ASSERT_TRUE(first) << first.error().message();
  EXPECT_EQ(first->metadata().name(), "web-h0");
  EXPECT_EQ(first->metadata().labels().at(kPodRevisionLabel), "h0");
  EXPECT_EQ(first->metadata().labels().at("app"), "web");
  EXPECT_EQ(first->metadata().annotations().at("note"), "kept");
  auto again = Create("v1");
  ASSERT_TRUE(again);
  EXPECT_EQ(again->metadata().uid(), first->metadata().uid());
  EXPECT_EQ(collisions_, 0);
  auto other = Create("v2");
  ASSERT_TRUE(other);
  EXPECT_EQ(other->metadata().name(), "web-h1");
  EXPECT_EQ(collisions_, 1);
}

TEST_F(StoredHistoryTest, RenumberingWritesOnlyChanges) {
  auto made = Create("v1");
  ASSERT_TRUE(made);
  const RevisionPointer revision = std::make_shared<appsv1::ControllerRevision>(*made);
  cluster_.fake->ForgetRequests();
  EXPECT_EQ(*RenumberRevision(cluster_.api, revision, 1), revision);
  EXPECT_TRUE(cluster_.fake->Requests().empty());
  EXPECT_EQ((*RenumberRevision(cluster_.api, revision, 5))->revision(), 5);
  EXPECT_EQ(cluster_.Get<appsv1::ControllerRevision>("default", "web-h0").revision(), 5);
}

}  // namespace
}  // namespace keelson::controllers
