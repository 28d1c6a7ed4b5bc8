// A client for the scale subresource of any kind.
#pragma once

#include <string>

#include "controlplane/controllers/common/kind_resources.h"
#include "lib/api/types.h"
#include "lib/client/rest.h"

namespace keelson::controllers {

struct FoundScale {
  std::string path;  // of the subresource
  autoscalingv1::Scale scale;
};

class ScaleClient {
 public:
  explicit ScaleClient(client::RestClient api) : api_(std::move(api)) {}

  Result<FoundScale> Get(std::string_view ns, const std::string& api_version, const std::string& kind,
                         const std::string& name) const;
  // The scale of an object whose resource is known.
  Result<FoundScale> GetOf(const ResourceName& resource, std::string_view ns, const std::string& name) const;
  // Writes `found.scale`; kConflict when the object has changed since it was read.
  Result<> Put(const FoundScale& found) const;
  // Reads the same scale again.
  Result<FoundScale> Again(const FoundScale& found) const;

 private:
  client::RestClient api_;
};

}  // namespace keelson::controllers
