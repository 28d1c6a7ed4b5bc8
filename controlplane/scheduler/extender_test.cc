// Extenders over HTTP, as upstream's clients of them speak.
#include "controlplane/scheduler/extender.h"

#include <thread>

#include <gtest/gtest.h>
#include <boost/json.hpp>

#include "controlplane/scheduler/cache.h"
#include "controlplane/scheduler/testing.h"
#include "lib/http/server.h"

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
    cache_.Update(snapshot_);
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
  std::map<std::string, std::string> answers_ GUARDED_BY(mutex_);
  std::vector<std::string> asked_ GUARDED_BY(mutex_);
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
  std::vector<Extenders::Refusal> refused;
  ASSERT_TRUE(extenders->Filter(*Info(pod_, words_), snapshot_, slots, refused));
  EXPECT_EQ(Names(slots), "b");
  ASSERT_EQ(refused.size(), 2u);
  EXPECT_EQ(refused[0].reason, "too hot");
  EXPECT_TRUE(refused[0].resolvable);
  EXPECT_FALSE(refused[1].resolvable);
  const json::value asked = json::parse(Asked(0).substr(std::string("/x/filter ").size()));
  EXPECT_EQ(asked.at("nodenames"), json::parse(R"(["a","b","c"])"));
  EXPECT_EQ(asked.at("pod").at("metadata").at("name"), "p");
}

TEST_F(ExtenderTest, FiltersByObject) {
  config_.node_cache_capable = false;
  Answer("/x/filter", R"({"nodes":{"items":[{"metadata":{"name":"c"}}]}})");
  const auto extenders = Make();
  std::vector<uint32_t> slots = {0, 1, 2};
  std::vector<Extenders::Refusal> refused;
  ASSERT_TRUE(extenders->Filter(*Info(pod_, words_), snapshot_, slots, refused));
  EXPECT_EQ(Names(slots), "c");
  const json::value asked = json::parse(Asked(0).substr(std::string("/x/filter ").size()));
  EXPECT_EQ(asked.at("nodes").at("items").as_array().size(), 3u);
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
            json::parse(R"({"podName":"p","podNamespace":"default","podUID":"uid-p","node":"a"})"));
  Answer("/x/bind", R"({"error":"no"})");
  EXPECT_FALSE(extenders->Bind(*Info(pod_, words_), "a"));
}

TEST_F(ExtenderTest, FailuresCountUnlessIgnorable) {
  std::vector<uint32_t> slots = {0, 1, 2};
  std::vector<Extenders::Refusal> refused;
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
  EXPECT_FALSE(extenders->Interested(*Info(pod_, words_)));
  (*pod_.mutable_spec()->mutable_containers(0)->mutable_resources()->mutable_limits())["example.com/gpu"]
      .set_string("1");
  EXPECT_TRUE(extenders->Interested(*Info(pod_, words_)));
}

}  // namespace
}  // namespace keelson::scheduler
