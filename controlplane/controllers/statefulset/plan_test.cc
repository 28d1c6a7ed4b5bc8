#include "controlplane/controllers/statefulset/plan.h"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controlplane/controllers/common/history.h"
#include "controlplane/controllers/statefulset/testing/stateful_sets.h"
#include "lib/api/meta.h"
#include "lib/k8s/int_or_string.h"

namespace keelson::controllers {
namespace {

using ::testing::ElementsAre;
using namespace std::chrono_literals;

const WallTime kNow{std::chrono::seconds(1'800'000'000)};

// "0:old:ready 1:new:going": ordinal, revision and state of each pod. ready (for 100 s), fresh (ready for
// 5 s), running, pending, going, failed, ended.
PodPointers Pods(const std::string& text) {
  PodPointers pods;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const size_t first = word.find(':'), second = word.find(':', first + 1);
    const std::string revision = word.substr(first + 1, second - first - 1), state = word.substr(second + 1);
    auto pod = std::make_shared<corev1::Pod>(PodNamed("web-" + word.substr(0, first)));
    pod->mutable_metadata()->set_uid(word);
    (*pod->mutable_metadata()->mutable_labels())[kPodRevisionLabel] = revision;
    pod->mutable_status()->set_phase(state == "pending"  ? "Pending"
                                     : state == "failed" ? "Failed"
                                     : state == "ended"  ? "Succeeded"
                                                         : "Running");
    if (state == "ready" || state == "going") MakeReady(*pod, kNow - 100s);
    if (state == "fresh") MakeReady(*pod, kNow - 5s);
    if (state == "going") *pod->mutable_metadata()->mutable_deletion_timestamp() = api::ToTime(kNow);
    pods.push_back(pod);
  }
  return pods;
}

std::string Describe(const SetPlan& plan) {
  std::string out;
  const auto add = [&](const char* what, const PodPointers& pods) {
    for (const PodPointer& pod : pods) {
      out += std::string(out.empty() ? "" : " ") + what + pod->metadata().name().substr(4);
    }
  };
  add("restart", plan.restart);
  for (int32_t ordinal : plan.create) out += (out.empty() ? "create" : " create") + std::to_string(ordinal);
  add("remove", plan.remove);
  add("replace", plan.replace);
  return out;
}

struct Shape {
  int32_t replicas = 3;
  bool parallel = false;
  int32_t partition = 0;
  const char* max = nullptr;
  int32_t start = 0, min_ready = 0;
  const char* type = "RollingUpdate";
};

appsv1::StatefulSet Make(const Shape& shape) {
  appsv1::StatefulSet set = StatefulSetNamed("web", shape.replicas);
  appsv1::StatefulSetSpec& spec = *set.mutable_spec();
  if (shape.parallel) spec.set_pod_management_policy("Parallel");
  spec.mutable_update_strategy()->set_type(shape.type);
  auto& rolling = *spec.mutable_update_strategy()->mutable_rolling_update();
  rolling.set_partition(shape.partition);
  if (shape.max && std::string(shape.max).ends_with('%')) {
    *rolling.mutable_max_unavailable() = k8s::FromString(shape.max);
  } else if (shape.max) {
    *rolling.mutable_max_unavailable() = k8s::FromInt(std::stoi(shape.max));
  }
  if (shape.start) spec.mutable_ordinals()->set_start(shape.start);
  if (shape.min_ready) spec.set_min_ready_seconds(shape.min_ready);
  return set;
}

TEST(PlanSetTest, NextSteps) {
  struct Case {
    const char* what;
    Shape shape;
    const char *pods, *plan;
  };
  const Shape ordered{}, parallel{.parallel = true};
  const Case cases[] = {
      // Ordered: one after the other.
      {"the first", ordered, "", "create0"},
      {"the second waits", ordered, "0:new:running", ""},
      {"the second", ordered, "0:new:ready", "create1"},
      {"a gap first", ordered, "1:new:ready 2:new:ready", "create0"},
      {"available, not only ready", {.min_ready = 30}, "0:new:fresh", ""},
      {"available", {.min_ready = 30}, "0:new:ready", "create1"},
      {"going ones are waited for", ordered, "0:new:going", ""},
      {"failed ones are made anew", ordered, "0:new:ready 1:new:failed", "restart1"},
      {"ended ones too", ordered, "0:new:ended", "restart0"},
      {"all is well", ordered, "0:new:ready 1:new:ready 2:new:ready", ""},
      {"ordinals start elsewhere", {.start = 5}, "5:new:ready", "create6"},
      {"those below are too many", {.replicas = 1, .start = 1}, "0:new:ready 1:new:ready", "remove0"},
      {"none", {.replicas = 0}, "", ""},
      // Scaling down, from the top.
      {"the highest goes", {.replicas = 1}, "0:new:ready 1:new:ready 2:new:ready", "remove2"},
      {"one at a time", {.replicas = 1}, "0:new:ready 1:new:ready 2:new:going", ""},
      {"not while a replica is missing", {.replicas = 2}, "0:new:ready 2:new:ready", "create1"},
      {"not while one is unhealthy", {.replicas = 1}, "0:new:running 1:new:ready", ""},
      {"an unhealthy one goes itself", {.replicas = 1}, "0:new:ready 1:new:running", "remove1"},
      {"the lower unhealthy one has to heal", {.replicas = 1}, "0:new:ready 1:new:running 2:new:running", ""},
      // All at once.
      {"parallel start", parallel, "1:new:running", "create0 create2"},
      {"parallel restart", parallel, "0:new:failed 1:new:failed 2:new:running", "restart0 restart1"},
      {"parallel down",
       {.replicas = 1, .parallel = true},
       "0:new:running 1:new:ready 2:new:going 3:new:running",
       "remove3 remove1"},
      // Updates, from the top.
      {"the highest first", ordered, "0:old:ready 1:old:ready 2:old:ready", "replace2"},
      {"then made again", ordered, "0:old:ready 1:old:ready", "create2"},
      {"the next waits", ordered, "0:old:ready 1:old:ready 2:new:running", ""},
      {"also for availability", {.min_ready = 30}, "0:old:ready 1:old:ready 2:new:fresh", ""},
      {"the next", ordered, "0:old:ready 1:old:ready 2:new:ready", "replace1"},
      {"partition", {.partition = 2}, "0:old:ready 1:old:ready 2:new:ready", ""},
      {"partition above all", {.partition = 9}, "0:old:ready 1:old:ready 2:old:ready", ""},
      {"partition counts from the start",
       {.partition = 2, .start = 3},
       "3:old:ready 4:old:ready 5:old:ready",
       "replace5"},
      {"on delete", {.type = "OnDelete"}, "0:old:ready 1:old:ready 2:old:ready", ""},
      {"scaling goes before", {.replicas = 2}, "0:old:ready 1:old:ready 2:old:ready", "remove2"},
      {"parallel updates are one by one too", parallel, "0:old:ready 1:old:ready 2:old:ready", "replace2"},
      {"parallel: a broken old pod is updated",
       {.replicas = 1, .parallel = true},
       "0:old:running",
       "replace0"},
      {"parallel: a broken new one holds on", parallel, "0:old:ready 1:old:ready 2:new:running", ""},
      // Several at a time.
      {"two", {.max = "2"}, "0:old:ready 1:old:ready 2:old:ready", "replace2 replace1"},
      {"most, rounded down", {.max = "99%"}, "0:old:ready 1:old:ready 2:old:ready", "replace2 replace1"},
      {"at least one", {.max = "10%"}, "0:old:ready 1:old:ready 2:old:ready", "replace2"},
      {"one of them is back",
       {.parallel = true, .max = "2"},
       "0:old:ready 1:new:going 2:new:ready",
       "replace0"},
      {"none is back", {.parallel = true, .max = "2"}, "0:old:ready 1:new:going 2:new:running", ""},
      {"broken ones cost nothing",
       {.parallel = true, .max = "2"},
       "0:old:running 1:old:running 2:old:running",
       "replace2 replace1 replace0"},
      {"broken ones count",
       {.parallel = true, .max = "2"},
       "0:old:running 1:old:ready 2:old:ready",
       "replace2"},
      {"within the partition",
       {.partition = 2, .max = "2"},
       "0:old:ready 1:old:ready 2:old:ready",
       "replace2"},
  };
  for (const Case& c : cases) {
    const SetView view = ViewOf(Make(c.shape), Pods(c.pods), "old", "new", kNow);
    EXPECT_EQ(Describe(PlanSet(view)), c.plan) << c.what;
  }
}

TEST(PlanSetTest, LooksAgainWhenAPodBecomesAvailable) {
  const SetView view = ViewOf(Make({.min_ready = 30}), Pods("0:new:fresh"), "new", "new", kNow);
  EXPECT_EQ(PlanSet(view).again, std::chrono::nanoseconds(25s));
  const SetView condemned =
      ViewOf(Make({.replicas = 1, .min_ready = 30}), Pods("0:new:ready 1:new:fresh"), "new", "new", kNow);
  EXPECT_EQ(PlanSet(condemned).again, std::chrono::nanoseconds(25s)) << "it holds up those above it";
}

TEST(PlanSetTest, ADeletedSetDoesNothing) {
  appsv1::StatefulSet set = Make({});
  *set.mutable_metadata()->mutable_deletion_timestamp() = api::ToTime(kNow);
  EXPECT_EQ(Describe(PlanSet(ViewOf(set, Pods("7:new:ready"), "new", "new", kNow))), "");
}

TEST(MaxUnavailableTest, RoundsDownToAtLeastOne) {
  struct Case {
    const char* max;
    int32_t replicas, want;
  };
  for (const Case& c : {Case{nullptr, 10, 1}, Case{"3", 10, 3}, Case{"3", 0, 3}, Case{"10%", 25, 2},
                        Case{"100%", 5, 5}, Case{"50%", 5, 2}, Case{"10%", 5, 1}, Case{"10%", 0, 1}}) {
    EXPECT_EQ(MaxUnavailable(Make({.replicas = c.replicas, .max = c.max})), c.want)
        << (c.max ? c.max : "none") << " of " << c.replicas;
  }
}

TEST(RevisionAtTest, PartitionsKeepTheOldOne) {
  SetView view = ViewOf(Make({.partition = 2}), {}, "old", "new", kNow);
  EXPECT_EQ(RevisionAt(view, 1), "old");
  EXPECT_EQ(RevisionAt(view, 2), "new");
  view.set.mutable_spec()->mutable_ordinals()->set_start(1);
  EXPECT_EQ(RevisionAt(view, 2), "old");
  view.set.mutable_spec()->mutable_update_strategy()->set_type("OnDelete");
  EXPECT_EQ(RevisionAt(view, 0), "new");
  // Without settings: as many as there still are.
  view = ViewOf(Make({}), {}, "old", "new", kNow);
  view.set.mutable_spec()->mutable_update_strategy()->clear_rolling_update();
  view.set.mutable_status()->set_current_replicas(1);
  EXPECT_EQ(RevisionAt(view, 0), "old");
  EXPECT_EQ(RevisionAt(view, 1), "new");
}

TEST(NewStatusTest, CountsAndCompletes) {
  appsv1::StatefulSet set = Make({.min_ready = 30});
  set.mutable_metadata()->set_generation(7);
  PodPointers pods = Pods("0:old:ready 1:old:fresh 2:new:ready 3:new:going");
  appsv1::StatefulSetStatus status = NewStatus(ViewOf(set, pods, "old", "new", kNow), {pods[1]});
  EXPECT_EQ(status.replicas(), 4);
  EXPECT_EQ(status.ready_replicas(), 4);
  EXPECT_EQ(status.available_replicas(), 3);
  EXPECT_EQ(status.current_replicas(), 1);
  EXPECT_EQ(status.updated_replicas(), 1);
  EXPECT_EQ(status.current_revision(), "old");
  EXPECT_EQ(status.update_revision(), "new");
  EXPECT_EQ(status.observed_generation(), 7);
  status = NewStatus(ViewOf(set, Pods("0:new:ready 1:new:ready 2:new:ready"), "old", "new", kNow), {});
  EXPECT_EQ(status.current_revision(), "new");
  EXPECT_EQ(status.current_replicas(), 3);
}

TEST(OrdinalOfTest, OnlyNamesThatItGives) {
  const appsv1::StatefulSet set = Make({});
  for (const auto& [name, want] :
       std::vector<std::pair<std::string, std::optional<int32_t>>>{{"web-0", 0},
                                                                   {"web-17", 17},
                                                                   {"web-", std::nullopt},
                                                                   {"web-01", std::nullopt},
                                                                   {"web--1", std::nullopt},
                                                                   {"web-1x", std::nullopt},
                                                                   {"web-a-1", std::nullopt},
                                                                   {"wub-1", std::nullopt},
                                                                   {"web-99999999999", std::nullopt}}) {
    EXPECT_EQ(OrdinalOf(set, PodNamed(name)), want) << name;
  }
}

TEST(NewPodAtTest, HasItsIdentity) {
  appsv1::StatefulSet set = WithClaims(Make({}), {"data", "log"});
  corev1::Volume& shadowed = *set.mutable_spec()->mutable_template_()->mutable_spec()->add_volumes();
  shadowed.set_name("log");
  shadowed.mutable_volume_source()->mutable_empty_dir();
  set.mutable_spec()->mutable_template_()->mutable_spec()->add_volumes()->set_name("tmp");
  const corev1::Pod pod = NewPodAt(set, 3, "web-abc");
  EXPECT_EQ(pod.metadata().name(), "web-3");
  EXPECT_TRUE(pod.metadata().generate_name().empty());
  EXPECT_EQ(pod.spec().hostname(), "web-3");
  EXPECT_EQ(pod.spec().subdomain(), "web-svc");
  EXPECT_EQ(pod.metadata().labels().at("statefulset.kubernetes.io/pod-name"), "web-3");
  EXPECT_EQ(pod.metadata().labels().at("apps.kubernetes.io/pod-index"), "3");
  EXPECT_EQ(pod.metadata().labels().at("controller-revision-hash"), "web-abc");
  EXPECT_EQ(api::ControllerOf(pod.metadata())->kind(), "StatefulSet");
  std::vector<std::string> volumes;
  for (const auto& volume : pod.spec().volumes()) {
    volumes.push_back(volume.name() + "=" + volume.volume_source().persistent_volume_claim().claim_name());
  }
  EXPECT_THAT(volumes, ElementsAre("data=data-web-3", "log=log-web-3", "tmp="));
  EXPECT_TRUE(HasIdentity(set, pod, 3));
  EXPECT_TRUE(HasStorage(set, pod, 3));
  EXPECT_FALSE(HasIdentity(set, pod, 2));
  EXPECT_FALSE(HasStorage(set, PodNamed("web-3"), 3));

  const auto claims = ClaimsAt(set, 3);
  ASSERT_EQ(claims.size(), 2u);
  EXPECT_EQ(claims[1].metadata().name(), "log-web-3");
  EXPECT_EQ(claims[1].metadata().namespace_(), "default");
  EXPECT_EQ(claims[1].metadata().labels().at("app"), "web");
}

TEST(UpdateOwnersTest, FollowsTheRetentionPolicy) {
  struct Case {
    const char *when_deleted, *when_scaled;
    int32_t ordinal;  // 5: too many
    std::vector<std::string> owners;
  };
  for (const Case& c : {Case{"Retain", "Retain", 0, {}}, Case{"Retain", "Retain", 5, {}},
                        Case{"Delete", "Retain", 0, {"set"}}, Case{"Delete", "Retain", 5, {"set"}},
                        Case{"Retain", "Delete", 0, {}}, Case{"Retain", "Delete", 5, {"pod"}},
                        Case{"Delete", "Delete", 0, {"set"}}, Case{"Delete", "Delete", 5, {"pod"}}}) {
    appsv1::StatefulSet set = WithClaims(Make({}), {"data"}, c.when_deleted, c.when_scaled);
    set.mutable_metadata()->set_uid("set");
    corev1::Pod pod = PodNamed("web-" + std::to_string(c.ordinal));
    pod.mutable_metadata()->set_uid("pod");
    // With any earlier state, also in the form of releases that set no controller.
    for (const std::vector<std::string>& before :
         std::vector<std::vector<std::string>>{{}, {"set"}, {"pod"}, {"set", "pod"}}) {
      corev1::PersistentVolumeClaim claim;
      for (const std::string& uid : before) claim.mutable_metadata()->add_owner_references()->set_uid(uid);
      UpdateOwners(set, pod, c.ordinal, claim);
      std::vector<std::string> owners;
      for (const auto& owner : claim.metadata().owner_references()) {
        owners.push_back(owner.uid());
        EXPECT_TRUE(owner.controller());
      }
      EXPECT_EQ(owners, c.owners) << c.when_deleted << " " << c.when_scaled << " " << c.ordinal;
      EXPECT_FALSE(UpdateOwners(set, pod, c.ordinal, claim));
    }
    corev1::PersistentVolumeClaim foreign;
    auto& owner = *foreign.mutable_metadata()->add_owner_references();
    owner.set_uid("other");
    owner.set_controller(true);
    EXPECT_FALSE(UpdateOwners(set, pod, c.ordinal, foreign));
  }
}

}  // namespace
}  // namespace keelson::controllers
