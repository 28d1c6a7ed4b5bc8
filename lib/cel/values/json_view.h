// JSON trees as values, without a copy.
#pragma once

#include <boost/json/value.hpp>

#include "lib/base/error.h"
#include "lib/cel/types/decl_type.h"
#include "lib/cel/values/value.h"

namespace keelson::cel {

// A view of `json`, which has to outlive the value. With a declared type, which has to outlive it too, formats
// become values of their own (date-time a timestamp, byte bytes), and only declared fields can be selected, by their
// escaped names. Data that does not fit the type reads as an error, in upstream's words, where it is looked at. Without a
// declared type, or in dyn, objects are maps of their JSON names.
Value JsonValue(const boost::json::value& json, const DeclType* declared, Arena& arena);

// The other way: the JSON of a value. Timestamps, durations and opaque values become strings, bytes base64. kInvalid for
// types and for maps whose keys are no strings.
Result<boost::json::value> ToJson(const Value& value, Arena& arena);

}  // namespace keelson::cel
