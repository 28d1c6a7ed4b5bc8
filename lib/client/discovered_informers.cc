#include "lib/client/discovered_informers.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "lib/base/log.h"
#include "lib/base/mutex.h"
#include "lib/client/followed_resource.h"
#include "lib/client/workqueue.h"

namespace keelson::client {
namespace {

// The key of discovery itself among those of resources.
constexpr char kDiscovery[] = "";
constexpr int kWorkers = 4;
// A change of a definition comes in several writes: wait for the others.
constexpr std::chrono::milliseconds kCalm{100};
constexpr std::chrono::seconds kPeriod{30};
constexpr BackoffOptions kBackoff{std::chrono::milliseconds(500), std::chrono::seconds(30)};

// Kinds whose objects decide what there is to discover.
constexpr std::pair<std::string_view, std::string_view> kCauses[] = {
    {"apiextensions.k8s.io", "customresourcedefinitions"}, {"apiregistration.k8s.io", "apiservices"}};

}  // namespace

struct DiscoveredInformers::Impl {
  Impl(RestClient a, Clock& c)
      : api(std::move(a)),
        clock(c),
        queue(std::make_shared<WorkQueue>("discovered_informers", clock, kBackoff)) {}

  const RestClient api;
  Clock& clock;
  const std::shared_ptr<WorkQueue> queue;  // keys: kDiscovery, and resources as "widgets.example.com"
  std::vector<Handler> handlers;
  std::vector<std::function<void()>> discovery_handlers;

  mutable Mutex mutex;
  std::shared_ptr<const DiscoveredResources> discovered KEELSON_GUARDED_BY(mutex);
  struct Entry {
    std::shared_ptr<FollowedResource> resource;
    bool gone = false;  // to be dropped by the worker that has its key
  };
  std::map<std::string, Entry, std::less<>> followed KEELSON_GUARDED_BY(mutex);
  std::function<void()> ready KEELSON_GUARDED_BY(mutex);  // null once called
  bool notifying KEELSON_GUARDED_BY(mutex) = false;  // discovery handlers have yet to hear of `discovered`

  bool SettledLocked() const KEELSON_REQUIRES(mutex) {
    return discovered && !notifying && std::all_of(followed.begin(), followed.end(), [](const auto& one) {
             return one.second.gone || one.second.resource->tried();
           });
  }
  void TellWhenReady() KEELSON_EXCLUDES(mutex) {
    std::function<void()> call;
    {
      MutexLock lock(mutex);
      if (SettledLocked()) call = std::exchange(ready, nullptr);
    }
    if (call) call();
  }

  void Notify(const api::ResourceInfo& info, const ObjectChange& change) const {
    for (const Handler& handler : handlers) handler(info, change);
  }

  // Begins to follow what is new, and marks what has gone. Returns the keys that need a step.
  std::vector<std::string> Take(std::shared_ptr<const DiscoveredResources> found) KEELSON_EXCLUDES(mutex);
  Result<Requeue> Rediscover(std::stop_token stop);
  Result<Requeue> Step(const std::string& key, std::stop_token stop);
};

std::vector<std::string> DiscoveredInformers::Impl::Take(std::shared_ptr<const DiscoveredResources> found) {
  std::vector<std::string> touched;
  MutexLock lock(mutex);
  std::map<std::string, const api::ResourceInfo*, std::less<>> wanted;
  for (const api::ResourceInfo* row : found->Unknown({"list", "watch", "delete"})) {
    wanted[row->GroupResource()] = row;
  }
  for (auto& [key, entry] : followed) {
    auto now = wanted.find(key);
    const bool keeps = now != wanted.end() || found->HasFailed(entry.resource->row().group);
    // A resource that is there again has other objects, and perhaps another scope: the old ones go first.
    const bool other = now != wanted.end() && (now->second->namespaced != entry.resource->row().namespaced ||
                                               now->second->kind != entry.resource->row().kind);
    if (!keeps || other) {
      entry.gone = true;
      touched.push_back(key);
    } else if (now != wanted.end() && now->second != &entry.resource->row()) {
      entry.resource->ReadAs(*now->second);
      touched.push_back(key);
    }
  }
  for (const auto& [key, row] : wanted) {
    if (followed.contains(key)) continue;
    std::weak_ptr<WorkQueue> weak = queue;
    auto wake = [weak, key = key] {
      if (auto alive = weak.lock()) alive->Add(key);
    };
    auto notify = [this](const api::ResourceInfo& info, const ObjectChange& change) { Notify(info, change); };
    followed[key].resource = std::make_shared<FollowedResource>(*row, clock, notify, wake);
    touched.push_back(key);
  }
  notifying =
      !discovered || discovered->resources != found->resources || discovered->failures != found->failures;
  discovered = std::move(found);
  return touched;
}

Result<Requeue> DiscoveredInformers::Impl::Rediscover(std::stop_token stop) {
  Result<DiscoveredResources> found = Discover(api, stop);
  if (!found) return found.error().Wrap("discovery");
  if (!found->failures.empty()) {
    log::Warn("Discovery of some groups failed", {{"err", found->FailureMessage()}});
  }
  const std::vector<std::string> touched =
      Take(std::make_shared<const DiscoveredResources>(*std::move(found)));
  for (const std::string& key : touched) queue->Add(key);
  // Only this step changes `notifying`: the queue never runs one key twice at a time.
  bool changed = false;
  {
    MutexLock lock(mutex);
    changed = notifying;
  }
  if (changed) {
    for (const auto& handler : discovery_handlers) handler();
    MutexLock lock(mutex);
    notifying = false;
  }
  TellWhenReady();
  return Requeue{kPeriod};
}

Result<Requeue> DiscoveredInformers::Impl::Step(const std::string& key, std::stop_token stop) {
  if (key == kDiscovery) return Rediscover(stop);
  Entry entry;
  {
    MutexLock lock(mutex);
    auto found = followed.find(key);
    if (found == followed.end()) return Requeue{};
    entry = found->second;
  }
  if (entry.gone) {
    entry.resource->Drop();
    {
      MutexLock lock(mutex);
      followed.erase(key);
    }
    TellWhenReady();
    queue->AddAfter(kDiscovery, kCalm);  // it may be there again
    return Requeue{};
  }
  const FollowedResource::Next next = entry.resource->Step(api.With(stop), stop);
  if (next.missing) queue->AddAfter(kDiscovery, kCalm);
  TellWhenReady();
  return Requeue{next.after};
}

DiscoveredInformers::DiscoveredInformers(RestClient api, InformerFactory& informers, Clock& clock)
    : impl_(std::make_unique<Impl>(std::move(api), clock)) {
  for (const auto& [group, resource] : kCauses) {
    const api::ResourceInfo* info = api::FindResource(group, "v1", resource);
    if (!info) continue;
    std::weak_ptr<WorkQueue> weak = impl_->queue;
    informers.GetMetadata(*info).AddHandler([weak](const ObjectChange&) {
      if (auto queue = weak.lock()) queue->AddAfter(kDiscovery, kCalm);
    });
  }
}

DiscoveredInformers::~DiscoveredInformers() = default;

void DiscoveredInformers::AddHandler(Handler handler) { impl_->handlers.push_back(std::move(handler)); }

void DiscoveredInformers::AddDiscoveryHandler(std::function<void()> handler) {
  impl_->discovery_handlers.push_back(std::move(handler));
}

std::shared_ptr<const DiscoveredResources> DiscoveredInformers::discovered() const {
  MutexLock lock(impl_->mutex);
  return impl_->discovered;
}

bool DiscoveredInformers::settled() const {
  MutexLock lock(impl_->mutex);
  return impl_->SettledLocked();
}

Result<std::optional<size_t>> DiscoveredInformers::CountIn(std::string_view group_resource,
                                                           std::string_view ns) const {
  std::shared_ptr<FollowedResource> resource;
  {
    MutexLock lock(impl_->mutex);
    auto found = impl_->followed.find(group_resource);
    if (found == impl_->followed.end() || found->second.gone) return std::optional<size_t>();
    resource = found->second.resource;
  }
  if (!resource->row().namespaced) return std::optional<size_t>();
  if (!resource->listed()) {
    return Error(Code::kUnavailable, std::string(group_resource) + ": the objects are not known yet");
  }
  return std::optional<size_t>(resource->CountIn(ns));
}

size_t DiscoveredInformers::size() const {
  MutexLock lock(impl_->mutex);
  return impl_->followed.size();
}

Result<> DiscoveredInformers::Run(std::stop_token stop, const std::function<void()>& ready) {
  {
    MutexLock lock(impl_->mutex);
    impl_->ready = ready;
  }
  impl_->queue->Add(kDiscovery);
  RunWorkers(*impl_->queue, kWorkers, stop,
             [this](const std::string& key, std::stop_token s) { return impl_->Step(key, s); });
  return {};
}

}  // namespace keelson::client
