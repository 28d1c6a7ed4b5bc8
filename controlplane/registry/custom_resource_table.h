// The custom resources that the stored CustomResourceDefinitions make, as of the watch cache.
//
// Every lookup compares the definition in the cache with the one that is known, so that a client that has seen a
// definition established finds the resource.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "controlplane/apiextensions/custom_resource.h"
#include "controlplane/storage/store.h"
#include "lib/base/mutex.h"

namespace keelson::registry {

class CustomResourceTable {  // thread safe
 public:
  explicit CustomResourceTable(storage::Store& store) : store_(store) {}
  void SetConverter(std::shared_ptr<apiextensions::Converter> converter) {
    known_.SetConverter(std::move(converter));
  }

  // The resource of a definition, which may not serve it (Definition::served). Null: there is no such definition.
  // The cache of a served resource is filled. Errors: etcd does not answer.
  Result<apiextensions::CustomResource*> Find(std::string_view group, std::string_view plural,
                                              const storage::Limits& limits);
  // Ends the watches of a resource whose definition is gone.
  void Forget(const std::string& name);
  // Brings the known definitions up to date with the cache, and calls `each` with those that are served.
  void ForEach(
      const std::function<void(apiextensions::CustomResource&, const apiextensions::Definition&)>& each);

 private:
  // The resource of a stored definition, with that definition.
  apiextensions::CustomResource& Take(const storage::ObjectPtr& stored);
  // Objects show what a schema defaults and prunes: reads them again when that has changed.
  void RefreshObjects(apiextensions::CustomResource& resource, const apiextensions::Definition& before,
                      const storage::Limits& limits);

  storage::Store& store_;
  apiextensions::CustomResources known_;
  Mutex mutex_;  // one definition is taken up at a time
};

}  // namespace keelson::registry
