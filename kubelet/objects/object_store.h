// How the kubelet reads ConfigMaps and Secrets: one store per kind, with the strategy that the configuration's
// configMapAndSecretChangeDetectionStrategy names.
//
//   Get    simple: every use asks the API server
//   Cache  caching: an object is used until its TTL has passed, or a new pod refers to it
//   Watch  watching: an object is kept up to date by a watch of that one object
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "kubelet/objects/api_server_backoff.h"
#include "lib/client/rest.h"

namespace keelson::kubelet {

class ObjectStore {  // thread safe
 public:
  using Object = std::shared_ptr<const google::protobuf::Message>;
  virtual ~ObjectStore() = default;
  // The object, shared and immutable. Blocks while the API server is asked. kNotFound: there is none; other
  // codes: the API server did not say, and nothing is cached.
  virtual Result<Object> Get(const std::string& ns, const std::string& name) = 0;
  // One more pod refers to the object. Does not block.
  virtual void AddReference(const std::string& ns, const std::string& name) { (void)ns, (void)name; }
  // No pod refers to the object any more. Does not block.
  virtual void DeleteReference(const std::string& ns, const std::string& name) { (void)ns, (void)name; }
};

struct ObjectStoreDependencies {
  client::RestClient api;
  const api::ResourceInfo& info;
  ApiServerBackoff& api_backoff;
  // How long a cached object is good for (Cache); nullopt: the default.
  std::function<std::optional<std::chrono::seconds>()> ttl;
  Clock& clock;
};

std::unique_ptr<ObjectStore> NewSimpleObjectStore(ObjectStoreDependencies dependencies);
std::unique_ptr<ObjectStore> NewCachingObjectStore(ObjectStoreDependencies dependencies);
std::unique_ptr<ObjectStore> NewWatchingObjectStore(ObjectStoreDependencies dependencies);
// The store of that strategy; Watch for unknown names. Never null. What `dependencies` refers to has to outlive
// it.
std::unique_ptr<ObjectStore> NewObjectStore(const std::string& strategy,
                                            ObjectStoreDependencies dependencies);

// The TTL that the node's annotation node.alpha.kubernetes.io/ttl sets; nullopt: `node` is null, or has no valid one.
std::optional<std::chrono::seconds> ObjectTtl(const corev1::Node* node);

}  // namespace keelson::kubelet
