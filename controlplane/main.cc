// kube-controlplane: API server, scheduler and controllers in one process, or selected by --roles.
#include <malloc.h>

#include <CLI/CLI.hpp>

#include "controlplane/etcd_command.h"
#include "controlplane/options/flags.h"
#include "lib/base/signals.h"
#include "lib/component/program.h"
#include "lib/event/loop.h"

namespace {

// Flags that select the etcd may be at any position.
void AddEtcdCommands(CLI::App& app, keelson::controlplane::EtcdCommand& command) {
  using Verb = keelson::controlplane::EtcdCommand::Verb;
  CLI::App* etcd = app.add_subcommand("etcd", "Look after etcd's data")->fallthrough()->require_subcommand(1);
  CLI::App* snapshot = etcd->add_subcommand("snapshot", "Backups")->fallthrough()->require_subcommand(1);
  auto add = [&command](CLI::App* parent, const char* name, const char* what, Verb verb) {
    CLI::App* made = parent->add_subcommand(name, what)->fallthrough();
    made->callback([&command, verb] { command.verb = verb; });
    return made;
  };
  add(snapshot, "save", "Write a snapshot of a running etcd", Verb::kSave)
      ->add_option("file", command.path, "Where to")
      ->required();
  add(snapshot, "restore", "Make the data of --data-dir of a snapshot", Verb::kRestore)
      ->add_option("file", command.path, "The snapshot")
      ->required();
  add(snapshot, "status", "Check a snapshot; print its hash, revision, keys and size", Verb::kStatus)
      ->add_option("file", command.path, "The snapshot")
      ->required();
  add(etcd, "check", "Read all of etcd, and name what this server would not understand", Verb::kCheck);
  add(etcd, "defragment", "Give etcd's free space back to the file system", Verb::kDefragment);
}

}  // namespace

int main(int argc, char** argv) {
  keelson::BlockSignals();
  keelson::event::LoopsOfProcess loops;
  keelson::controlplane::Options options;
  CLI::App app("Kubernetes control plane: API server, scheduler and controllers on etcd",
               "kube-controlplane");
  keelson::controlplane::AddFlags(app, options);
  keelson::controlplane::EtcdCommand etcd;
  AddEtcdCommands(app, etcd);
  if (std::optional<int> done = keelson::component::ParseProgram(app, argc, argv)) return *done;
  keelson::controlplane::FinishOptions(app, options);
  if (etcd.verb != keelson::controlplane::EtcdCommand::Verb::kNone) return RunEtcdCommand(etcd, options);
  // glibc would create eight arenas per core, each keeping free memory of past bursts.
  ::mallopt(M_ARENA_MAX, 4);
  return keelson::controlplane::RunControlPlane(options);
}
