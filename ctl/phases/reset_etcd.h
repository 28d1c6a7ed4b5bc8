// Internal to this room: the phase of reset that takes this machine's member out of etcd.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "ctl/config/documents.h"
#include "ctl/host/host.h"

namespace keelson::ctl {

// The name that --ignore-preflight-errors knows for a removal that costs the quorum.
inline constexpr char kEtcdQuorumCheck[] = "EtcdQuorum";

// Does nothing where etcd has no other members. kUnavailable: the others would lose their quorum, or none of them answers; the
// message has the way out. `ignored`, in lower case, may have the check: then errors are warnings.
Result<> RemoveEtcdMember(Host& host, const std::vector<std::string>& ignored, bool dry_run,
                          std::ostream& out, std::ostream& err);

}  // namespace keelson::ctl
