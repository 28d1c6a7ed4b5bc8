// Separate from meta.cc: programs that talk to a server and need no types (lib/client's transport) link
// none.
#include "lib/api/meta.h"

namespace keelson::api {

metav1::Status ToStatus(const Error& error) {
  metav1::Status status;
  status.set_status("Failure");
  status.set_message(error.message());
  status.set_reason(std::string(Reason(error.code())));
  status.set_code(HttpStatus(error.code()));
  if (const ErrorDetails* from = error.details()) {
    metav1::StatusDetails& to = *status.mutable_details();
    if (!from->name.empty()) to.set_name(from->name);
    if (!from->group.empty()) to.set_group(from->group);
    if (!from->kind.empty()) to.set_kind(from->kind);
    if (!from->uid.empty()) to.set_uid(from->uid);
    if (from->retry_after_seconds != 0) to.set_retry_after_seconds(from->retry_after_seconds);
    for (const ErrorCause& cause : from->causes) {
      metav1::StatusCause& added = *to.add_causes();
      if (!cause.reason.empty()) added.set_reason(cause.reason);
      if (!cause.message.empty()) added.set_message(cause.message);
      if (!cause.field.empty()) added.set_field(cause.field);
    }
  }
  return status;
}

Error FromStatus(const metav1::Status& status) {
  Error error(CodeOf(status.code(), status.reason()), status.message());
  if (!status.has_details()) return error;
  const metav1::StatusDetails& from = status.details();
  ErrorDetails details{from.name(), from.group(), from.kind(), from.uid(), {}, from.retry_after_seconds()};
  for (const auto& cause : from.causes()) {
    details.causes.push_back({cause.reason(), cause.message(), cause.field()});
  }
  return error.WithDetails(std::move(details));
}

}  // namespace keelson::api
