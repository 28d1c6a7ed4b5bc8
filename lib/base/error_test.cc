#include "lib/base/error.h"

#include <cerrno>

#include <gtest/gtest.h>

namespace keelson {
namespace {

TEST(Error, CodesGoToHttpAndBack) {
  for (int i = 0; i <= static_cast<int>(Code::kCancelled); ++i) {
    Code code = static_cast<Code>(i);
    EXPECT_EQ(CodeOf(HttpStatus(code), Reason(code)), code) << Reason(code);
  }
  EXPECT_EQ(CodeOf(404, ""), Code::kNotFound);
  EXPECT_EQ(CodeOf(409, ""), Code::kConflict);
  EXPECT_EQ(CodeOf(418, ""), Code::kBadRequest);
  EXPECT_EQ(CodeOf(502, ""), Code::kInternal);
}

TEST(Error, WrapKeepsCodeErrnoAndDetails) {
  Error inner = Error::FromErrno(EEXIST, "create veth").WithDetails({.name = "vethab12"});
  Error outer = inner.Wrap("add pod");
  EXPECT_EQ(outer.message(), "add pod: create veth: File exists");
  EXPECT_EQ(outer.code(), Code::kAlreadyExists);
  EXPECT_EQ(outer.errnum(), EEXIST);
  ASSERT_NE(outer.details(), nullptr);
  EXPECT_EQ(outer.details()->name, "vethab12");
}

Result<int> Half(int n) {
  if (n % 2 != 0) return Error(Code::kInvalid, "odd");
  return n / 2;
}

Result<int> Quarter(int n) {
  KEELSON_ASSIGN_OR_RETURN(int half, Half(n));
  return Half(half);
}

TEST(Result, PropagatesThroughMacros) {
  EXPECT_EQ(*Quarter(8), 2);
  EXPECT_EQ(Quarter(6).error().message(), "odd");
  EXPECT_EQ(Quarter(5).error().code(), Code::kInvalid);
}

}  // namespace
}  // namespace keelson
