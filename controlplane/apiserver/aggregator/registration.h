// Makes APIServices for the group versions that this server answers itself: its own, once at the start, and those of
// custom resources, for as long as a definition serves them. Upstream's label automanaged tells both apart from users'
// APIServices, which stay as they are.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "controlplane/apiserver/aggregator/api_services.h"
#include "controlplane/registry/registry.h"
#include "lib/base/mutex.h"
#include "lib/client/workqueue.h"

namespace keelson::apiserver {

inline constexpr char kAutomanaged[] = "kube-aggregator.kubernetes.io/automanaged";

class ApiServiceRegistration {  // thread safe
 public:
  using GroupVersion = std::pair<std::string, std::string>;
  // `built_in`: the group versions that the server serves. `registry` must outlive this.
  ApiServiceRegistration(registry::Registry& registry, const std::vector<GroupVersion>& built_in,
                         Clock& clock);
  // Changes, from a Reflector.
  void Changed(const std::string& name) { queue_.Add(name); }
  void DefinitionsChanged() { queue_.Add(kDefinitions); }
  // Keeps APIServices until `stop`. Calls `completed` once, when Completed() holds.
  void Run(std::stop_token stop, const std::function<void()>& completed);
  // kUnavailable as long as APIServices of own groups have not been looked at, with their names.
  Result<> Completed() const;

 private:
  static constexpr std::string_view kDefinitions = "/";  // a key that no APIService has

  // kOnce: made and brought up to date at the start, then the user's. kAlways: kept. kWhenAbsent: made when there is
  // none, with no label; a user may put an extension server in its place.
  enum class Mode { kOnce, kAlways, kWhenAbsent };
  struct Desired {
    apiregistrationv1::APIService service;
    Mode mode;
  };
  static Desired Make(const GroupVersion& of, Mode mode, int32_t group_priority, int32_t version_priority);
  Result<> Reconcile(const std::string& name, std::stop_token stop);
  Result<> Sync(const std::string& name, std::stop_token stop);
  void FollowDefinitions();

  registry::Registry& registry_;
  client::WorkQueue queue_;
  mutable Mutex mutex_;
  std::set<std::string> missing_ KEELSON_GUARDED_BY(mutex_);
  // Of Run()'s thread.
  std::map<std::string, Desired> built_in_, custom_;
  std::set<std::string> at_start_, synced_;
};

}  // namespace keelson::apiserver
