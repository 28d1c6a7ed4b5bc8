// The options of a connection (PodExecOptions, PodProxyOptions, ...) between their query and their object,
// which admission sees.
#pragma once

#include <memory>

#include "controlplane/apiserver/request/request_info.h"
#include "lib/api/scheme.h"
#include "lib/http/message.h"

namespace keelson::apiserver {

// The options of `row` that the query of a request sets. Values that do not fit a field are ignored, as the
// query's readers do.
std::unique_ptr<api::Message> ConnectOptionsOf(const api::ResourceInfo& row, const http::Query& query,
                                               const RequestInfo& info);
// The query that sets these options.
http::Query QueryOf(const api::Message& options);

}  // namespace keelson::apiserver
