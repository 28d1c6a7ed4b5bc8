// Errors as values. Every fallible function returns Result<T>; context is added on the way up
// ("create veth vethab12: File exists") and whoever handles an error logs it, once.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

namespace keelson {

// One code for each outcome that callers tell apart. HttpStatus() and Reason() give the Kubernetes Status
// form (apimachinery's StatusReason); lib/rpc/channel.h maps gRPC codes.
enum class Code {
  kBadRequest,            // 400 BadRequest: the request itself cannot be understood
  kUnauthenticated,       // 401 Unauthorized
  kForbidden,             // 403 Forbidden
  kNotFound,              // 404 NotFound
  kMethodNotAllowed,      // 405 MethodNotAllowed
  kNotAcceptable,         // 406 NotAcceptable
  kAlreadyExists,         // 409 AlreadyExists
  kConflict,              // 409 Conflict
  kGone,                  // 410 Expired
  kTooLarge,              // 413 RequestEntityTooLarge
  kUnsupportedMediaType,  // 415 UnsupportedMediaType
  kInvalid,               // 422 Invalid: understood, and breaks a rule
  kTooManyRequests,       // 429 TooManyRequests
  kInternal,              // 500 InternalError
  kUnimplemented,         // 501 NotImplemented
  kUnavailable,           // 503 ServiceUnavailable: worth another try
  kTimeout,               // 504 Timeout
  kCancelled,             // 499: the caller went away or a stop was asked for
};

int HttpStatus(Code code);
std::string_view Reason(Code code);
// The code for the HTTP status and Status reason of a reply. `reason` may be empty.
Code CodeOf(int http_status, std::string_view reason);

// What a Kubernetes Status carries in `details`.
struct ErrorCause {
  std::string reason;   // FieldValueRequired, ...
  std::string message;  // without the field path
  std::string field;    // spec.containers[0].name
};
struct ErrorDetails {
  std::string name, group, kind, uid;
  std::vector<ErrorCause> causes;
  int retry_after_seconds = 0;
};

class Error {
 public:
  Error(Code code, std::string message, int errnum = 0)
      : code_(code), errnum_(errnum), message_(std::move(message)) {}

  // "what: strerror(errnum)", with the code that fits the errno value (ENOENT -> kNotFound, ...).
  static Error FromErrno(int errnum, std::string_view what);

  Code code() const { return code_; }
  int errnum() const { return errnum_; }  // 0 when no system call was behind it
  const std::string& message() const { return message_; }
  const ErrorDetails* details() const { return details_.get(); }

  bool Is(Code code) const { return code_ == code; }

  // An error "context: message" with the same code, errno and details.
  Error Wrap(std::string_view context) const;
  Error WithDetails(ErrorDetails details) const;

 private:
  Code code_;
  int errnum_;
  std::string message_;
  std::shared_ptr<const ErrorDetails> details_;
};

template <typename T = void>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
  Result(Error error) : tl::expected<T, Error>(tl::unexpect, std::move(error)) {}
};

// errno as an Error; call it right after the system call.
Error ErrnoError(std::string_view what);

}  // namespace keelson

#define KEELSON_CONCAT2(a, b) a##b
#define KEELSON_CONCAT(a, b) KEELSON_CONCAT2(a, b)

// Returns the error of `expr` from the calling function. The counter keeps variable names distinct when
// `expr` holds a lambda that uses the macro too.
#define KEELSON_RETURN_IF_ERROR(expr) \
  KEELSON_RETURN_IF_ERROR_IMPL(KEELSON_CONCAT(keelson_e_, __COUNTER__), expr)
#define KEELSON_RETURN_IF_ERROR_IMPL(tmp, expr)                 \
  do {                                                          \
    if (auto tmp = (expr); !tmp) return std::move(tmp).error(); \
  } while (false)

// Assigns the value of `expr` to `lhs`, or returns the error of `expr` from the calling function.
#define KEELSON_ASSIGN_OR_RETURN(lhs, expr) \
  KEELSON_ASSIGN_OR_RETURN_IMPL(KEELSON_CONCAT(keelson_r_, __COUNTER__), lhs, expr)
#define KEELSON_ASSIGN_OR_RETURN_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                                  \
  if (!tmp) return std::move(tmp).error();            \
  lhs = std::move(*tmp)
