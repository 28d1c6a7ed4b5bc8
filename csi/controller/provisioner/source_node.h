// Where the source of a new volume is, for drivers whose volumes belong to nodes.
#pragma once

#include <string>

#include "csi/controller/common/controller.h"
#include "csi/controller/provisioner/content_source.h"

namespace keelson::csi::controller {

// A node other than `selected` from which the source can be reached, when it cannot be reached from `selected`: of a
// claim's volume by its node affinity, of a snapshot by its content's label managed-by. Empty: there is none, the source
// belongs to no node, or `selected` is right.
Result<std::string> NodeOfSource(const client::RestClient& api, const Claim& claim, const DataSource& source,
                                 const std::string& selected);

}  // namespace keelson::csi::controller
