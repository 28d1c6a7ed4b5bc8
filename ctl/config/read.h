// Reads files of kubeadm's configuration documents. Unknown and repeated fields are refused in the words of kubeadm's
// strict decoding, all of a document at once.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ctl/config/documents.h"
#include "lib/base/error.h"

namespace keelson::ctl {

// What a file of several documents holds, each kind at most once.
struct ConfigDocuments {
  std::optional<boost::json::object> init, cluster, join, reset, upgrade, kubelet, proxy;
  std::vector<std::string> warnings;  // documents of other kinds, which are ignored
};
// kBadRequest: no YAML, no kind, a kind twice, an API version that is too old.
Result<ConfigDocuments> SplitDocuments(std::string_view text);

// Each begins with the defaults, and adds a warning for every field that is set and has no effect with Keelson.
// kInvalid: fields that are unknown or of a wrong type.
Result<InitConfiguration> ReadInit(const ConfigDocuments& documents, std::vector<std::string>& warnings);
Result<JoinConfiguration> ReadJoin(const ConfigDocuments& documents, std::vector<std::string>& warnings);
Result<ResetConfiguration> ReadReset(const ConfigDocuments& documents, std::vector<std::string>& warnings);
Result<UpgradeConfiguration> ReadUpgrade(const ConfigDocuments& documents,
                                         std::vector<std::string>& warnings);
Result<ClusterConfiguration> ReadCluster(const boost::json::object& document,
                                         std::vector<std::string>& warnings);

}  // namespace keelson::ctl
