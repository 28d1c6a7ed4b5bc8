// What clients see while etcd hangs, dies, loses its history or contains garbage, and that it all passes.
#include <signal.h>

#include <atomic>
#include <set>
#include <thread>

#include "controlplane/registry/impl.h"
#include "controlplane/registry/testing/fixture.h"
#include "lib/base/mutex.h"

namespace keelson::registry {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class Recorder : public storage::WatchSink {
 public:
  bool OnEvent(const storage::EventPtr& event) override {
    MutexLock lock(mutex_);
    seen_.insert(std::string(event->TypeName()) + " " + std::string(event->object()->name()));
    changed_.notify_all();
    return true;
  }
  void OnEnd(const Error& error) override {
    MutexLock lock(mutex_);
    end_ = error;
    changed_.notify_all();
  }
  // Waits for the event or the end of the watch; false: neither within a minute.
  bool Await(const std::string& event) {
    MutexLock lock(mutex_);
    SteadyTime deadline = std::chrono::steady_clock::now() + seconds(60);
    while (seen_.count(event) == 0 && !end_) {
      if (changed_.wait_until(mutex_, deadline) == std::cv_status::timeout) return false;
    }
    return true;
  }
  std::optional<Error> AwaitEnd() {
    MutexLock lock(mutex_);
    SteadyTime deadline = std::chrono::steady_clock::now() + seconds(60);
    while (!end_ && changed_.wait_until(mutex_, deadline) == std::cv_status::no_timeout) {
    }
    return end_;
  }
  std::set<std::string> seen() {
    MutexLock lock(mutex_);
    return seen_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::set<std::string> seen_ KEELSON_GUARDED_BY(mutex_);
  std::optional<Error> end_ KEELSON_GUARDED_BY(mutex_);
};

class RegistryFaults : public RegistryTest {
 protected:
  static WriteOptions Within(milliseconds time) {
    WriteOptions options;
    options.deadline = std::chrono::steady_clock::now() + time;
    return options;
  }
  std::unique_ptr<storage::WatchHandle> WatchFrom(int64_t revision, std::shared_ptr<Recorder> sink) {
    ListOptions options;
    options.resource_version = std::to_string(revision);
    auto watch = (*plane_)->Watch(Row<corev1::ConfigMap>(), "default", options, sink);
    EXPECT_TRUE(watch) << watch.error().message();
    return watch ? std::move(*watch) : nullptr;
  }
  int64_t Revision() { return (*plane_)->List(Row<corev1::ConfigMap>(), "default", {})->revision; }
  std::set<std::string> Names(Plane& plane) {
    std::set<std::string> names;
    Result<ObjectList> list = plane->List(Row<corev1::ConfigMap>(), "default", {});
    EXPECT_TRUE(list) << list.error().message();
    if (list) {
      for (const ObjectPtr& item : list->items) names.insert(std::string(item->name()));
    }
    return names;
  }
};

// etcd accepts the connection and never answers.
TEST_F(RegistryFaults, HangingEtcdIsATimeout) {
  ASSERT_TRUE(Create(ConfigMap("before")));
  auto sink = std::make_shared<Recorder>();
  auto watch = WatchFrom(Revision(), sink);
  int pid = etcd_->supervisor().pid();
  ASSERT_EQ(kill(pid, SIGSTOP), 0);

  Result<corev1::ConfigMap> created = Create(ConfigMap("lost"), "default", Within(milliseconds(300)));
  ASSERT_FALSE(created);
  EXPECT_TRUE(created.error().Is(Code::kTimeout) || created.error().Is(Code::kUnavailable))
      << created.error().message();
  // Clients that do not require the newest version are served.
  ListOptions any;
  any.resource_version = "0";
  Result<ObjectList> cached = (*plane_)->List(Row<corev1::ConfigMap>(), "default", any);
  ASSERT_TRUE(cached) << cached.error().message();
  EXPECT_EQ(cached->items.size(), 1U);
  EXPECT_TRUE((*plane_)->Get(Row<corev1::ConfigMap>(), "default", "before", "0"));

  ASSERT_EQ(kill(pid, SIGCONT), 0);
  // The lost write may have happened; a second one settles it.
  Result<corev1::ConfigMap> again = Create(ConfigMap("lost"));
  EXPECT_TRUE(again || again.error().Is(Code::kAlreadyExists)) << again.error().message();
  EXPECT_TRUE(sink->Await("ADDED lost"));
  EXPECT_EQ(sink->seen(), (std::set<std::string>{"ADDED lost"}));
  EXPECT_EQ(Names(*plane_), (std::set<std::string>{"before", "lost"}));
}

TEST_F(RegistryFaults, CompactionIsSeenByThoseWhoAreLateOnly) {
  int64_t old = Revision();
  auto live = std::make_shared<Recorder>();
  auto watch = WatchFrom(old, live);
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(Create(ConfigMap("m" + std::to_string(i))));
  ListOptions page;
  page.limit = 2;
  Result<ObjectList> first = (*plane_)->List(Row<corev1::ConfigMap>(), "default", page);
  ASSERT_TRUE(first);
  ASSERT_TRUE(Create(ConfigMap("later")));  // the cache is now newer than the first page
  ASSERT_TRUE(plane_->client().Compact(Revision(), {}));

  page.continue_token = first->continue_token;
  Result<ObjectList> second = (*plane_)->List(Row<corev1::ConfigMap>(), "default", page);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Code::kGone);
  EXPECT_EQ(second.error().message().find("The provided continue parameter is too old"), 0U);
  ListOptions exact;
  exact.resource_version = std::to_string(old);
  exact.resource_version_match = "Exact";
  Result<ObjectList> past = (*plane_)->List(Row<corev1::ConfigMap>(), "default", exact);
  ASSERT_FALSE(past);
  EXPECT_EQ(past.error().code(), Code::kGone);

  // A new control plane has no history from before.
  Plane other(*etcd_);
  auto late = std::make_shared<Recorder>();
  ListOptions from_old;
  from_old.resource_version = std::to_string(old);
  auto refused = other->Watch(Row<corev1::ConfigMap>(), "default", from_old, late);
  ASSERT_TRUE(refused);
  std::optional<Error> end = late->AwaitEnd();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->code(), Code::kGone);

  ASSERT_TRUE(Create(ConfigMap("last")));
  ASSERT_TRUE(live->Await("ADDED last"));
  EXPECT_EQ(live->seen().size(), 8U);
}

// etcd dies, returns, changes and loses its history, before or after the caches have reconnected.
TEST_F(RegistryFaults, HistoryLostWhileAwayIsToldOrMadeUp) {
  for (int round = 0; round < 3; ++round) {
    std::string name = "r" + std::to_string(round);
    auto sink = std::make_shared<Recorder>();
    auto watch = WatchFrom(Revision(), sink);
    etcd::Client direct(etcd_->supervisor().client_options());
    ASSERT_EQ(kill(etcd_->supervisor().pid(), SIGKILL), 0);
    corev1::ConfigMap map = ConfigMap(name);
    map.mutable_metadata()->set_namespace_("default");
    Result<etcd::TxnResult> put = Error(Code::kUnavailable, "not tried");
    while (!put) {  // each attempt waits for a connection
      put = direct.PutIf("/registry/configmaps/default/" + name,
                         api::EncodeProtobuf(map, Row<corev1::ConfigMap>().Gvk()), 0, 0, {});
    }
    Result<int64_t> revision = direct.Revision({});
    ASSERT_TRUE(revision) << revision.error().message();
    ASSERT_TRUE(direct.Compact(*revision, {}));
    // The watch delivers the object, or reports that it cannot.
    ASSERT_TRUE(sink->Await("ADDED " + name));
    if (sink->seen().empty()) {
      EXPECT_EQ(sink->AwaitEnd()->code(), Code::kGone);
    }
    EXPECT_EQ(Names(*plane_).count(name), 1U);
  }
  Plane other(*etcd_);
  EXPECT_EQ(Names(*plane_), Names(other));
}

TEST_F(RegistryFaults, RubbishInEtcdHurtsNobodyElse) {
  ASSERT_TRUE(Create(ConfigMap("good")));
  auto sink = std::make_shared<Recorder>();
  auto watch = WatchFrom(Revision(), sink);
  for (const std::string& value : {std::string("rubbish"), std::string("k8s\0\xff\xff", 6), std::string()}) {
    ASSERT_TRUE(plane_->client().PutIf("/registry/configmaps/default/bad" + std::to_string(value.size()),
                                       value, 0, 0, {}));
  }
  ASSERT_TRUE(Create(ConfigMap("after")));
  ASSERT_TRUE(Create(Service("other")));
  EXPECT_EQ(sink->AwaitEnd()->code(), Code::kGone);
  Result<corev1::ConfigMap> bad = Get<corev1::ConfigMap>("bad7");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code(), Code::kInternal) << bad.error().message();
  Plane other(*etcd_);
  for (Plane* plane : {plane_.get(), &other}) {
    EXPECT_TRUE((*plane)->Get(Row<corev1::ConfigMap>(), "default", "after"));
    // A list reports unreadable objects instead of leaving them out.
    Result<ObjectList> list = (*plane)->List(Row<corev1::ConfigMap>(), "default", {});
    ASSERT_FALSE(list);
    EXPECT_EQ(list.error().details()->causes.size(), 3U);
    EXPECT_TRUE((*plane)->List(Row<corev1::ConfigMap>(), "elsewhere", {}));
    EXPECT_TRUE((*plane)->List(Row<corev1::Service>(), "default", {}));
  }
  metav1::DeleteOptions unsafe;
  unsafe.set_ignore_store_read_error_with_cluster_breaking_potential(true);
  for (const char* name : {"bad7", "bad6", "bad0"}) {
    ASSERT_TRUE(Delete(Row<corev1::ConfigMap>(), name, unsafe)) << name;
  }
  EXPECT_EQ(Names(*plane_), (std::set<std::string>{"after", "good"}));
}

// An attempt from the cache is made again when the stored object is newer, unless it may have made that object itself.
TEST_F(RegistryFaults, AWriteWithoutAnAnswerIsNotRepeated) {
  const struct {
    Code code;
    int attempts;
  } cases[] = {{Code::kUnavailable, 1}, {Code::kTimeout, 1}, {Code::kInternal, 1}, {Code::kInvalid, 2}};
  storage::Store& store = (*plane_)->store();
  for (const auto& [code, attempts] : cases) {
    const std::string name = "map-" + std::to_string(static_cast<int>(code));
    ASSERT_TRUE(Create(ConfigMap(name)));
    ASSERT_TRUE(Get<corev1::ConfigMap>(name));  // the cache has it now
    int made = 0;
    const auto attempt = [&, code = code](const Current& current, Current&) -> Result<int> {
      EXPECT_TRUE(current.object);
      if (++made == 1) {
        // It has an effect, and its answer is lost.
        corev1::ConfigMap changed = static_cast<const corev1::ConfigMap&>(*current.object->Decode());
        (*changed.mutable_data())["a"] = "changed";
        EXPECT_TRUE(Update(changed));
      }
      return Error(code, "lost");
    };
    const Result<int> outcome =
        WithRetries<int>(store, Row<corev1::ConfigMap>(), "default/" + name,
                         {std::chrono::steady_clock::now() + seconds(30), {}}, attempt);
    ASSERT_FALSE(outcome);
    EXPECT_TRUE(outcome.error().Is(code));
    EXPECT_EQ(made, attempts) << name;
  }
}

}  // namespace
}  // namespace keelson::registry
