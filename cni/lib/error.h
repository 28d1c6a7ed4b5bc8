// Errors in the form that CNI runtimes read (CNI spec 1.1, section 5, "Error").
#pragma once

#include <string>
#include <string_view>

#include "lib/base/error.h"

namespace keelson::cni {

enum ErrorCode {
  kIncompatibleVersion = 1,
  kUnsupportedField = 2,
  kUnknownContainer = 3,
  kInvalidEnvironment = 4,
  kIoFailure = 5,
  kDecodingFailure = 6,
  kInvalidConfig = 7,
  kTryAgainLater = 11,
  kPluginNotAvailable = 50,
  kCheckFailed = 100,  // of our plugins: what ADD made is missing
  kInternalFailure = 999,
};

struct CniError {
  int code;
  std::string message;
  std::string details;

  // Maps system errors to kIoFailure, and the caller's mistakes to kInvalidConfig.
  static CniError From(const Error& error);
  CniError Wrap(std::string_view context) const {
    return {code, std::string(context) + ": " + message, details};
  }
};

template <typename T = void>
class [[nodiscard]] Outcome : public tl::expected<T, CniError> {
 public:
  using tl::expected<T, CniError>::expected;
  Outcome(CniError error) : tl::expected<T, CniError>(tl::unexpect, std::move(error)) {}
  Outcome(const Error& error) : Outcome(CniError::From(error)) {}
};

}  // namespace keelson::cni
