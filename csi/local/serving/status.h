// Results as gRPC statuses, by the table of the specification.
//
//   kInvalid             INVALID_ARGUMENT
//   kNotFound            NOT_FOUND
//   kAlreadyExists       ALREADY_EXISTS
//   kConflict            FAILED_PRECONDITION
//   kUnavailable         ABORTED: another call is at work, or the caller starts again
//   kGone                OUT_OF_RANGE
//   kTooManyRequests     RESOURCE_EXHAUSTED
//   kCancelled           UNAVAILABLE: the driver stops
//   a full disk          RESOURCE_EXHAUSTED
//   other system calls   INTERNAL, whatever code their errno gave
#pragma once

#include <string_view>

#include <grpcpp/grpcpp.h>

#include "lib/base/error.h"

namespace keelson::csi::local {

// `call` and `id` are for the log.
grpc::Status ToStatus(const Result<>& result, std::string_view call, std::string_view id);

}  // namespace keelson::csi::local
