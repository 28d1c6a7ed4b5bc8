// Watchers of a cache whose changes many watch: who waits for them, and in which order they hear of changes.
#include <atomic>
#include <future>
#include <thread>

#include <gtest/gtest.h>

#include "controlplane/storage/watch_cache.h"
#include "lib/api/meta.h"

namespace keelson::storage {
namespace {

const api::ResourceInfo& Pods() { return api::ResourceOf<corev1::Pod>(); }

ObjectPtr Pod(const std::string& name, int64_t revision) {
  corev1::Pod pod;
  pod.mutable_metadata()->set_namespace_("a");
  pod.mutable_metadata()->set_name(name);
  return Object::FromMessage(Pods(), pod, revision);
}

// Records what it hears, each time after `held` is over.
class HeldSink : public WatchSink {
 public:
  explicit HeldSink(std::shared_future<void> held) : held_(std::move(held)) {}
  bool OnEvent(const EventPtr& event) override {
    began = true;
    held_.wait();
    lines.push_back(std::string(event->TypeName()) + " " + std::to_string(event->revision()));
    return true;
  }
  void OnEnd(const Error& error) override { lines.push_back("END " + error.message()); }

  std::atomic<bool> began{false};
  std::vector<std::string> lines;

 private:
  const std::shared_future<void> held_;
};

class EventDispatchTest : public testing::Test {
 protected:
  EventDispatchTest() {
    cache_.Replace({}, 100);
    // More than are delivered at once. All wait for the same moment.
    for (size_t i = 0; i <= EventDispatch::kAtOnce; ++i) {
      auto sink = std::make_shared<HeldSink>(released_);
      WatchRequest request;
      request.bookmarks = true;
      auto watcher = std::make_shared<CacheWatcher>(Pods(), std::move(request), sink);
      cache_.AddWatcher(watcher, 100, false, 100);
      sinks_.push_back(std::move(sink));
      watchers_.push_back(std::move(watcher));
    }
  }
  ~EventDispatchTest() override { Release(); }

  void Put(const std::string& name) {
    ++revision_;
    cache_.Apply({{"a/" + name, Pod(name, revision_)}}, revision_);
  }
  void Release() {
    if (!std::exchange(is_released_, true)) release_.set_value();
    cache_.AwaitDispatch();
  }

  std::promise<void> release_;
  std::shared_future<void> released_ = release_.get_future().share();
  bool is_released_ = false;
  FakeClock clock_;
  WorkerPool pool_{1};
  WatchCache cache_{Pods(), {1 << 20, 1 << 30}, clock_, pool_};
  int64_t revision_ = 100;
  std::vector<std::shared_ptr<HeldSink>> sinks_;
  std::vector<std::shared_ptr<CacheWatcher>> watchers_;
};

TEST_F(EventDispatchTest, ReadsShowAChangeBeforeAllWatchersHaveHeardOfIt) {
  Put("one");
  ASSERT_TRUE(cache_.Get("a/one"));
  EXPECT_EQ(cache_.List("", "", {}, 0, revision_).items.size(), 1u);
  Put("two");
  EXPECT_EQ(cache_.last_change(), 102);
  Release();
  for (const auto& sink : sinks_) {
    EXPECT_EQ(sink->lines, (std::vector<std::string>{"ADDED 101", "ADDED 102"}));
  }
}

TEST_F(EventDispatchTest, BookmarksAndTheEndStayBehindTheirEvents) {
  Put("one");
  cache_.DispatchBookmarks(101);
  cache_.SendBookmark(watchers_[0], 101);
  Put("one");
  cache_.DispatchBookmarks(102);
  cache_.TerminateAllWatchers(Error(Code::kCancelled, "over"));
  Put("one");
  Release();
  const std::vector<std::string> all = {"ADDED 101", "BOOKMARK 101", "MODIFIED 102", "BOOKMARK 102",
                                        "END over"};
  for (size_t i = 1; i < sinks_.size(); ++i) EXPECT_EQ(sinks_[i]->lines, all);
  std::vector<std::string> first = all;
  first.insert(first.begin() + 1, "BOOKMARK 101");
  EXPECT_EQ(sinks_[0]->lines, first);
}

TEST_F(EventDispatchTest, AWatchThatBeginsInBetweenHearsOfEachChangeOnce) {
  Put("one");
  Put("two");
  auto sink = std::make_shared<HeldSink>(std::async(std::launch::deferred, [] {}).share());
  auto watcher = std::make_shared<CacheWatcher>(Pods(), WatchRequest{}, sink);
  cache_.AddWatcher(watcher, 101, false, revision_);
  EXPECT_EQ(sink->lines, std::vector<std::string>{"ADDED 102"}) << "from the history";
  Put("three");
  Release();
  EXPECT_EQ(sink->lines, (std::vector<std::string>{"ADDED 102", "ADDED 103"}));
}

TEST_F(EventDispatchTest, AWatchThatHasEndedHearsNoMore) {
  Put("one");
  cache_.RemoveWatcher(watchers_.back());
  watchers_.back()->Detach();
  Release();
  EXPECT_TRUE(sinks_.back()->lines.empty());
  EXPECT_EQ(sinks_.front()->lines.size(), 1u);
}

TEST_F(EventDispatchTest, HoldsALimitedNumberOfChanges) {
  constexpr size_t kChanges = EventDispatch::kMaxQueued + 500;
  // Those that a batch holds, and the one that waits for room, are not queued.
  constexpr size_t kMost = EventDispatch::kMaxQueued + 100;
  std::atomic<size_t> applied{0};
  std::thread writer([&] {
    for (size_t i = 0; i < kChanges; ++i, ++applied) Put("one");
  });
  while (applied < EventDispatch::kMaxQueued) std::this_thread::yield();
  EXPECT_TRUE(sinks_[0]->began);
  EXPECT_LT(applied, kMost);
  release_.set_value();
  is_released_ = true;
  writer.join();
  cache_.AwaitDispatch();
  for (const auto& sink : sinks_) ASSERT_EQ(sink->lines.size(), kChanges);
  EXPECT_EQ(sinks_.back()->lines.back(), "MODIFIED " + std::to_string(revision_));
}

}  // namespace
}  // namespace keelson::storage
