// How ConfigMaps and Secrets are read: a reader a kind, of one of the strategies that the configuration's
// configMapAndSecretChangeDetectionStrategy names.
//
//   Get    every use asks the API server
//   Cache  what was read is used until it is too old, or a new pod refers to it
//   Watch  what was read is kept true by a watch of that one object
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "kubelet/objects/silence.h"
#include "lib/client/rest.h"

namespace keelson::kubelet {

class ObjectReader {  // thread safe
 public:
  using Object = std::shared_ptr<const google::protobuf::Message>;
  virtual ~ObjectReader() = default;
  // kNotFound when there is none; other codes when it cannot be known now.
  virtual Result<Object> Get(const std::string& ns, const std::string& name) = 0;
  // One more pod refers to it. This and the next do not wait for anything.
  virtual void Wanted(const std::string& ns, const std::string& name) { (void)ns, (void)name; }
  // No pod refers to it any more.
  virtual void Released(const std::string& ns, const std::string& name) { (void)ns, (void)name; }
};

struct ReaderParts {
  client::RestClient api;
  const api::ResourceInfo& info;
  Silence& silence;
  // How long what was read is good for (Cache); nullopt: nobody has said.
  std::function<std::optional<std::chrono::seconds>()> ttl;
  Clock& clock;
};

std::unique_ptr<ObjectReader> NewGetReader(ReaderParts parts);
std::unique_ptr<ObjectReader> NewCacheReader(ReaderParts parts);
std::unique_ptr<ObjectReader> NewWatchReader(ReaderParts parts);
// Of the strategy of that name; Watch for names that are none.
std::unique_ptr<ObjectReader> NewObjectReader(const std::string& strategy, ReaderParts parts);

// What the node's annotation node.alpha.kubernetes.io/ttl says, if it says anything.
std::optional<std::chrono::seconds> ObjectTtl(const corev1::Node* node);

}  // namespace keelson::kubelet
