#include "controlplane/controllers/podautoscaler/replicas.h"

#include <gtest/gtest.h>

#include <optional>

#include "lib/api/meta.h"

namespace keelson::controllers::podautoscaler {
namespace {

using std::chrono::seconds;

const WallTime kNow = WallTime(seconds(1800000000));

struct Case {
  struct PodRow {
    std::optional<int64_t> used;  // thousandths; none: nothing is known of it
    int64_t request = 1000;
    const char *phase = "Running", *ready = "True";
    int started = 3600, changed = 3500, measured = 10;  // seconds ago
    bool deleting = false;
  };
  const char* name;
  int32_t current;
  int64_t target;  // percent, or thousandths
  std::vector<PodRow> pods;
  int32_t replicas;
  int64_t percent = 0;
  const char* error = "";
  const char* resource = "cpu";
};

struct Scene {
  Pods pods;
  PodValues values;
};

Scene Make(const Case& c) {
  Scene out;
  for (const Case::PodRow& row : c.pods) {
    corev1::Pod pod;
    const std::string name = "p" + std::to_string(out.pods.size());
    pod.mutable_metadata()->set_name(name);
    if (row.deleting) *pod.mutable_metadata()->mutable_deletion_timestamp() = api::ToTime(kNow);
    corev1::Container& container = *pod.mutable_spec()->add_containers();
    container.set_name("main");
    if (row.request > 0) {
      (*container.mutable_resources()->mutable_requests())[c.resource].set_string(
          std::to_string(row.request) + "m");
    }
    pod.mutable_status()->set_phase(row.phase);
    *pod.mutable_status()->mutable_start_time() = api::ToTime(kNow - seconds(row.started));
    corev1::PodCondition& ready = *pod.mutable_status()->add_conditions();
    ready.set_type("Ready");
    ready.set_status(row.ready);
    *ready.mutable_last_transition_time() = api::ToTime(kNow - seconds(row.changed));
    out.pods.push_back(std::make_shared<const corev1::Pod>(pod));
    if (row.used) out.values[name] = {kNow - seconds(row.measured), seconds(30), *row.used};
  }
  // A pod that has gone since.
  out.values["gone"] = {kNow, seconds(30), 100000};
  return out;
}

void Check(const Case& c, const Result<Proposal>& proposal) {
  EXPECT_EQ(proposal ? "" : proposal.error().message(), c.error) << c.name;
  if (!proposal) return;
  EXPECT_EQ(proposal->replicas, c.replicas) << c.name;
  if (c.percent > 0) {
    EXPECT_EQ(proposal->percent, c.percent) << c.name;
  }
}

TEST(ByUtilization, Table) {
  const Case::PodRow kStarting{900, 1000, "Running", "True", 60, 35, 10},
      kStarted{900, 1000, "Running", "True", 60, 45, 10},
      kStartingUnready{900, 1000, "Running", "False", 60, 55, 10},
      kOldUnready{900, 1000, "Running", "False", 3600, 100, 10},
      kNeverReady{900, 1000, "Running", "False", 3600, 3580, 10}, kPending{{}, 1000, "Pending", "False"},
      kFailed{900, 1000, "Failed", "False"}, kDeleting{900, 1000, "Running", "True", 3600, 3500, 10, true};
  for (const Case& c : std::vector<Case>{
           {"as it should be", 2, 50, {{500}, {500}}, 2, 50},
           {"more", 3, 30, {{300}, {500}, {700}}, 5, 50},
           {"a little more", 3, 47, {{300}, {500}, {700}}, 3, 50},
           {"less", 5, 50, {{100}, {300}, {500}, {250}, {250}}, 3, 28},
           {"a little less", 3, 53, {{300}, {500}, {700}}, 3, 50},
           {"idle", 3, 50, {{0}, {0}, {0}}, 0, 0},
           {"unequal requests", 2, 50, {{100, 100}, {100, 900}}, 1, 20},
           {"more, one is not known: idle", 4, 30, {{300}, {500}, {700}, {{}}}, 5, 50},
           {"less, one is not known: at its request", 4, 50, {{100}, {300}, {500}, {{}}}, 4, 30},
           {"less, one is not known: at the target above it", 4, 200, {{900}, {900}, {900}, {{}}}, 3, 90},
           {"more, one is not ready: idle", 3, 30, {kStartingUnready, {500}, {700}}, 4, 60},
           {"less, one is not ready: left out", 3, 50, {kStartingUnready, {100}, {100}}, 1, 10},
           {"more, but with those that are not ready it turns",
            3,
            50,
            {kStartingUnready, kPending, {600}},
            3,
            60},
           {"ready, and no whole window since", 3, 30, {kStarting, {500}, {700}}, 4, 60},
           {"ready, and a whole window since", 3, 30, {kStarted, {500}, {700}}, 7, 70},
           {"not ready any more: counts", 3, 30, {kOldUnready, {500}, {700}}, 7, 70},
           {"has never been ready", 3, 30, {kNeverReady, {500}, {700}}, 4, 60},
           {"pending", 3, 30, {kPending, {500}, {700}}, 4, 60},
           {"failed and deleted ones are none", 2, 30, {kFailed, kDeleting, {500}, {700}}, 4, 60},
           {"memory is believed at once", 2, 30, {{kStartingUnready}, {300}}, 4, 60, "", "memory"},
           // Four pods of a rollout where there should be two: a smaller ratio may not make it more.
           {"never the other way", 2, 50, {{300}, {300}, {300}, {300}, {{}}}, 2, 30},
           {"none is ready", 1, 50, {kStartingUnready}, 0, 0, "did not receive metrics for any ready pods"},
           {"no pods", 1, 50, {}, 0, 0, "no pods returned by selector while calculating replica count"},
           {"no request", 1, 50, {{500, 0}}, 0, 0, "missing request for cpu in container main of Pod p0"},
       }) {
    Scene scene = Make(c);
    Check(c, ByUtilization({scene.pods, c.current, {}, kNow}, scene.values, c.resource, "",
                           static_cast<int32_t>(c.target)));
  }
}

TEST(ByUtilization, NothingIsKnown) {
  Scene scene = Make({"", 1, 50, {{{}}}, 0});
  Result<Proposal> proposal = ByUtilization({scene.pods, 1, {}, kNow}, {}, "cpu", "", 50);
  ASSERT_FALSE(proposal);
  EXPECT_EQ(proposal.error().message(), "did not receive metrics for any ready pods");
}

TEST(ByUtilization, WhatIsRequested) {
  struct Row {
    const char *name, *spec, *container;
    int32_t percent;
    const char* error;
  };
  for (const Row& row : {
           Row{"all containers", R"([100, 300])", "", 100, ""},
           Row{"one of them", R"([100, 300])", "c1", 133, ""},
           Row{"another without a request does not matter", R"([0, 300])", "c1", 133, ""},
           Row{"a sidecar", R"([100, 300, "sidecar", 400])", "", 50, ""},
           Row{"an init container", R"([100, 300, "init", 400])", "", 100, ""},
           Row{"of the pod as a whole", R"([0, 0, "pod", 800])", "", 50, ""},
           Row{"of another resource as a whole: the containers'", R"([100, 300, "memory", 800])", "", 100,
               ""},
           Row{"of another resource alone", R"([0, 0, "memory", 800])", "", 0,
               "missing pod-level request for cpu in Pod p"},
           Row{"a container that is not there", R"([100, 300])", "c2", 0, "container c2 not found in Pod p"},
           Row{"a container where the pod has some", R"([100, 0, "pod", 800])", "c0", 400, ""},
           Row{"a sidecar without", R"([100, 300, "sidecar", 0])", "", 0,
               "missing request for cpu in container extra of Pod p"},
       }) {
    corev1::Pod pod;
    pod.mutable_metadata()->set_name("p");
    pod.mutable_status()->set_phase("Running");
    int first = 0, second = 0, extra = 0;
    char what[16] = "";
    sscanf(row.spec, R"([%d, %d, "%15[a-z]", %d])", &first, &second, what, &extra);
    auto request = [](auto& resources, int milli) {
      if (milli > 0) (*resources.mutable_requests())["cpu"].set_string(std::to_string(milli) + "m");
    };
    for (int milli : {first, second}) {
      corev1::Container& container = *pod.mutable_spec()->add_containers();
      container.set_name("c" + std::to_string(pod.spec().containers_size() - 1));
      request(*container.mutable_resources(), milli);
    }
    if (std::string(what) == "pod") request(*pod.mutable_spec()->mutable_resources(), extra);
    if (std::string(what) == "memory") {
      (*pod.mutable_spec()->mutable_resources()->mutable_requests())["memory"].set_string("1Gi");
    }
    if (std::string(what) == "sidecar" || std::string(what) == "init") {
      corev1::Container& container = *pod.mutable_spec()->add_init_containers();
      container.set_name("extra");
      if (std::string(what) == "sidecar") container.set_restart_policy("Always");
      request(*container.mutable_resources(), extra);
    }
    corev1::PodCondition& ready = *pod.mutable_status()->add_conditions();
    ready.set_type("Ready");
    ready.set_status("True");
    *pod.mutable_status()->mutable_start_time() = api::ToTime(kNow - seconds(3600));
    const PodValues values{{"p", {kNow, seconds(30), 400}}};
    const Pods pods{std::make_shared<const corev1::Pod>(pod)};
    Result<Proposal> proposal = ByUtilization({pods, 1, {}, kNow}, values, "cpu", row.container, 100);
    EXPECT_EQ(proposal ? "" : proposal.error().message(), row.error) << row.name;
    if (proposal) {
      EXPECT_EQ(proposal->percent, row.percent) << row.name;
    }
  }
}

TEST(ByAverage, Table) {
  const Case::PodRow kPending{{}, 1000, "Pending", "False"};
  for (Case& c : std::vector<Case>{
           {"more", 3, 15000, {{20000}, {10000}, {30000}}, 4},
           {"a little more", 3, 19000, {{20000}, {10000}, {30000}}, 3},
           {"less", 5, 20000, {{12000}, {12000}, {12000}, {12000}, {12000}}, 3},
           {"more, one is not known: idle", 4, 15000, {{20000}, {20000}, {20000}, {{}}}, 4},
           {"much more, one is not known", 4, 5000, {{20000}, {20000}, {20000}, {{}}}, 12},
           {"less, one is not known: at the target", 4, 20000, {{10000}, {10000}, {10000}, {{}}}, 3},
           {"just so, one is not known", 4, 20000, {{20000}, {20000}, {20000}, {{}}}, 4},
           {"readiness does not matter", 2, 10000, {{20000}, {20000, 0, "Running", "False", 60, 55, 10}}, 4},
           {"pending pods do", 3, 10000, {{20000}, {20000}, kPending}, 4},
           {"no pods", 1, 50, {}, 0, 0, "no pods returned by selector while calculating replica count"},
       }) {
    Scene scene = Make(c);
    Check(c, ByAverage({scene.pods, c.current, {}, kNow}, scene.values, "", c.target));
  }
}

TEST(ByValue, GrowsWithThePodsThatAreReady) {
  struct Row {
    int32_t current;
    int ready;
    int64_t value, target;
    int32_t replicas;
  };
  for (const Row& row : {Row{3, 3, 20000, 15000, 4}, Row{3, 3, 16000, 15000, 3}, Row{3, 2, 20000, 10000, 4},
                         Row{5, 5, 4000, 10000, 2}, Row{3, 3, 0, 10000, 0}, Row{0, 0, 25000, 10000, 3},
                         Row{0, 0, 0, 10000, 0}}) {
    Case c{"", row.current, row.target, {}, row.replicas};
    for (int i = 0; i < std::max(1, row.current); ++i) {
      c.pods.push_back({1, 1000, "Running", i < row.ready ? "True" : "False"});
    }
    Scene scene = Make(c);
    Result<Proposal> proposal = ByValue({scene.pods, row.current, {}, kNow}, row.value, row.target);
    ASSERT_TRUE(proposal);
    EXPECT_EQ(proposal->replicas, row.replicas) << row.current << " " << row.value;
    EXPECT_EQ(proposal->milli, row.value);
  }
  Result<Proposal> none = ByValue({{}, 1, {}, kNow}, 100, 1);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message(),
            "unable to calculate ready pods: no pods returned by selector while calculating replica count");
}

TEST(ByValuePerPod, IsTheValueDivided) {
  struct Row {
    int32_t status;
    int64_t value, target;
    int32_t replicas;
    int64_t average;
  };
  for (const Row& row : {Row{3, 8600, 2867, 3, 2867}, Row{3, 8600, 2150, 4, 2867},
                         Row{3, 8600, 8600, 1, 2867}, Row{0, 8600, 2150, 4, 8600}, Row{3, 0, 2150, 0, 0}}) {
    Proposal proposal = ByValuePerPod({{}, 7, {}, kNow}, row.status, row.value, row.target);
    EXPECT_EQ(proposal.replicas, row.replicas) << row.target;
    EXPECT_EQ(proposal.milli, row.average) << row.target;
  }
}

TEST(Tolerances, EachDirectionHasItsOwn) {
  const Tolerances tight_up{0.5, 0};
  EXPECT_TRUE(tight_up.Within(0.5));
  EXPECT_FALSE(tight_up.Within(0.49));
  EXPECT_FALSE(tight_up.Within(1.001));
  Scene scene = Make({"", 2, 50, {{260}, {260}}, 0});
  auto replicas = [&](double down, double up) {
    return ByUtilization({scene.pods, 2, {down, up}, kNow}, scene.values, "cpu", "", 25)->replicas;
  };
  EXPECT_EQ(replicas(0.1, 0.1), 2);
  EXPECT_EQ(replicas(0.1, 0.01), 3);
}

}  // namespace
}  // namespace keelson::controllers::podautoscaler
