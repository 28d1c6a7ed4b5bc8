// JSON requests without typed objects: the scale subresource of any kind, metrics APIs, discovery.
#pragma once

#include <string>
#include <string_view>

#include "lib/client/rest.h"

namespace keelson::controllers {

// Returns the JSON body of a 2xx response. Other responses are errors with the message of their Status.
Result<std::string> Call(const client::RestClient& api, std::string method, std::string target,
                         std::string body = "");
inline Result<std::string> Fetch(const client::RestClient& api, std::string target) {
  return Call(api, "GET", std::move(target));
}

// The server knows of no such path, group or resource (an object that is missing is something else); in
// client-go's words, which `what` is for: "pods.metrics.k8s.io".
bool IsNoSuchPath(const Error& error);
Error NoSuchPath(const std::string& what);

}  // namespace keelson::controllers
