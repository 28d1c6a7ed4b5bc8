// The objects of a request in the version that a webhook or policy has asked for.
#pragma once

#include <memory>

#include "controlplane/apiserver/admission/admission.h"

namespace keelson::apiserver {

// A copy of `object` (of row `from`) as `to` shows it; both rows show the same stored objects. For custom resources
// that may call a conversion webhook, which blocks until `deadline` at most.
Result<std::unique_ptr<api::Message>> ConvertTo(const api::Message& object, const api::ResourceInfo& from,
                                                const api::ResourceInfo& to, SteadyTime deadline);

// Follows the object of a request through mutations in several versions. Not thread safe.
class VersionedObject {
 public:
  explicit VersionedObject(const AdmissionRequest& request) : request_(request), row_(&request.info) {}

  // The object (null: the request has none), and the old one, in the version of `row`. Valid until the next
  // call.
  Result<const api::Message*> Object(const api::ResourceInfo& row);
  Result<const api::Message*> OldObject(const api::ResourceInfo& row);
  // Replaces the object, in the version of the last call of Object().
  void Replace(std::unique_ptr<api::Message> object);
  // Writes the result back to the request's object.
  Result<> Finish();

  const api::Message* current() const { return current_ ? current_.get() : request_.object; }

 private:
  const AdmissionRequest& request_;
  const api::ResourceInfo* row_;           // of `current_`
  std::unique_ptr<api::Message> current_;  // null: the request's object
  bool changed_ = false;
  const api::ResourceInfo* old_row_ = nullptr;
  std::unique_ptr<api::Message> old_;  // null: the request's old object
};

}  // namespace keelson::apiserver
