// KubeletConfiguration as a document: text in, JSON, the struct, JSON out. Internal to this folder.
#pragma once

#include <boost/json.hpp>
#include <string>
#include <vector>

#include "kubelet/config/config.h"

namespace keelson::kubelet {

// The mapping in `text` (YAML or JSON), when it is a KubeletConfiguration of a version that is known.
// `problems` gets what strict reading objects to.
Result<boost::json::object> ParseDocument(const std::string& text, std::vector<std::string>& problems);
// Fills the fields that `document` has. `problems` gets the names of fields that there are not.
Result<> FillConfig(const boost::json::object& document, KubeletConfig& config,
                    std::vector<std::string>& problems);
// What FillConfig() reads, with kind and apiVersion.
boost::json::object ToDocument(const KubeletConfig& config);

}  // namespace keelson::kubelet
