// The scheduler's debug endpoint: why a pod is where it is, or is nowhere.
//
//   GET /debug/why?pod=NAMESPACE/NAME -> {"pod", "scheduler", "node" (bound) or
//     "queue", "rejectedBy", "refused": {"plugin", "message"} (as a whole) or
//     "nodes": [{"name", "refusedBy", "reasons", "numbers"} or {"name", "total", "scores": {plugin: score}}]}
#pragma once

#include <functional>
#include <string>

#include <boost/json/value.hpp>

#include "controlplane/scheduler/algorithm/algorithm.h"
#include "lib/http/server/server.h"

namespace keelson::scheduler {

// Feasible nodes first, the best of them first.
boost::json::value ToJson(const Algorithm::Account& account);

// Answers with what `why` says of "namespace/name".
http::Handler WhyHandler(std::function<Result<boost::json::value>(const std::string& pod)> why);

}  // namespace keelson::scheduler
