// Requests for what has no type of its own here: scales of any kind, metrics that others serve, discovery.
#pragma once

#include <string>
#include <string_view>

#include "lib/client/rest.h"

namespace keelson::controllers::podautoscaler {

// The body of a 2xx answer, JSON. Other answers are errors with the message of their Status.
Result<std::string> Call(const client::RestClient& api, std::string method, std::string target,
                         std::string body = "");
inline Result<std::string> Fetch(const client::RestClient& api, std::string target) {
  return Call(api, "GET", std::move(target));
}

// One segment of a path, or one value of a query.
std::string Escape(std::string_view text);

// The server knows of no such path, group or resource (an object that is missing is something else); in
// client-go's words, which `what` is for: "pods.metrics.k8s.io".
bool IsNoSuchPath(const Error& error);
Error NoSuchPath(const std::string& what);

}  // namespace keelson::controllers::podautoscaler
