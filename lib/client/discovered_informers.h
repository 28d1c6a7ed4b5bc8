// Informers of every resource that discovery finds beyond the built-in ones: custom resources, and those of aggregated
// API servers. They keep metadata only, and a handful of threads serves them all.
//
// Discovery runs at the start, shortly after a CustomResourceDefinition or an APIService has changed, when a followed
// resource is no longer found, and every 30 seconds. A resource that vanishes takes its objects along, to handlers as
// deletions. Groups whose discovery fails keep their resources.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>

#include "lib/base/clock.h"
#include "lib/client/discovery.h"
#include "lib/client/informer.h"
#include "lib/client/rest.h"

namespace keelson::client {

class DiscoveredInformers {  // thread safe
 public:
  using ObjectChange = Change<metav1::PartialObjectMetadata>;
  // `info`: the row by which the resource is read at present, which changes with the version that the server prefers;
  // then all objects are delivered again. Changes of one resource come in order, those of several at the same time.
  // Handlers must not block.
  using Handler = std::function<void(const api::ResourceInfo& info, const ObjectChange& change)>;

  // Takes informers of CustomResourceDefinitions and APIServices from `informers`, which is to run as well.
  DiscoveredInformers(RestClient api, InformerFactory& informers, Clock& clock = Clock::Real());
  ~DiscoveredInformers();

  // Before Run().
  void AddHandler(Handler handler);
  void AddDiscoveryHandler(std::function<void()> handler);  // called when discovery has brought a change

  // Null before the first discovery.
  std::shared_ptr<const DiscoveredResources> discovered() const;
  // Whether the handlers know the last discovery and the objects of every resource that it has found. Resources whose
  // first list has failed do not count: callers do not wait for those.
  bool settled() const;
  // The number of a resource's objects in a namespace. `group_resource`: "widgets.example.com". Null when the resource
  // is not followed; kUnavailable when its objects are not known yet.
  Result<std::optional<size_t>> CountIn(std::string_view group_resource, std::string_view ns) const;
  size_t size() const;  // followed resources

  // Follows resources until `stop`. Calls `ready` once, when the first discovery is over and settled().
  Result<> Run(std::stop_token stop, const std::function<void()>& ready);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::client
