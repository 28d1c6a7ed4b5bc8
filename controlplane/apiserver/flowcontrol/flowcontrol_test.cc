#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <thread>

#include "controlplane/apiserver/flowcontrol/bootstrap.h"
#include "controlplane/apiserver/flowcontrol/controller.h"

namespace keelson::apiserver::flowcontrol {
namespace {

RequestInfo Info(const std::string& method, const std::string& path) {
  return ParseRequestInfo(method, path, http::Query());
}

template <typename T>
std::shared_ptr<const T> Share(const T& object) {
  return std::make_shared<const T>(object);
}

void PutBootstrap(Controller& controller) {
  const BootstrapObjects& all = Bootstrap();
  for (const auto* levels : {&all.mandatory_levels, &all.suggested_levels}) {
    for (const auto& level : *levels) controller.Put(Share(level));
  }
  for (const auto* schemas : {&all.mandatory_schemas, &all.suggested_schemas}) {
    for (const auto& schema : *schemas) controller.Put(Share(schema));
  }
}

TEST(FlowControl, BootstrapSchemasClassifyAsUpstream) {
  Controller controller(
      {600,
       std::chrono::seconds(15),
       {[](const RequestInfo&) { return WorkEstimator::Stored(); }, [](const RequestInfo&) { return 0; }}});
  PutBootstrap(controller);
  const User admin{"admin", "", {"system:masters", "system:authenticated"}, {}},
      node{"system:node:a", "", {"system:nodes", "system:authenticated"}, {}},
      manager{"system:kube-controller-manager", "", {"system:authenticated"}, {}},
      account{"system:serviceaccount:a:b", "", {"system:serviceaccounts", "system:authenticated"}, {}},
      system{
          "system:serviceaccount:kube-system:b", "", {"system:serviceaccounts", "system:authenticated"}, {}},
      jane{"jane", "", {"system:authenticated"}, {}}, nobody{"x", "", {}, {}};
  struct Case {
    const User& user;
    const char *method, *path, *schema, *level;
  };
  const Case cases[] = {
      {admin, "GET", "/api/v1/pods", "exempt", "exempt"},
      {AnonymousUser(), "GET", "/readyz", "probes", "exempt"},
      {AnonymousUser(), "GET", "/version", "global-default", "global-default"},
      {node, "PATCH", "/api/v1/nodes/a/status", "system-node-high", "node-high"},
      {node, "PUT", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/a", "system-node-high",
       "node-high"},
      {node, "GET", "/api/v1/pods", "system-nodes", "system"},
      {manager, "PUT", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/x",
       "system-leader-election", "leader-election"},
      {manager, "PUT", "/api/v1/namespaces/a/endpoints/x", "kube-controller-manager", "workload-high"},
      {manager, "GET", "/api/v1/pods", "kube-controller-manager", "workload-high"},
      {system, "GET", "/api/v1/pods", "kube-system-service-accounts", "workload-high"},
      {account, "GET", "/api/v1/pods", "service-accounts", "workload-low"},
      {jane, "GET", "/api/v1/namespaces/a/pods/b/status", "global-default", "global-default"},
      {nobody, "GET", "/api", "", ""},
  };
  for (const Case& one : cases) {
    std::string schema = "none", level;
    controller.Handle(
        one.user, Info(one.method, one.path), {},
        [&](const Classified& who) {
          schema = who.schema;
          level = who.level;
        },
        [](const Classified&) { FAIL(); });
    EXPECT_EQ(schema, one.schema) << one.user.name << one.path;
    EXPECT_EQ(level, one.level) << one.user.name << one.path;
  }
}

TEST(FlowControl, HandsAreOfDifferentQueues) {
  std::set<std::vector<int>> different;
  for (uint64_t seed = 1; seed < 200; ++seed) {
    std::vector<int> hand = DealHand(seed * 0x9e3779b97f4a7c15, 64, 6);
    ASSERT_EQ(hand.size(), 6u);
    EXPECT_EQ(std::set<int>(hand.begin(), hand.end()).size(), 6u);
    for (int card : hand) EXPECT_TRUE(card >= 0 && card < 64);
    different.insert(hand);
  }
  EXPECT_GT(different.size(), 190u);
  EXPECT_EQ(DealHand(5, 2, 6).size(), 2u);
}

// One level of users whose requests wait, and one that lends its seats.
class Seats : public testing::Test {
 protected:
  static LevelPtr Level(const std::string& name, int shares, int lendable, int queues, int length,
                        int borrowing = -1) {
    flowcontrolv1::PriorityLevelConfiguration level;
    level.mutable_metadata()->set_name(name);
    level.mutable_spec()->set_type("Limited");
    auto& limited = *level.mutable_spec()->mutable_limited();
    limited.set_nominal_concurrency_shares(shares);
    limited.set_lendable_percent(lendable);
    if (borrowing >= 0) limited.set_borrowing_limit_percent(borrowing);
    limited.mutable_limit_response()->set_type(queues > 0 ? "Queue" : "Reject");
    if (queues > 0) {
      auto& queuing = *limited.mutable_limit_response()->mutable_queuing();
      queuing.set_queues(queues);
      queuing.set_hand_size(std::min(queues, 2));
      queuing.set_queue_length_limit(length);
    }
    return Share(level);
  }
  static FlowSchemaPtr Schema(const std::string& name, const std::string& level, const std::string& group) {
    flowcontrolv1::FlowSchema schema;
    schema.mutable_metadata()->set_name(name);
    schema.mutable_spec()->mutable_priority_level_configuration()->set_name(level);
    schema.mutable_spec()->set_matching_precedence(10);
    schema.mutable_spec()->mutable_distinguisher_method()->set_type("ByUser");
    auto& rules = *schema.mutable_spec()->add_rules();
    rules.add_subjects()->set_kind("Group");
    rules.mutable_subjects(0)->mutable_group()->set_name(group);
    auto& rule = *rules.add_resource_rules();
    rule.add_verbs("*");
    rule.add_api_groups("*");
    rule.add_resources("*");
    rule.set_cluster_scope(true);
    return Share(schema);
  }

  // Sits in a seat on a thread of its own until Release(), or until it is the one of LetOneGo().
  struct Held {
    Mutex mutex;
    CondVar changed;
    int seated KEELSON_GUARDED_BY(mutex) = 0, may_go KEELSON_GUARDED_BY(mutex) = 0,
               gone KEELSON_GUARDED_BY(mutex) = 0;
    bool released KEELSON_GUARDED_BY(mutex) = false;
    void Sit() {
      MutexLock lock(mutex);
      ++seated;
      changed.notify_all();
      while (!released && may_go == 0) changed.wait(mutex);
      if (!released) --may_go;
    }
    void Gone() {
      MutexLock lock(mutex);
      ++gone;
      changed.notify_all();
    }
    // Returns after the request and all requests that got its seat have finished, one after the other on its thread.
    void LetOneGo() {
      MutexLock lock(mutex);
      const int wanted = gone + 1;
      ++may_go;
      changed.notify_all();
      while (gone < wanted) changed.wait(mutex);
    }
    void Await(int count) {
      MutexLock lock(mutex);
      while (seated < count) changed.wait(mutex);
    }
    void Release() {
      MutexLock lock(mutex);
      released = true;
      changed.notify_all();
    }
  };
  void Occupy(const User& user, int count) {
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back([this, &user] {
        controller_.Handle(
            user, Info("GET", "/api/v1/nodes"), {}, [this](const Classified&) { held_.Sit(); },
            [](const Classified&) { ADD_FAILURE(); });
        held_.Gone();
      });
    }
    seated_ += count;
    held_.Await(seated_);
  }
  // The immediate result of a user's request: seat, queue or rejected.
  std::string Ask(const User& user, const char* method = "GET", const char* path = "/api/v1/nodes") {
    std::string now = "queue";
    auto told = std::make_shared<bool>(true);
    controller_.Handle(
        user, Info(method, path), {},
        [this, told, &user, &now](const Classified&) {
          if (*told) now = "seat";
          MutexLock lock(mutex_);
          order_.push_back(user.name);
        },
        [this, told, &now](const Classified&) {
          if (*told) now = "refused";
          MutexLock lock(mutex_);
          ++refused_;
        });
    *told = false;
    return now;
  }
  void TearDown() override { Leave(); }
  void Leave() {
    held_.Release();
    threads_.clear();
  }

  FakeClock clock_;
  int objects_ = 1, watchers_ = 0;
  Controller controller_{{10,
                          std::chrono::seconds(15),
                          {[this](const RequestInfo&) {
                             return WorkEstimator::Stored{objects_, objects_ * int64_t{1000}};
                           },
                           [this](const RequestInfo&) { return watchers_; }}},
                         clock_};
  Held held_;
  int seated_ = 0;
  Mutex mutex_;
  std::vector<std::string> order_ KEELSON_GUARDED_BY(mutex_);
  int refused_ KEELSON_GUARDED_BY(mutex_) = 0;
  std::vector<std::jthread> threads_;
  const User loud_{"loud", "", {"tenants"}, {}}, quiet_{"quiet", "", {"tenants"}, {}},
      other_{"other", "", {"ops"}, {}};
};

TEST_F(Seats, QueuesAreFairToFlows) {
  controller_.Put(Level("tenants", 50, 0, 16, 5));
  controller_.Put(Level("ops", 50, 0, 0, 0));
  controller_.Put(Schema("tenants", "tenants", "tenants"));
  controller_.Put(Schema("ops", "ops", "ops"));
  Occupy(loud_, 5);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Ask(loud_), "queue");
  EXPECT_EQ(Ask(quiet_), "queue");
  // Another level is not touched by any of this.
  EXPECT_EQ(Ask(other_), "seat");
  // Ten fit into two queues of five.
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Ask(loud_), "queue");
  EXPECT_EQ(Ask(loud_), "refused");
  held_.LetOneGo();
  MutexLock lock(mutex_);
  ASSERT_EQ(order_.size(), 12u);
  auto first_quiet = std::find(order_.begin(), order_.end(), "quiet") - order_.begin();
  EXPECT_LE(first_quiet, 4) << "behind a few of the loud ones, not behind all";
}

TEST_F(Seats, BorrowWhatIsIdle) {
  controller_.Put(Level("tenants", 50, 0, 1, 5));
  controller_.Put(Level("ops", 50, 60, 0, 0));
  controller_.Put(Schema("tenants", "tenants", "tenants"));
  controller_.Put(Schema("ops", "ops", "ops"));
  Occupy(loud_, 5 + 3);  // of five that ops has, it lends three
  EXPECT_EQ(Ask(loud_), "queue");
  // Who lends gets his own when he needs them.
  Occupy(other_, 5);
  EXPECT_EQ(Ask(other_), "refused");
}

TEST_F(Seats, BorrowingIsLimited) {
  controller_.Put(Level("tenants", 50, 0, 1, 5, 20));
  controller_.Put(Level("ops", 50, 100, 0, 0));
  controller_.Put(Schema("tenants", "tenants", "tenants"));
  Occupy(loud_, 5 + 1);
  EXPECT_EQ(Ask(loud_), "queue");
}

TEST_F(Seats, NobodyWaitsForever) {
  controller_.Put(Level("tenants", 50, 0, 1, 5));
  controller_.Put(Schema("tenants", "tenants", "tenants"));
  Occupy(loud_, 10);
  EXPECT_EQ(Ask(quiet_), "queue");
  std::jthread sweeper([this](std::stop_token stop) { controller_.Run(stop); });
  auto refused = [this] {
    MutexLock lock(mutex_);
    return refused_;
  };
  clock_.AwaitWaiters(1);
  clock_.Advance(std::chrono::seconds(14));
  clock_.AwaitWaiters(1);
  EXPECT_EQ(refused(), 0);
  clock_.Advance(std::chrono::seconds(2));
  while (refused() == 0) std::this_thread::yield();
  Leave();
  MutexLock lock(mutex_);
  EXPECT_TRUE(order_.empty());
}

TEST_F(Seats, WideRequestsTakeMoreOfThem) {
  objects_ = 300;
  controller_.Put(Level("tenants", 50, 0, 1, 5));
  controller_.Put(Level("wide", 450, 0, 1, 5));
  controller_.Put(Level("ops", 500, 0, 0, 0));
  controller_.Put(Schema("tenants", "wide", "tenants"));
  controller_.Put(Schema("ops", "ops", "ops"));
  // Of five seats one request may have one.
  Occupy(loud_, 5);
  EXPECT_EQ(Ask(loud_), "queue");
  // A level without queues allows a request as many seats as it needs, up to all.
  EXPECT_EQ(Ask(other_), "seat");
  Occupy(other_, 1);
  EXPECT_NE(controller_.DumpRequests(false).find("ops,"), std::string::npos);
  objects_ = 3000;
  EXPECT_EQ(Ask(other_), "refused");
}

TEST_F(Seats, SeatsAreKeptWhileWatchersAreTold) {
  watchers_ = 10;
  controller_.Put(Level("tenants", 50, 0, 1, 5));
  controller_.Put(Schema("tenants", "tenants", "tenants"));
  // One request has one final seat of ten; it is kept for 5 ms.
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Ask(loud_, "PUT", "/api/v1/nodes/n"), "seat");
  EXPECT_EQ(Ask(loud_, "PUT", "/api/v1/nodes/n"), "queue");
  EXPECT_NE(controller_.DumpRequests(true).find("5ms,"), std::string::npos) << controller_.DumpRequests(true);
  // No request arrives or ends: a helper thread dispatches.
  std::jthread keeper([this](std::stop_token stop) { controller_.Run(stop); });
  clock_.AwaitWaiters(1);
  clock_.Advance(std::chrono::milliseconds(11));
  auto seen = [this] {
    MutexLock lock(mutex_);
    return order_.size();
  };
  while (seen() < 11) std::this_thread::yield();
}

TEST_F(Seats, PagesTellWhoSitsAndWaits) {
  controller_.Put(Level("tenants", 50, 0, 2, 5));
  controller_.Put(Schema("tenants", "tenants", "tenants"));
  Occupy(loud_, 10);
  EXPECT_EQ(Ask(quiet_), "queue");
  auto lines = [](const std::string& table) {
    std::vector<std::string> out;
    std::stringstream stream(table);
    for (std::string line; std::getline(stream, line);) out.push_back(line);
    return out;
  };
  std::vector<std::string> levels = lines(controller_.DumpLevels());
  ASSERT_EQ(levels.size(), 2u);
  EXPECT_EQ(levels[0],
            "PriorityLevelName, ActiveQueues, IsIdle, IsQuiescing, WaitingRequests, ExecutingRequests, "
            "DispatchedRequests, RejectedRequests, TimedoutRequests, CancelledRequests");
  EXPECT_EQ(levels[1].find("tenants,           1,            false,  false,       1,               10, "), 0u)
      << levels[1];
  std::vector<std::string> queues = lines(controller_.DumpQueues());
  ASSERT_EQ(queues.size(), 3u);
  EXPECT_EQ(queues[0],
            "PriorityLevelName, Index,  PendingRequests, ExecutingRequests, SeatsInUse, NextDispatchR, "
            "InitialSeatsSum, MaxSeatsSum, TotalWorkSum");
  std::vector<std::string> requests = lines(controller_.DumpRequests(true));
  ASSERT_EQ(requests.size(), 12u);
  EXPECT_NE(requests[0].find("StartTime,"), std::string::npos);
  EXPECT_NE(requests[1].find("0001-01-01T00:00:00Z, quiet,"), std::string::npos) << requests[1];
  EXPECT_NE(requests[2].find("loud,"), std::string::npos) << requests[2];
  EXPECT_NE(requests[2].find("list,"), std::string::npos) << requests[2];
  EXPECT_EQ(lines(controller_.DumpRequests(false))[0].find("UserName"), std::string::npos);
}

}  // namespace
}  // namespace keelson::apiserver::flowcontrol
