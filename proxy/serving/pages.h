// The HTTP pages of kube-proxy, and the servers that show them.
#pragma once

#include <map>
#include <string>

#include "lib/base/mutex.h"
#include "lib/base/service_group.h"
#include "lib/http/server/server.h"
#include "proxy/config/config.h"

namespace keelson::proxy {

// What the proxy runs with; a changed configuration file may change it. Thread safe.
class Running {
 public:
  Running(std::string mode, std::string configz) : mode_(std::move(mode)), configz_(std::move(configz)) {}
  void Set(std::string mode, std::string configz) {
    MutexLock lock(mutex_);
    mode_ = std::move(mode);
    configz_ = std::move(configz);
  }
  std::string mode() const {
    MutexLock lock(mutex_);
    return mode_;
  }
  std::string configz() const {
    MutexLock lock(mutex_);
    return configz_;
  }

 private:
  mutable Mutex mutex_;
  std::string mode_ KEELSON_GUARDED_BY(mutex_), configz_ KEELSON_GUARDED_BY(mutex_);
};

struct StatusPages {
  bool statusz = true, flagz = true;         // the pages of these names
  std::map<std::string, std::string> flags;  // name to value
};

// /metrics, /proxyMode, /healthz, /configz, /statusz, /flagz: of the metrics address.
http::Handler MetricsPages(const Running& running, StatusPages status);

// A server on `address`; an empty one means none. One that cannot listen tries again, or with `hard_fail`
// ends the group.
Result<> AddPages(ServiceGroup& group, const std::string& name, const std::string& address,
                  uint16_t default_port, bool hard_fail, http::Handler handler);

}  // namespace keelson::proxy
