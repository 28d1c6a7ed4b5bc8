#include "lib/base/error.h"

#include <cerrno>
#include <cstring>

namespace keelson {
namespace {

struct CodeRow {
  Code code;
  int http_status;
  std::string_view reason;
};

constexpr CodeRow kCodes[] = {
    {Code::kBadRequest, 400, "BadRequest"},
    {Code::kUnauthenticated, 401, "Unauthorized"},
    {Code::kForbidden, 403, "Forbidden"},
    {Code::kNotFound, 404, "NotFound"},
    {Code::kMethodNotAllowed, 405, "MethodNotAllowed"},
    {Code::kNotAcceptable, 406, "NotAcceptable"},
    {Code::kConflict, 409, "Conflict"},
    {Code::kAlreadyExists, 409, "AlreadyExists"},
    {Code::kGone, 410, "Expired"},
    {Code::kTooLarge, 413, "RequestEntityTooLarge"},
    {Code::kUnsupportedMediaType, 415, "UnsupportedMediaType"},
    {Code::kInvalid, 422, "Invalid"},
    {Code::kTooManyRequests, 429, "TooManyRequests"},
    {Code::kCancelled, 499, "Cancelled"},
    {Code::kInternal, 500, "InternalError"},
    {Code::kUnimplemented, 501, "NotImplemented"},
    {Code::kUnavailable, 503, "ServiceUnavailable"},
    {Code::kTimeout, 504, "Timeout"},
};

const CodeRow& Row(Code code) {
  for (const CodeRow& row : kCodes) {
    if (row.code == code) return row;
  }
  std::abort();
}

Code CodeOfErrno(int errnum) {
  switch (errnum) {
    case ENOENT:
    case ESRCH:
    case ENODEV:
    case ENXIO:
      return Code::kNotFound;
    case EEXIST:
      return Code::kAlreadyExists;
    case EPERM:
    case EACCES:
      return Code::kForbidden;
    case EINVAL:
    case ERANGE:
      return Code::kInvalid;
    case EBUSY:
    case EAGAIN:
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
    case ENETUNREACH:
    case EHOSTUNREACH:
      return Code::kUnavailable;
    case ETIMEDOUT:
      return Code::kTimeout;
    case ECANCELED:
      return Code::kCancelled;
    case ENOSYS:
    case EOPNOTSUPP:
      return Code::kUnimplemented;
    default:
      return Code::kInternal;
  }
}

}  // namespace

int HttpStatus(Code code) { return Row(code).http_status; }
std::string_view Reason(Code code) { return Row(code).reason; }

Code CodeOf(int http_status, std::string_view reason) {
  for (const CodeRow& row : kCodes) {
    if (row.http_status == http_status && row.reason == reason) return row.code;
  }
  for (const CodeRow& row : kCodes) {
    if (row.http_status == http_status) return row.code;
  }
  return http_status >= 500 ? Code::kInternal : Code::kBadRequest;
}

Error Error::FromErrno(int errnum, std::string_view what) {
  return Error(CodeOfErrno(errnum), std::string(what) + ": " + strerrordesc_np(errnum), errnum);
}

Error Error::Wrap(std::string_view context) const {
  Error wrapped = *this;
  wrapped.message_ = std::string(context) + ": " + message_;
  return wrapped;
}

Error Error::WithDetails(ErrorDetails details) const {
  Error detailed = *this;
  detailed.details_ = std::make_shared<const ErrorDetails>(std::move(details));
  return detailed;
}

Error ErrnoError(std::string_view what) { return Error::FromErrno(errno, what); }

}  // namespace keelson
