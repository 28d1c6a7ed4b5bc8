// Values of fields from JSON and back. Internal to this folder.
#pragma once

#include <boost/json.hpp>
#include <string>

#include "kubelet/config/fields.h"

namespace keelson::kubelet {

// `path` is for the error, in the words of Go's encoding/json.
Result<> ReadField(const Field& field, const boost::json::value& value, KubeletConfig& config);
// Null for what is not printed: empty Go values.
boost::json::value PrintField(const Field& field, const KubeletConfig& config);

}  // namespace keelson::kubelet
