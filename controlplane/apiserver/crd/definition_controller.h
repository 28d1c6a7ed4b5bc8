// Follows CustomResourceDefinitions: writes their status (conditions.h) on one thread, and empties and removes those that are
// being deleted on others, so that a definition with many objects holds up no other one.
#pragma once

#include <map>
#include <set>
#include <stop_token>
#include <string>

#include "controlplane/apiserver/crd/conditions.h"
#include "controlplane/registry/registry.h"
#include "controlplane/storage/object.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/client/workqueue.h"

namespace keelson::apiserver {

class DefinitionController {  // thread safe
 public:
  DefinitionController(registry::Registry& registry, Clock& clock);
  // Changes of definitions, from a Reflector.
  void Put(const storage::ObjectPtr& object);
  void Remove(const std::string& name);
  // Until `stop`. Failures are tried again: of a status after a second, of a deletion with a growing delay.
  void Run(std::stop_token stop);

 private:
  struct Known {
    std::string group;
    apiextensionsv1::CustomResourceDefinitionNames accepted;
    bool conflicts = false;
  };
  using Names = std::set<std::string>;

  Names Take(std::stop_token stop);
  // Reads a definition and learns its names. Null: it is gone.
  std::shared_ptr<const CustomResourceDefinition> Learn(const std::string& name);
  Result<> Reconcile(const CustomResourceDefinition& definition, std::stop_token stop);
  // A deletion, as long as it takes: finalizers may hold objects.
  Result<client::Requeue> FinalizeNamed(const std::string& name, std::stop_token stop);
  // One step of it: false while objects are left.
  Result<bool> Finalize(const CustomResourceDefinition& definition, std::stop_token stop);
  Result<> WriteStatus(const CustomResourceDefinition& definition,
                       const std::function<void(CustomResourceDefinition&)>& change, std::stop_token stop);
  UsedNames UsedIn(const std::string& group) const;
  // Definitions of the group that could not have their names look again.
  void WakeConflicts(const std::string& group);
  void Later(const std::string& name, std::chrono::milliseconds delay);

  registry::Registry& registry_;
  Clock& clock_;
  client::WorkQueue deletions_;
  std::map<std::string, Known> known_;  // of Run()'s thread
  Mutex mutex_;
  CondVar changed_;
  Names dirty_ KEELSON_GUARDED_BY(mutex_);
  std::multimap<SteadyTime, std::string> later_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::apiserver
