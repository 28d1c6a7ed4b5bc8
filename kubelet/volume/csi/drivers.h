// The CSI drivers that are registered on this node.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kubelet/volume/csi/node_client.h"
#include "kubelet/volume/csi/version.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet::csi {

struct Driver {
  std::string endpoint;  // its socket
  Version version;       // the highest that both sides support
  std::shared_ptr<NodeClient> client;
};

class Drivers {  // thread safe
 public:
  void Set(const std::string& name, Driver driver);
  // Does nothing if another driver has taken the name from a different endpoint.
  void Remove(const std::string& name, const std::string& endpoint);
  // Null client: there is no such driver.
  Driver Find(const std::string& name) const;
  // kUnavailable, in upstream's words: no such driver is registered, which may change at any time.
  Result<std::shared_ptr<NodeClient>> Client(const std::string& name) const;
  std::vector<std::string> Names() const;

 private:
  mutable Mutex mutex_;
  std::map<std::string, Driver> drivers_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::kubelet::csi
