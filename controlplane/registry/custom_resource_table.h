// The custom resources that the stored CustomResourceDefinitions make, as of the watch cache.
//
// Every lookup compares the definition in the cache with the one that is known, so that a client that has seen a
// definition established finds the resource.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

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
  // The row of a served version of a kind; null: there is none. A lookup for a kind that is there, else a walk over all
  // definitions.
  const api::ResourceInfo* FindKind(std::string_view group, std::string_view version, std::string_view kind);
  // Brings the known definitions up to date with the cache, and calls `each` with those that are served.
  void ForEach(
      const std::function<void(apiextensions::CustomResource&, const apiextensions::Definition&)>& each);

 private:
  // Plural names of served resources by group and kind, as of the last walk. Definitions that want the same kind are
  // served one at a time.
  using Kinds = std::map<std::pair<std::string, std::string>, std::string>;
  // The row, if the present definition of this name serves the kind.
  const api::ResourceInfo* RowOf(std::string_view group, std::string_view plural, std::string_view version,
                                 std::string_view kind);
  // The resource of a stored definition, with that definition.
  apiextensions::CustomResource& Take(const storage::ObjectPtr& stored);
  // Objects show what a schema defaults and prunes: reads them again when that has changed.
  void RefreshObjects(apiextensions::CustomResource& resource, const apiextensions::Definition& before,
                      const storage::Limits& limits);

  storage::Store& store_;
  apiextensions::CustomResources known_;
  std::atomic<std::shared_ptr<const Kinds>> kinds_;
  Mutex mutex_;  // one definition is taken up at a time
};

}  // namespace keelson::registry
