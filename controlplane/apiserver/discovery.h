// Discovery documents: /api, /apis, /apis/GROUP, /apis/GROUP/VERSION, and aggregated discovery (KEP-3352).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "controlplane/apiserver/discovery_documents.h"
#include "controlplane/apiserver/endpoints/context.h"
#include "controlplane/apiserver/peers/peer_directory.h"
#include "controlplane/apiserver/request/api_enablement.h"
#include "controlplane/registry/registry.h"
#include "lib/base/mutex.h"

namespace keelson::apiserver {

class Discovery {  // thread safe
 public:
  // `server_address`: host:port for clients. `registry`: knows the custom resources; null: there are none. `services`,
  // `extensions`: the group versions of extension API servers; null: there are none.
  explicit Discovery(std::string server_address, ApiEnablement enablement = {},
                     registry::Registry* registry = nullptr, const ApiServices* services = nullptr,
                     const ExtensionDocuments* extensions = nullptr);
  // Other API servers of the cluster, whose resources stand in the aggregated form of /apis beside this one's, unless the
  // client wants profile=nopeer. Before the first request; `peers` must outlive this.
  void SetPeers(const PeerDirectory& peers) { peers_ = &peers; }
  // Returns false when the path is not a discovery path.
  bool Handle(Context& context) const;

 private:
  using Documents = std::shared_ptr<const DiscoveryDocuments>;
  struct Made {
    Documents own, with_peers;  // the same object where there are no peers
    bool now = false;
  };
  // As of the definitions that the watch cache has now, of the APIServices and of the peers.
  Made Current() const;
  void ReplyAggregated(Context& context, const DiscoveryDocuments::Aggregated& list,
                       const std::string& version) const;

  const std::string server_address_;
  const ApiEnablement enablement_;
  registry::Registry* const registry_;
  const ApiServices* const services_;
  const ExtensionDocuments* const extensions_;
  mutable Mutex mutex_;
  const PeerDirectory* peers_ = nullptr;
  mutable Documents documents_ KEELSON_GUARDED_BY(mutex_);
  mutable Documents with_peers_ KEELSON_GUARDED_BY(mutex_);
  mutable std::shared_ptr<const PeerDirectory::Peers> made_beside_ KEELSON_GUARDED_BY(mutex_);
  mutable std::string made_of_ KEELSON_GUARDED_BY(mutex_);  // the definitions, by name and revision
  mutable std::shared_ptr<const ApiServices::Map> made_with_ KEELSON_GUARDED_BY(mutex_);
  mutable uint64_t made_at_ KEELSON_GUARDED_BY(mutex_) = 0;  // generation of the extensions' documents
};

}  // namespace keelson::apiserver
