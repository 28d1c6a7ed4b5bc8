// Values of fields as JSON. Internal to this folder.
#pragma once

#include <boost/json.hpp>

#include "kubelet/config/fields.h"

namespace keelson::kubelet {

// Null for what is not printed: empty Go values.
boost::json::value PrintField(const Field& field, const KubeletConfig& config);

}  // namespace keelson::kubelet
