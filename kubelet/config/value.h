// Converts the values of fields from and to JSON. Internal to this folder.
#pragma once

#include <boost/json.hpp>
#include <string>

#include "kubelet/config/fields.h"

namespace keelson::kubelet {

// Sets the field in `config`. An error has the message of Go's encoding/json.
Result<> ReadField(const Field& field, const boost::json::value& value, KubeletConfig& config);
// Null: the field is omitted, as Go's omitempty does.
boost::json::value PrintField(const Field& field, const KubeletConfig& config);

}  // namespace keelson::kubelet
