// Extenders over HTTP, as upstream's clients of them speak.
#include "controlplane/scheduler/extender/extender.h"

#include <array>
#include <thread>

#include <gtest/gtest.h>
#include <boost/json.hpp>

#include "controlplane/scheduler/cache/cache.h"
#include "controlplane/scheduler/preemption/victims.h"
#include "controlplane/scheduler/testing/objects.h"
#include "lib/http/server/server.h"

namespace keelson::scheduler {
namespace {

namespace json = boost::json;
using testing::Info;
using testing::MakeNode;
using testing::MakePod;

class ExtenderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto server = http::Server::Listen({}, [this](auto request, auto writer) {
      MutexLock lock(mutex_);
      asked_.push_back(request->path + " " + request->body);
      const auto it = answers_.find(request->path);
      if (it == answers_.end()) return writer->Reply(500, {}, "");
      writer->Reply(200, {{"Content-Type", "application/json"}}, it->second);
    });
    ASSERT_TRUE(server);
    server_ = *std::move(server);
    serving_ = std::jthread([this](std::stop_token stop) { (void)server_->Run(stop); });
    for (const char* name : {"a", "b", "c"}) {
      cache_.SetNode(std::make_shared<const NodeFacts>(MakeNode(name), words_.resources));
    }
    cache_.UpdateSnapshot(snapshot_);
    config_.url_prefix = "http://127.0.0.1:" + std::to_string(server_->port()) + "/x/";
    config_.filter_verb = "filter";
    config_.prioritize_verb = "prioritize";
    config_.bind_verb = "bind";
    config_.weight = 2;
    config_.node_cache_capable = true;
  }
  void Answer(const std::string& path, const std::string& body) {
    MutexLock lock(mutex_);
    answers_[path] = body;
  }
  std::string Asked(size_t i) {
    MutexLock lock(mutex_);
    return i < asked_.size() ? asked_[i] : "";
  }
  std::unique_ptr<HttpExtenders> Make() {
    ExtenderObjects objects;
    objects.pod = [this](const PodInfo&) { return std::make_shared<const corev1::Pod>(pod_); };
    objects.node = [](std::string_view name) {
      return std::make_shared<const corev1::Node>(MakeNode(std::string(name)));
    };
    return *HttpExtenders::Create({config_}, std::move(objects), {});
  }
  std::string Names(const std::vector<uint32_t>& slots) {
    std::string out;
    for (uint32_t slot : slots) out += snapshot_.nodes[slot].facts->name;
    return out;
  }

  Mutex mutex_;
  std::map<std::string, std::string> answers_ KEELSON_GUARDED_BY(mutex_);
  std::vector<std::string> asked_ KEELSON_GUARDED_BY(mutex_);
  std::unique_ptr<http::Server> server_;
  std::jthread serving_;
  Vocabulary words_;
  Cache cache_;
  Snapshot snapshot_{words_};
  corev1::Pod pod_ = MakePod("p");
  ExtenderConfig config_;
};

TEST_F(ExtenderTest, FiltersByName) {
  Answer("/x/filter",
         R"({"nodenames":["b"],"failedNodes":{"a":"too hot"},"failedAndUnresolvableNodes":{"c":"broken"}})");
  const auto extenders = Make();
  std::vector<uint32_t> slots = {0, 1, 2};
  std::vector<Extenders::FailedNode> refused;
  ASSERT_TRUE(extenders->Filter(*Info(pod_, words_), snapshot_, slots, refused));
  EXPECT_EQ(Names(slots), "b");
  ASSERT_EQ(refused.size(), 2u);
  EXPECT_EQ(refused[0].reason, "too hot");
  EXPECT_TRUE(refused[0].resolvable);
  EXPECT_FALSE(refused[1].resolvable);
  const json::value asked = json::parse(Asked(0).substr(std::string("/x/filter ").size()));
  EXPECT_EQ(asked.at("NodeNames"), json::parse(R"(["a","b","c"])"));
  EXPECT_EQ(asked.at("Pod").at("metadata").at("name"), "p");
}

TEST_F(ExtenderTest, FiltersByObject) {
  config_.node_cache_capable = false;
  // As Go writes it.
  Answer("/x/filter", R"({"Nodes":{"items":[{"metadata":{"name":"c"}}]},"NodeNames":null,"Error":""})");
  const auto extenders = Make();
  std::vector<uint32_t> slots = {0, 1, 2};
  std::vector<Extenders::FailedNode> refused;
  ASSERT_TRUE(extenders->Filter(*Info(pod_, words_), snapshot_, slots, refused));
  EXPECT_EQ(Names(slots), "c");
  const json::value asked = json::parse(Asked(0).substr(std::string("/x/filter ").size()));
  EXPECT_EQ(asked.at("Nodes").at("items").as_array().size(), 3u);
}

TEST_F(ExtenderTest, PrioritizesAndBinds) {
  Answer("/x/prioritize", R"([{"host":"a","score":10},{"host":"c","score":1}])");
  Answer("/x/bind", "{}");
  const auto extenders = Make();
  std::vector<int64_t> totals = {1, 2, 3};
  extenders->Prioritize(*Info(pod_, words_), snapshot_, {0, 1, 2}, totals);
  EXPECT_EQ(totals, (std::vector<int64_t>{201, 2, 23}));
  EXPECT_EQ(extenders->Bind(*Info(pod_, words_), "a").value_or(false), true);
  EXPECT_EQ(json::parse(Asked(1).substr(std::string("/x/bind ").size())),
            json::parse(R"({"PodName":"p","PodNamespace":"default","PodUID":"uid-p","Node":"a"})"));
  Answer("/x/bind", R"({"error":"no"})");
  EXPECT_FALSE(extenders->Bind(*Info(pod_, words_), "a"));
}

// Nodes a and b each have two pods that could go.
class ExtenderPreemptionTest : public ExtenderTest {
 protected:
  void SetUp() override {
    ExtenderTest::SetUp();
    config_.preempt_verb = "preempt";
    for (const char* node : {"a", "b"}) {
      for (const char* pod : {"1", "2"}) cache_.SetPod(Info(MakePod(std::string(node) + pod), node, words_));
    }
    cache_.UpdateSnapshot(snapshot_);
    for (uint32_t slot : {0, 1}) victims_.emplace(slot, MakeVictims(snapshot_.nodes[slot].pods, slot));
  }
  // What is left, or the error.
  std::string Preempt() {
    NodeToVictims left = victims_;
    const Result<> asked = Make()->ProcessPreemption(*Info(pod_, words_), snapshot_, left);
    if (!asked) return asked.error().message();
    std::string out;
    for (const auto& [slot, victims] : left) {
      out += snapshot_.nodes[slot].facts->name + ":" + std::to_string(victims.cost.num_pdb_violations);
      for (const PodPtr& victim : victims.pods) out += " " + victim->name;
      out += ";";
    }
    return out;
  }
  json::value LastAsked() {
    MutexLock lock(mutex_);
    return json::parse(asked_.back().substr(std::string("/x/preempt ").size()));
  }

  NodeToVictims victims_;
};

TEST_F(ExtenderPreemptionTest, ChoosesAmongVictims) {
  // Names as Go writes them, and as others might.
  Answer("/x/preempt", R"({"NodeNameToMetaVictims":{"b":{"Pods":[{"UID":"uid-b2"}],"NumPDBViolations":3}}})");
  EXPECT_EQ(Preempt(), "b:3 b2;");
  EXPECT_EQ(LastAsked().at("NodeNameToMetaVictims"), json::parse(R"({
      "a":{"Pods":[{"UID":"uid-a1"},{"UID":"uid-a2"}],"NumPDBViolations":0},
      "b":{"Pods":[{"UID":"uid-b1"},{"UID":"uid-b2"}],"NumPDBViolations":1}})"));
  EXPECT_EQ(LastAsked().at("NodeNameToVictims"), nullptr);
  EXPECT_EQ(LastAsked().at("Pod").at("metadata").at("name"), "p");
  Answer("/x/preempt", R"({"nodeNameToMetaVictims":{"a":{"pods":[{"uid":"uid-a1"}]}}})");
  EXPECT_EQ(Preempt(), "a:0 a1;");
  Answer("/x/preempt", "{}");
  EXPECT_EQ(Preempt(), "");
}

TEST_F(ExtenderPreemptionTest, WhoKeepsNoObjectsIsToldThem) {
  config_.node_cache_capable = false;
  Answer("/x/preempt", R"({"NodeNameToMetaVictims":{"a":{"Pods":[{"UID":"uid-a1"}]}}})");
  EXPECT_EQ(Preempt(), "a:0 a1;");
  EXPECT_EQ(LastAsked().at("NodeNameToMetaVictims"), nullptr);
  EXPECT_EQ(LastAsked().at("NodeNameToVictims").at("b").at("Pods").at(0).at("kind"), "Pod");
}

TEST_F(ExtenderPreemptionTest, FailuresCountUnlessIgnorable) {
  const std::string all = "a:0 a1 a2;b:1 b1 b2;";
  const std::string url = config_.url_prefix;
  for (const auto& [answer, want, ignored] : std::vector<std::array<std::string, 3>>{
           {"", "failed preempt with extender at URL " + url + "/preempt, code 500", all},
           {R"({"NodeNameToMetaVictims":{"a":{"Pods":[{"UID":"uid-b1"}]}}})",
            "extender: " + url +
                " claims to preempt pod (UID: uid-b1) on node: a, but the pod is not found on that node",
            all},
           {R"({"NodeNameToMetaVictims":{"z":{}}})", "nodeinfo not found for node name \"z\"", all},
           {R"({"NodeNameToMetaVictims":{"a":{"Pods":[]},"b":{"Pods":[{"UID":"uid-b1"}]}}})",
            "expected at least one victim pod on node \"a\"", "b:0 b1;"}}) {
    if (!answer.empty()) Answer("/x/preempt", answer);
    config_.ignorable = false;
    EXPECT_EQ(Preempt(), want);
    config_.ignorable = true;
    EXPECT_EQ(Preempt(), ignored);
  }
}

TEST_F(ExtenderPreemptionTest, OnlyWhoHasTheVerbIsAsked) {
  EXPECT_TRUE(Make()->SupportsPreemption(*Info(pod_, words_)));
  config_.managed_resources = {"example.com/gpu"};
  EXPECT_FALSE(Make()->SupportsPreemption(*Info(pod_, words_)));
  EXPECT_EQ(Preempt(), "a:0 a1 a2;b:1 b1 b2;");
  config_.managed_resources.clear();
  config_.preempt_verb.clear();
  EXPECT_FALSE(Make()->SupportsPreemption(*Info(pod_, words_)));
  EXPECT_EQ(Asked(0), "");
}

TEST_F(ExtenderTest, FailuresCountUnlessIgnorable) {
  std::vector<uint32_t> slots = {0, 1, 2};
  std::vector<Extenders::FailedNode> refused;
  const auto strict = Make();
  const Result<> failed = strict->Filter(*Info(pod_, words_), snapshot_, slots, refused);
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().message().find("failed filter with extender at URL " + config_.url_prefix),
            std::string::npos);
  config_.ignorable = true;
  ASSERT_TRUE(Make()->Filter(*Info(pod_, words_), snapshot_, slots, refused));
  EXPECT_EQ(Names(slots), "abc");
}

TEST_F(ExtenderTest, OnlyOfPodsThatAskForItsResources) {
  config_.managed_resources = {"example.com/gpu"};
  const auto extenders = Make();
  EXPECT_FALSE(extenders->IsInterested(*Info(pod_, words_)));
  (*pod_.mutable_spec()->mutable_containers(0)->mutable_resources()->mutable_limits())["example.com/gpu"]
      .set_string("1");
  EXPECT_TRUE(extenders->IsInterested(*Info(pod_, words_)));
}

}  // namespace
}  // namespace keelson::scheduler
