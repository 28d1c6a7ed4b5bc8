// The scheduler's debug endpoint: why a pod is on its node, or on none.
//
//   GET /debug/why?pod=NAMESPACE/NAME -> {"pod", "scheduler", "node" (bound) or
//     "queue", "rejectedBy", "refused": {"plugin", "message"} (the pod as a whole) or
//     "nodes": [{"name", "refusedBy", "reasons", "numbers"} or {"name", "total", "scores": {plugin: score}}]}
#pragma once

#include <functional>
#include <string>

#include <boost/json/value.hpp>

#include "controlplane/scheduler/algorithm/algorithm.h"
#include "lib/http/server/server.h"

namespace keelson::scheduler {

// The part of the answer from "refused" or "nodes" on: an object.
boost::json::value ToJson(const Algorithm::Diagnosis& diagnosis);

// Answers with what `diagnose` returns for "namespace/name": 200, or its error as a status and text. The
// function is called on the server's threads.
http::Handler DebugHandler(std::function<Result<boost::json::value>(const std::string& pod)> diagnose);

}  // namespace keelson::scheduler
