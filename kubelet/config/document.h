// Converts KubeletConfiguration between text, JSON and the struct. Internal to this folder.
#pragma once

#include <boost/json.hpp>
#include <string>
#include <vector>

#include "kubelet/config/config.h"

namespace keelson::kubelet {

// Parses YAML or JSON. An error unless it is a KubeletConfiguration of a known version. `problems` gets what strict
// decoding would reject.
Result<boost::json::object> ParseDocument(const std::string& text, std::vector<std::string>& problems);
// Fills the fields that `document` has. `problems` gets the names of fields that there are not. kBadRequest
// with everything that is wrong.
Result<> FillConfig(const boost::json::object& document, KubeletConfig& config,
                    std::vector<std::string>& problems);
// The inverse of FillConfig(), with kind and apiVersion.
boost::json::object ToDocument(const KubeletConfig& config);

}  // namespace keelson::kubelet
