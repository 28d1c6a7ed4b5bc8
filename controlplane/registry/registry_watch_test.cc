// Lists and watches, also across a restart of etcd.
#include <signal.h>

#include "controlplane/registry/testing/fixture.h"

namespace keelson::registry {
namespace {

TEST_F(RegistryTest, ListsInPagesOfOneSnapshot) {
  for (int i = 0; i < 7; ++i) ASSERT_TRUE(Create(ConfigMap("m" + std::to_string(i))));
  ListOptions options;
  options.limit = 3;
  Result<ObjectList> page = (*plane_)->List(Row<corev1::ConfigMap>(), "default", options);
  ASSERT_TRUE(page) << page.error().message();
  ASSERT_EQ(page->items.size(), 3U);
  EXPECT_EQ(page->remaining, 4);
  const int64_t revision = page->revision;
  ASSERT_TRUE(Delete(Row<corev1::ConfigMap>(), "m4"));
  ASSERT_TRUE(Create(ConfigMap("m9")));
  std::string names;
  while (true) {
    for (const auto& item : page->items) names += std::string(item->name()) + " ";
    if (page->continue_token.empty()) break;
    options.continue_token = page->continue_token;
    page = (*plane_)->List(Row<corev1::ConfigMap>(), "default", options);
    ASSERT_TRUE(page) << page.error().message();
    EXPECT_EQ(page->revision, revision);
  }
  EXPECT_EQ(names, "m0 m1 m2 m3 m4 m5 m6 ");

  options = {};
  options.field_selector = "spec.foo=x";
  Result<ObjectList> bad = (*plane_)->List(Row<corev1::ConfigMap>(), "default", options);
  ASSERT_FALSE(bad);
  EXPECT_NE(bad.error().message().find("\"spec.foo\" is not a known field selector"), std::string::npos);
}

class Waiter : public storage::WatchSink {
 public:
  bool OnEvent(const storage::EventPtr& event) override {
    std::string line(event->TypeName());
    if (event->type() != storage::Event::Type::kBookmark) line += " " + event->object()->key();
    MutexLock lock(mutex_);
    lines_.push_back(line);
    changed_.notify_all();
    return true;
  }
  void OnEnd(const Error& error) override {
    MutexLock lock(mutex_);
    lines_.push_back("END " + std::string(Reason(error.code())));
    changed_.notify_all();
  }
  std::vector<std::string> Await(size_t count) {
    MutexLock lock(mutex_);
    while (lines_.size() < count) {
      if (changed_.wait_for(mutex_, std::chrono::seconds(20)) == std::cv_status::timeout) break;
    }
    return lines_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::string> lines_;
};

TEST_F(RegistryTest, WatchesFromAListWithoutGaps) {
  ASSERT_TRUE(Create(ConfigMap("a")));
  Result<ObjectList> list = (*plane_)->List(Row<corev1::ConfigMap>(), "default", {});
  ASSERT_TRUE(list);
  ASSERT_EQ(list->items.size(), 1U);
  ASSERT_TRUE(Create(ConfigMap("b")));
  ListOptions options;
  options.resource_version = std::to_string(list->revision);
  auto sink = std::make_shared<Waiter>();
  auto watch = (*plane_)->Watch(Row<corev1::ConfigMap>(), "default", options, sink);
  ASSERT_TRUE(watch) << watch.error().message();
  ASSERT_TRUE(Delete(Row<corev1::ConfigMap>(), "a"));
  EXPECT_EQ(sink->Await(2), (std::vector<std::string>{"ADDED default/b", "DELETED default/a"}));
}

TEST_F(RegistryTest, WatchListEndsWithABookmark) {
  ASSERT_TRUE(Create(ConfigMap("a")));
  ListOptions options;
  options.send_initial_events = true;
  options.allow_bookmarks = true;
  options.resource_version_match = "NotOlderThan";
  auto sink = std::make_shared<Waiter>();
  auto watch = (*plane_)->Watch(Row<corev1::ConfigMap>(), "default", options, sink);
  ASSERT_TRUE(watch) << watch.error().message();
  EXPECT_EQ(sink->Await(2), (std::vector<std::string>{"ADDED default/a", "BOOKMARK"}));
}

TEST_F(RegistryTest, SurvivesKillOfEtcdInTheMiddleOfWrites) {
  ASSERT_TRUE(Create(ConfigMap("first")));
  ListOptions from_now;
  Result<ObjectList> before = (*plane_)->List(Row<corev1::ConfigMap>(), "", {});
  ASSERT_TRUE(before);
  from_now.resource_version = std::to_string(before->revision);
  auto sink = std::make_shared<Waiter>();
  auto watch = (*plane_)->Watch(Row<corev1::ConfigMap>(), "", from_now, sink);
  ASSERT_TRUE(watch);

  std::vector<std::string> acknowledged;
  std::atomic<int> written{0};
  std::thread writer([&] {
    for (int i = 0; i < 60; ++i) {
      std::string name = "m" + std::to_string(i);
      // After a lost reply the write may have happened: then "already exists" means success.
      for (int attempt = 0; attempt < 5; ++attempt) {
        auto created = Create(ConfigMap(name));
        if (!created && !created.error().Is(Code::kAlreadyExists)) continue;
        acknowledged.push_back(name);
        break;
      }
      ++written;
    }
  });
  while (written < 20) std::this_thread::yield();
  ASSERT_EQ(kill(etcd_->supervisor().pid(), SIGKILL), 0);
  writer.join();
  EXPECT_EQ(acknowledged.size(), 60U);

  // A second control plane, built only from etcd.
  Plane other(*etcd_);
  Result<ObjectList> after = other->List(Row<corev1::ConfigMap>(), "default", {});
  ASSERT_TRUE(after) << after.error().message();
  EXPECT_EQ(after->items.size(), 61U);
  // The first one's watch continued over the gap, with each event once.
  std::vector<std::string> seen = sink->Await(60);
  EXPECT_EQ(seen.size(), 60U);
  EXPECT_EQ(std::set<std::string>(seen.begin(), seen.end()).size(), 60U);
}

}  // namespace
}  // namespace keelson::registry
