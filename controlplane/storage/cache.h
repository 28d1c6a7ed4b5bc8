// All objects of one resource as of the newest revision seen, a window of what changed lately, and the
// watchers. One thread feeds it; anybody reads.
//
//   history   [ 101 104 105 109 ... ]   bounded by count, bytes and age
//             ^ oldest: a watch from resourceVersion >= floor_ can start here; older is 410 Gone
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "controlplane/storage/cache_meters.h"
#include "controlplane/storage/watcher.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace keelson::storage {

class ResourceCache {
 public:
  struct Limits {
    size_t history_events, history_bytes;
  };
  ResourceCache(const api::ResourceInfo& info, Limits limits, Clock& clock)
      : info_(info), limits_(limits), clock_(clock), meters_(info, limits.history_events) {}

  const api::ResourceInfo& info() const { return info_; }

  // ---- the feeding thread ----
  struct Update {
    std::string key;
    ObjectPtr object;  // null: deleted
    // It is there and cannot be read. Nobody is told that it is gone: watches end with kGone, and the list
    // that clients then ask for fails.
    bool unreadable = false;
  };
  // Everything anew, as of `revision`: history is lost, and watches end with kGone.
  void Reset(std::vector<ObjectPtr> objects, int64_t revision);
  // All of one revision.
  void Apply(std::vector<Update> updates, int64_t revision);
  void EndWatches(const Error& error);

  // ---- readers ----
  ObjectPtr Get(std::string_view key) const;
  struct Page {
    std::vector<ObjectPtr> items;
    int64_t revision = 0;  // at least `reached`
    bool more = false;
    int64_t left = 0;  // in the range behind the last item, whether selected or not
  };
  // From key `start` on, of namespace `ns` or all. `reached`: what all caches have reached.
  Page List(std::string_view ns, std::string_view start, const Predicate& predicate, int64_t limit,
            int64_t reached) const;
  int64_t last_change() const;  // revision of it
  Size size() const;
  void ForEach(const std::function<void(const ObjectPtr&)>& each) const;
  void ForEachIn(std::string_view ns, const std::function<void(const ObjectPtr&)>& each) const;

  // Begins a watch after `from`, or with all objects when `initial`. Events that are due are delivered from
  // here; kGone goes to the sink.
  void Begin(const std::shared_ptr<Watcher>& watcher, int64_t from, bool initial, int64_t reached);
  void Forget(const std::shared_ptr<Watcher>& watcher);
  void OfferBookmarks(int64_t revision);
  void DropIdle() const;

 private:
  using Watchers = std::vector<std::shared_ptr<Watcher>>;
  struct Recent {
    ChangePtr change;
    size_t bytes;
    SteadyTime at;
  };
  void Remember(ChangePtr change) REQUIRES(mutex_);
  // No watch may start at or before `revision`; who watches is handed out, to be ended.
  std::shared_ptr<const Watchers> ForgetHistory(int64_t revision) REQUIRES(mutex_);
  std::shared_ptr<const Watchers> CurrentWatchers() const;

  const api::ResourceInfo& info_;
  const Limits limits_;
  Clock& clock_;
  const CacheMeters meters_;
  mutable Mutex mutex_;
  std::map<std::string_view, ObjectPtr> objects_ GUARDED_BY(mutex_);  // keys live in the objects
  size_t bytes_ GUARDED_BY(mutex_) = 0;                               // of all objects
  int64_t last_change_ GUARDED_BY(mutex_) = 0;
  int64_t floor_ GUARDED_BY(mutex_) = 0;  // history is complete after this revision
  std::deque<Recent> history_ GUARDED_BY(mutex_);
  size_t history_bytes_ GUARDED_BY(mutex_) = 0;
  std::shared_ptr<const Watchers> watchers_ GUARDED_BY(mutex_) = std::make_shared<Watchers>();
};

}  // namespace keelson::storage
