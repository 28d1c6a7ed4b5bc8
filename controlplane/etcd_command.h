// kube-controlplane etcd snapshot save|restore|status, etcd defragment, etcd check.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "controlplane/options/options.h"

namespace keelson::controlplane {

struct EtcdCommand {
  enum class Verb { kNone, kSave, kRestore, kStatus, kDefragment, kCheck };
  Verb verb = Verb::kNone;
  std::string path;  // path of the snapshot
};

// Runs the command on the etcd of --etcd-servers or --data-dir. Returns the exit code: 1 after an error, 2 when `check` has
// found values that this server would not understand.
int RunEtcdCommand(const EtcdCommand& command, const Options& options);

}  // namespace keelson::controlplane
