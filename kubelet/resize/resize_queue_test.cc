#include "kubelet/resize/resize_queue.h"

#include <utility>

#include "kubelet/resize/testing/allocations_test.h"

namespace keelson::kubelet {
namespace {

TEST(ResizeTurns, WhoGoesFirst) {
  const WallTime early(std::chrono::seconds(1)), late(std::chrono::seconds(2));
  auto has = MakePod({Resources("1/1Mi", "/")}), less = MakePod({Resources("500m/1Mi", "/")}),
       more = MakePod({Resources("2/1Mi", "/")}), guaranteed = MakePod({Resources("2/1Mi", "2/1Mi")}),
       high = MakePod({Resources("2/1Mi", "/")});
  high->mutable_spec()->set_priority(1000);
  const struct {
    std::string what;
    ResizeTurn first, second;
  } cases[] = {
      {"who gives back", TurnOf(*less, *has, late), TurnOf(*high, *has, early)},
      {"priority", TurnOf(*high, *has, late), TurnOf(*guaranteed, *has, early)},
      {"quality of service", TurnOf(*guaranteed, *has, late), TurnOf(*more, *has, early)},
      {"time", TurnOf(*more, *has, early), TurnOf(*more, *has, late)},
  };
  for (const auto& c : cases) {
    EXPECT_TRUE(ComesBefore(c.first, c.second)) << c.what;
    EXPECT_FALSE(ComesBefore(c.second, c.first)) << c.what;
  }
}

class ResizeQueueTest : public AllocationsTest {
 protected:
  // A pod that has `cpu` and is on the node from now on.
  void Has(const std::string& uid, const std::string& cpu) {
    EXPECT_TRUE(MakeDirs(paths_.Pod(uid)));
    pods_[uid] = Make(uid, cpu);
    allocations_.Restore(*pods_[uid], {});
  }
  // "" when it is granted at once.
  std::string Wishes(const std::string& uid, const std::string& cpu, int priority = 0) {
    auto pod = Make(uid, cpu);
    pod->mutable_spec()->set_priority(priority);
    pods_[uid] = pod;
    auto refusal = queue_.Ask(pod);
    return refusal ? refusal->reason : "";
  }
  std::string Granted() { return std::exchange(granted_, ""); }
  void Gone(const std::string& uid) {
    pods_.erase(uid);
    queue_.Leave(uid);
    queue_.Retry();
  }
  static std::shared_ptr<corev1::Pod> Make(const std::string& uid, const std::string& cpu) {
    auto pod = MakePod({Resources(cpu + "/", "/")});
    pod->mutable_metadata()->set_uid(uid);
    return pod;
  }
  NodeRoom Room(const std::string& uid) {
    NodeRoom room;
    room.allocatable["cpu"] = *api::Amount::Parse("10");
    room.allocatable["memory"] = *api::Amount::Parse("1Gi");
    for (const auto& [other, pod] : pods_) {
      if (other != uid) k8s::Add(room.used_by_others, k8s::PodRequests(*allocations_.Granted(pod)));
    }
    return room;
  }

  std::map<std::string, Allocations::PodPtr> pods_;
  std::string granted_;
  Allocations allocations_{paths_};
  FakeClock clock_;
  ResizeQueue queue_{{allocations_,
                      [this](const corev1::Pod& wish, const corev1::Pod& granted) {
                        return RefuseResize(wish, granted, Room(wish.metadata().uid()));
                      },
                      [this](const std::string& uid) { granted_ += uid + " "; }},
                     clock_};
};

TEST_F(ResizeQueueTest, RoomGoesToWhoIsFirst) {
  Has("big", "7");
  for (const char* uid : {"a", "b", "c"}) Has(uid, "500m");
  EXPECT_EQ(Wishes("a", "7"), "Deferred");
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_EQ(Wishes("b", "7", 1000), "Deferred");
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_EQ(Wishes("c", "7"), "Deferred");
  EXPECT_EQ(Wishes("a", "7"), "Deferred");  // it looks again, and keeps its place
  EXPECT_EQ(Wishes("c", "100"), "Infeasible");
  EXPECT_EQ(Wishes("c", "7"), "Deferred");
  Gone("big");
  EXPECT_EQ(Granted(), "b ");
  Gone("b");
  EXPECT_EQ(Granted(), "a ");
  Gone("a");
  EXPECT_EQ(Granted(), "c ");
}

TEST_F(ResizeQueueTest, WhatOneGivesBackIsAnothersRoom) {
  Has("a", "5");
  Has("b", "3");
  EXPECT_EQ(Wishes("b", "6"), "Deferred");
  EXPECT_EQ(Wishes("a", "2"), "");
  EXPECT_EQ(Granted(), "b ");
  // Pods that were resized, or that withdrew the request, no longer wait.
  EXPECT_EQ(Wishes("a", "9"), "Deferred");
  queue_.Leave("a");
  Gone("b");
  EXPECT_EQ(Granted(), "");
}

}  // namespace
}  // namespace keelson::kubelet
