// One resource that DiscoveredInformers follows: its objects' metadata, and the watch that keeps them. Internal to
// DiscoveredInformers.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <unordered_set>

#include "lib/base/clock.h"
#include "lib/client/backoff.h"
#include "lib/client/discovered_informers.h"
#include "lib/client/metadata_client.h"
#include "lib/client/store.h"
#include "lib/client/watch.h"

namespace keelson::client {

class FollowedResource {
 public:
  struct Next {
    std::chrono::nanoseconds after{0};  // when to step again, unless wake() says so earlier
    bool missing = false;               // the server does not know the resource any more
  };

  // `notify` gets all changes. `wake` asks for a step; it may be called by any thread, even after the destructor.
  FollowedResource(const api::ResourceInfo& info, Clock& clock, DiscoveredInformers::Handler notify,
                   std::function<void()> wake);

  // One thread at a time: does what there is to do without waiting for events. Requests block.
  Next Step(const RestClient& api, std::stop_token stop);
  // Tells handlers that all objects are gone. Like Step().
  void Drop();

  // Any thread:
  void ReadAs(const api::ResourceInfo& info) { wanted_ = &info; }  // from the next step on
  const api::ResourceInfo& row() const { return *wanted_; }
  bool listed() const { return listed_; }  // the objects are known
  bool tried() const { return tried_; }    // ... or could not be read
  size_t CountIn(std::string_view ns) const;

 private:
  Result<> Relist(const RestClient& api);
  // Reads what has come. kUnavailable at the end of the stream.
  Result<> Pump(std::stop_token stop);
  Result<> Handle(const WatchEvent& event);
  Result<InformerBase::Object> Apply(std::string_view raw, bool always);
  void Forget(const std::string& key, InformerBase::Object last);
  void Notify(const std::string& key, const InformerBase::Object& before, const InformerBase::Object& after);
  Next Fail(const Error& error, std::string_view what);

  Clock& clock_;
  const DiscoveredInformers::Handler notify_;
  const std::function<void()> wake_;
  ObjectStore store_;
  std::atomic<const api::ResourceInfo*> wanted_;
  std::atomic<bool> listed_{false}, tried_{false};

  // Of the thread that steps:
  const api::ResourceInfo* read_as_ = nullptr;
  bool relist_ = true;
  std::string resource_version_;
  std::unique_ptr<ApiStream> stream_;
  FrameReader frames_;
  bool fruitful_ = false;  // the stream has brought something
  SteadyTime heard_{};
  ReconnectBackoff backoff_;
};

}  // namespace keelson::client
