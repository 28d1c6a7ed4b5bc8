// A copy of what an upgrade may change: certificates and keys, kubeconfigs, settings, and a snapshot of etcd. It is complete
// once it has the file kBackupList; what a kill has left without it is made anew.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ctl/config/documents.h"
#include "ctl/host/host.h"
#include "lib/base/clock.h"

namespace keelson::ctl {

inline constexpr char kBackupList[] = "/nodectl-backup.txt";  // in the backup: its files, a line each

// /etc/kubernetes/tmp/nodectl-backup-2026-11-28-09-30-00, in UTC.
std::string BackupDirectory(WallTime now);

struct BackupPlan {
  std::string directory;
  std::vector<std::string> places;  // files and directories; those that do not exist are left out
  std::vector<std::string>
      snapshot;  // the command that writes DIRECTORY/etcd.db; empty: no etcd of this machine's
};
// `cluster`: of a machine with a control plane. Pure.
BackupPlan PlanBackup(const std::string& directory, const std::optional<ClusterConfiguration>& cluster,
                      const Host& host);

// Copies everything to DIRECTORY/PATH, readable by root alone, unless it is complete already. An error leaves an incomplete
// copy, which the next call replaces.
Result<> BackUp(Host& host, const BackupPlan& plan, std::ostream& out);

}  // namespace keelson::ctl
