// Applies the JSON patch of a mutating webhook to an object.
#pragma once

#include <memory>
#include <string_view>

#include <boost/json/value.hpp>

#include "controlplane/apiserver/admission/admission.h"

namespace keelson::apiserver::webhook {

// The operations of a patch. kBadRequest: it is no list of operations.
Result<boost::json::value> ParsePatch(std::string_view patch);

// The patched object of the kind of `row`, with its defaults; `json` is `object` in JSON. kInternal when the
// patch cannot be applied, or the result is no object of this kind. Managed fields that do not make sense any
// more become those from before, with a warning in `notes`.
Result<std::unique_ptr<api::Message>> ApplyPatch(const api::Message& object, std::string_view json,
                                                 const boost::json::value& patch,
                                                 const api::ResourceInfo& row, AdmissionNotes* notes);

}  // namespace keelson::apiserver::webhook
