#include "controlplane/apiserver/admission/matching/versions.h"

#include "controlplane/storage/convert.h"

namespace keelson::apiserver {

Result<std::unique_ptr<api::Message>> ConvertTo(const api::Message& object, const api::ResourceInfo& from,
                                                const api::ResourceInfo& to, SteadyTime deadline) {
  if (&from != &to) return storage::ConvertMessage(from, object, to, {deadline, {}});
  std::unique_ptr<api::Message> copy(object.New());
  copy->CopyFrom(object);
  return copy;
}

Result<const api::Message*> VersionedObject::Object(const api::ResourceInfo& row) {
  if (!request_.object || &row == row_) return current();
  if (&row == &request_.info && !changed_) {
    current_.reset();
  } else {
    KEELSON_ASSIGN_OR_RETURN(current_, ConvertTo(*current(), *row_, row, request_.deadline));
  }
  row_ = &row;
  return current();
}

Result<const api::Message*> VersionedObject::OldObject(const api::ResourceInfo& row) {
  if (!request_.old_object || &row == &request_.info) return request_.old_object;
  if (&row != old_row_) {
    KEELSON_ASSIGN_OR_RETURN(old_, ConvertTo(*request_.old_object, request_.info, row, request_.deadline));
    old_row_ = &row;
  }
  return old_.get();
}

void VersionedObject::Replace(std::unique_ptr<api::Message> object) {
  current_ = std::move(object);
  changed_ = true;
}

Result<> VersionedObject::Finish() {
  if (!changed_) return {};
  KEELSON_RETURN_IF_ERROR(Object(request_.info));
  if (current_) request_.object->GetReflection()->Swap(request_.object, current_.get());
  current_.reset();
  changed_ = false;
  return {};
}

}  // namespace keelson::apiserver
