// kube-controlplane etcd snapshot save|restore|status, etcd defragment.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "controlplane/options/options.h"

namespace keelson::controlplane {

struct EtcdCommand {
  enum class Verb { kNone, kSave, kRestore, kStatus, kDefragment };
  Verb verb = Verb::kNone;
  std::string path;  // of the snapshot
};

// Does it, with the etcd that `options` name: --etcd-servers, or the one of --data-dir. The exit code.
int RunEtcdCommand(const EtcdCommand& command, const Options& options);

}  // namespace keelson::controlplane
