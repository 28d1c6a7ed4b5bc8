// The webhooks of all configurations of a kind, as the cache has them.
#pragma once

#include <memory>
#include <vector>

#include "controlplane/apiserver/admission/webhook/hook.h"
#include "controlplane/storage/store.h"
#include "lib/base/mutex.h"

namespace keelson::apiserver::webhook {

enum class HookKind { kMutating, kValidating };

class HookSource {  // thread safe
 public:
  HookSource(storage::Store& store, HookKind kind);
  // Ordered by the configurations' names. Compiles a configuration once for each revision.
  std::shared_ptr<const std::vector<std::shared_ptr<const Hook>>> Current();

 private:
  using Compiled = std::vector<std::shared_ptr<const Hook>>;
  std::shared_ptr<const Compiled> Compile(const std::vector<storage::ObjectPtr>& objects) const;

  storage::Store& store_;
  const HookKind kind_;
  const api::ResourceInfo& info_;
  Mutex mutex_;
  std::vector<storage::ObjectPtr> seen_ KEELSON_GUARDED_BY(mutex_);
  std::shared_ptr<const Compiled> compiled_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::apiserver::webhook
