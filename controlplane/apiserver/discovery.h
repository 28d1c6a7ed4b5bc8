// Discovery documents: /api, /apis, /apis/GROUP, /apis/GROUP/VERSION, and aggregated discovery (KEP-3352).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "controlplane/apiserver/discovery_documents.h"
#include "controlplane/apiserver/endpoints/context.h"
#include "controlplane/apiserver/request/api_enablement.h"
#include "controlplane/registry/registry.h"
#include "lib/base/mutex.h"

namespace keelson::apiserver {

class Discovery {  // thread safe
 public:
  // `server_address`: host:port for clients. `registry`: knows the custom resources; null: there are none.
  explicit Discovery(std::string server_address, ApiEnablement enablement = {},
                     registry::Registry* registry = nullptr);
  // Returns false when the path is not a discovery path.
  bool Handle(Context& context) const;

 private:
  using Documents = std::shared_ptr<const DiscoveryDocuments>;
  // As of the definitions that the watch cache has now.
  Documents Current() const;
  void ReplyAggregated(Context& context, const DiscoveryDocuments::Aggregated& list,
                       const std::string& version) const;

  const std::string server_address_;
  const ApiEnablement enablement_;
  registry::Registry* const registry_;
  mutable Mutex mutex_;
  mutable Documents documents_ KEELSON_GUARDED_BY(mutex_);
  mutable std::string made_of_ KEELSON_GUARDED_BY(mutex_);  // the definitions, by name and revision
};

}  // namespace keelson::apiserver
