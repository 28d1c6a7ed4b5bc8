// A webhook client: POSTs JSON to the URL in a kubeconfig file, with its credentials. A call never exceeds
// the timeout. Certificates and token are reloaded when their files change.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "lib/base/error.h"

namespace keelson::apiserver {

class WebhookClient {  // thread safe
 public:
  static Result<std::unique_ptr<WebhookClient>> FromKubeconfig(const std::string& file,
                                                               std::chrono::milliseconds timeout);
  virtual ~WebhookClient() = default;
  // Returns the body of a 2xx response. Retries within the timeout on connection errors.
  virtual Result<std::string> Post(const std::string& json) = 0;
};

}  // namespace keelson::apiserver
