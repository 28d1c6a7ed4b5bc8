#include "csi/local/serving/status.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace keelson::csi::local {
namespace {

grpc::StatusCode CodeFor(Error error) {
  return ToStatus(Result<>(std::move(error)), "Call", "id").error_code();
}

TEST(StatusTest, RefusalsHaveTheSpecificationsCodes) {
  EXPECT_TRUE(ToStatus({}, "Call", "id").ok());
  EXPECT_EQ(CodeFor(Error(Code::kInvalid, "")), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(CodeFor(Error(Code::kNotFound, "")), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(CodeFor(Error(Code::kAlreadyExists, "")), grpc::StatusCode::ALREADY_EXISTS);
  EXPECT_EQ(CodeFor(Error(Code::kConflict, "")), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(CodeFor(Error(Code::kUnavailable, "")), grpc::StatusCode::ABORTED);
  EXPECT_EQ(CodeFor(Error(Code::kGone, "")), grpc::StatusCode::OUT_OF_RANGE);
  EXPECT_EQ(CodeFor(Error(Code::kTooManyRequests, "")), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(CodeFor(Error(Code::kCancelled, "")), grpc::StatusCode::UNAVAILABLE);
}

TEST(StatusTest, FailedSystemCallsAreNoRefusals) {
  EXPECT_EQ(CodeFor(Error::FromErrno(ENOENT, "open image")), grpc::StatusCode::INTERNAL);
  EXPECT_EQ(CodeFor(Error::FromErrno(EINVAL, "mount")), grpc::StatusCode::INTERNAL);
  EXPECT_EQ(CodeFor(Error::FromErrno(EBUSY, "unmount")), grpc::StatusCode::INTERNAL);
  EXPECT_EQ(CodeFor(Error::FromErrno(ENOSPC, "write")), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

}  // namespace
}  // namespace keelson::csi::local
