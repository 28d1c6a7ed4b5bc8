// A node full of crash-looping containers: the cost for runtime, API server and disk in an hour.
#include <filesystem>

#include "kubelet/testing/fault_test.h"

namespace keelson::kubelet {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr size_t kPods = 100, kEach = 3, kContainers = kPods * kEach;
// Restarts at once, then after 10, 20, 40, 80, 160, and then every 300 seconds.
constexpr size_t kRunsAnHour = 1 + 1 + 5 + (3600 - 310) / 300;

class CrashLoopsTest : public FaultTest {
 protected:
  size_t Count(const std::string& method) {
    size_t out = 0;
    for (const std::string& call : runtime_.Calls()) {
      if (call.compare(0, method.size() + 1, method + " ") == 0) ++out;
    }
    return out;
  }
  void CreateAll() {
    for (const char* name : {"a", "b", "c"}) runtime_.ExitOnStart(name, 1);
    for (size_t i = 0; i < kPods; ++i) {
      harness_->Create(R"({"metadata":{"name":"web-)" + std::to_string(i) + R"("},"spec":{"containers":[
          {"name":"a","image":"img:1"},{"name":"b","image":"img:1"},{"name":"c","image":"img:1"}]}})");
    }
  }
  // Every container is in back-off, and earlier runs are cleaned up.
  bool Rests() {
    for (size_t i = 0; i < kPods; ++i) {
      const corev1::Pod pod = harness_->Get("web-" + std::to_string(i));
      for (const auto& status : pod.status().container_statuses()) {
        if (status.state().waiting().reason() != "CrashLoopBackOff") return false;
      }
    }
    return runtime_.ListContainers({}, {})->size() <= kContainers * 2;
  }
  size_t FilesBelow(const std::string& dir) {
    size_t out = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(dir)) {
      out += entry.is_regular_file();
    }
    return out;
  }
};

TEST_F(CrashLoopsTest, CostALimitedAmount) {
  harness_->Start();
  CreateAll();
  Pass(minutes(60), seconds(2));
  EXPECT_TRUE(PassUntil(seconds(30), [this] { return Rests(); }))
      << "time may have run ahead of a busy machine";

  // The right number of runs, neither a storm nor a standstill.
  const size_t runs = Count("StartContainer");
  EXPECT_LE(runs, kContainers * (kRunsAnHour + 1));
  EXPECT_GE(runs, kContainers * kRunsAnHour / 2) << "time may run ahead of a busy machine";
  for (const char* name : {"web-0", "web-99"}) {
    const corev1::Pod pod = harness_->Get(name);
    EXPECT_EQ(pod.status().phase(), "Running");
    for (const auto& status : pod.status().container_statuses()) {
      EXPECT_EQ(status.state().waiting().reason(), "CrashLoopBackOff");
      const std::string wanted =
          "back-off 5m0s restarting failed container=" + status.name() + " pod=" + name;
      EXPECT_EQ(status.state().waiting().message().substr(0, wanted.size()), wanted);
      EXPECT_EQ(status.last_state().terminated().exit_code(), 1);
      EXPECT_GE(static_cast<size_t>(status.restart_count()), kRunsAnHour / 2);
      EXPECT_LE(static_cast<size_t>(status.restart_count()), kRunsAnHour);
    }
  }

  // A run takes its creation, start and removal, one look at its image and two at its status. A pod is looked
  // at, by two lists, when it is due (once a minute), before and after each round of runs, and when the
  // runtime's list shows a change. That list, two calls, is made every second, the node's three calls every
  // ten.
  const size_t rounds = kPods * (kRunsAnHour + 1);
  const size_t calls = runs * 6 + (kPods * 60 + rounds * 8) * 2 + 3600 * 2 + 360 * 3;
  EXPECT_LE(faults_.Calls(), calls);

  // Each round causes two status updates (running, waiting), and none while nothing changes.
  EXPECT_LE(api_->Requests("PATCH", "/status"), rounds * kEach * 2 + 360);
  // Five kinds of events a container, once, then counted: a burst of 25 about each pod, then one in five
  // minutes.
  EXPECT_LE(api_->Requests("POST", "/events") + api_->Requests("PATCH", "/events/"), kPods * (25 + 12) + 100);
  // Leases and the node's own.
  EXPECT_LE(api_->Requests() - api_->Requests("PATCH", "/status") - api_->Requests("POST", "/events") -
                api_->Requests("PATCH", "/events/"),
            2000u);

  // The latest two runs stay, of each the place of its last message, and the pod's own files.
  EXPECT_LE(runtime_.ListContainers({}, {})->size(), kContainers * 2);
  EXPECT_LE(FilesBelow(dir_ + "/kubelet/pods"), kContainers * 2 + kPods);
}

// A container that has not started cannot have ended, also with short runs.
TEST_F(CrashLoopsTest, WhoWaitsForTheNextRunIsNotLookedAtMeanwhile) {
  runtime_.FollowClock();
  harness_->Start();
  runtime_.ExitOnStart("main", 1);
  harness_->Create(R"({"metadata":{"name":"job"},"spec":{"restartPolicy":"OnFailure",
      "containers":[{"name":"main","image":"img:1"}]}})");
  ASSERT_TRUE(PassUntil(minutes(1), [&] { return runtime_.Count("StartContainer main") == 3; }));
  Pass(seconds(5));
  const size_t before = faults_.Calls();
  Pass(seconds(10), milliseconds(20));
  // Two lists a second of all, and the node's three calls.
  EXPECT_LE(faults_.Calls() - before, 10u * 2 + 3 + 8);
  EXPECT_EQ(runtime_.Count("StartContainer main"), 3u);
}

TEST_F(CrashLoopsTest, ARunThatLastsBeginsTheWaitAnew) {
  harness_->Start();
  runtime_.ExitOnStart("main", 1);
  corev1::Pod pod = Create("web");
  EXPECT_TRUE(PassUntil(minutes(12), "web", [](const corev1::Pod* p) {
    return WaitingFor(p) == "CrashLoopBackOff" &&
           p->status().container_statuses(0).state().waiting().message().compare(0, 13, "back-off 5m0s") == 0;
  }));
  runtime_.ExitOnStart("main", std::nullopt);
  ASSERT_TRUE(PassUntil(minutes(6), "web", IsPodReady));
  Pass(minutes(11), seconds(5));
  runtime_.ExitOnStart("main", 1);
  runtime_.ExitContainer(pod.metadata().uid(), "main", 1);
  EXPECT_TRUE(PassUntil(seconds(5), "web", [](const corev1::Pod* p) {
    return WaitingFor(p) == "CrashLoopBackOff" &&
           p->status().container_statuses(0).state().waiting().message().compare(0, 12, "back-off 10s") == 0;
  })) << harness_->Get("web").ShortDebugString();
}

}  // namespace
}  // namespace keelson::kubelet
