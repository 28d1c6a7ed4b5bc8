#include "csi/local/serving/status.h"

#include <cerrno>

#include "lib/base/log.h"

namespace keelson::csi::local {

namespace {

// gRPC carries messages in headers, and a client that gets more than 8 KiB of these reports RESOURCE_EXHAUSTED instead.
constexpr size_t kMostMessage = 2048;

grpc::StatusCode CodeOf(const Error& error) {
  if (error.errnum() == ENOSPC || error.errnum() == EDQUOT) return grpc::StatusCode::RESOURCE_EXHAUSTED;
  if (error.errnum() != 0) return grpc::StatusCode::INTERNAL;
  switch (error.code()) {
    case Code::kInvalid:
      return grpc::StatusCode::INVALID_ARGUMENT;
    case Code::kNotFound:
      return grpc::StatusCode::NOT_FOUND;
    case Code::kAlreadyExists:
      return grpc::StatusCode::ALREADY_EXISTS;
    case Code::kConflict:
      return grpc::StatusCode::FAILED_PRECONDITION;
    case Code::kUnavailable:
      return grpc::StatusCode::ABORTED;
    case Code::kGone:
      return grpc::StatusCode::OUT_OF_RANGE;
    case Code::kTooManyRequests:
      return grpc::StatusCode::RESOURCE_EXHAUSTED;
    case Code::kCancelled:
      return grpc::StatusCode::UNAVAILABLE;
    default:
      return grpc::StatusCode::INTERNAL;
  }
}

}  // namespace

grpc::Status ToStatus(const Result<>& result, std::string_view call, std::string_view id) {
  if (result) {
    log::Debug("Call done", {{"call", call}, {"id", id}});
    return grpc::Status::OK;
  }
  const grpc::StatusCode code = CodeOf(result.error());
  if (code == grpc::StatusCode::INTERNAL) {
    log::Error("Call failed", {{"call", call}, {"id", id}, {"err", result.error()}});
  } else {
    log::Info("Call refused", {{"call", call}, {"id", id}, {"err", result.error()}});
  }
  return {code, std::string(result.error().message()).substr(0, kMostMessage)};
}

}  // namespace keelson::csi::local
