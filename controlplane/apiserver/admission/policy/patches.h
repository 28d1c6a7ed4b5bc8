// What the expressions of mutating policies evaluate to, applied to an object's JSON.
#pragma once

#include <boost/json/value.hpp>

#include "lib/api/scheme.h"
#include "lib/base/error.h"
#include "lib/cel/values/value.h"

namespace keelson::apiserver::policy {

// Merges an Object{...} as server-side apply does, without ownership: no field goes away. `row`: of the object. Errors
// in upstream's words: fields that the schema does not have, lists and objects that change as a whole.
Result<boost::json::value> ApplyConfiguration(const boost::json::value& object, const api::ResourceInfo& row,
                                              const cel::Value& configuration, cel::Arena& arena);

// Applies a list of JSONPatch{...}. A failed `test` leaves the object as it is.
Result<boost::json::value> ApplyPatch(const boost::json::value& object, const cel::Value& patch,
                                      cel::Arena& arena);

}  // namespace keelson::apiserver::policy
