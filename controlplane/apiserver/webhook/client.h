// A service elsewhere that is asked by POST with JSON, at the address and with the credentials that a
// kubeconfig file gives. Never waits longer than its timeout; certificates and the token are read anew when
// their files change.
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
  // The body of a 2xx answer. Tries again, within the timeout, when nobody answers.
  virtual Result<std::string> Post(const std::string& json) = 0;
};

}  // namespace keelson::apiserver
