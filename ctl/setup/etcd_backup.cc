// nodectl etcd snapshot save|snapshot status|restore
#include <CLI/CLI.hpp>
#include <boost/json.hpp>

#include "ctl/etcd/report.h"
#include "ctl/etcd/snapshots.h"
#include "ctl/etcd/view.h"
#include "ctl/host/paths.h"
#include "ctl/inspect_verbs.h"
#include "ctl/phases/control_plane.h"
#include "ctl/setup/etcd_verbs.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/component/document.h"

namespace keelson::ctl {
namespace {

struct Options : EtcdVerbOptions {
  std::string path, directory, data_dir;
  uint32_t keep = 0;
  etcd::RestoredMember member;
  std::string name, peer_url;  // of `member`, where given
  bool force = false;
};

int64_t Now() { return std::chrono::system_clock::to_time_t(Clock::Real().Now()); }

Result<> SaveSnapshot(const Options& options, VerbReport& report, boost::json::object& fields) {
  if (options.path.empty() == options.directory.empty()) {
    return Error(Code::kInvalid, "name a file, or a --directory for snapshots");
  }
  if (options.keep > 0 && options.directory.empty()) {
    return Error(Code::kInvalid, "--keep is for snapshots in a --directory");
  }
  KEELSON_ASSIGN_OR_RETURN(const EtcdAccess access, AccessTo(options));
  fields["dryRun"] = options.dry_run;
  if (options.dry_run) {
    // Whether there is an etcd to take it of.
    KEELSON_RETURN_IF_ERROR(ListMembers(access));
    report.out() << "[dryrun] Would save a snapshot " << (options.directory.empty() ? "at " : "in ")
                 << (options.directory.empty() ? options.path : options.directory) << "\n";
    return {};
  }
  if (!options.directory.empty()) {
    KEELSON_ASSIGN_OR_RETURN(const std::string path,
                             SaveInDirectory(access, options.directory, options.keep, Now(), report.out()));
    fields["path"] = path;
    return {};
  }
  KEELSON_ASSIGN_OR_RETURN(const etcd::SnapshotInfo info, SaveEtcdSnapshot(access, options.path));
  fields["path"] = options.path;
  report.out() << "Snapshot saved at " << options.path << " (" << SizeText(info.bytes) << ")\n";
  return {};
}

Result<int> ShowSnapshot(const Options& options, const Settings& settings) {
  KEELSON_ASSIGN_OR_RETURN(const std::string told, etcd::DescribeSnapshot(options.path));
  const size_t begin = told.find('{'), end = told.rfind('}');
  component::DocumentProblems problems;
  Result<boost::json::object> parsed =
      begin == std::string::npos || end == std::string::npos
          ? Error(Code::kInternal, "etcd's tool says: " + told)
          : component::ParseDocument(told.substr(begin, end + 1 - begin), problems);
  if (!parsed) return parsed.error();
  const auto number = [&](const char* field) -> int64_t {
    const boost::json::value* found = parsed->if_contains(field);
    return found && found->is_number() ? found->to_number<int64_t>() : 0;
  };
  boost::json::object out;
  const std::string hash = etcd::MemberId(static_cast<uint64_t>(number("hash")));
  out["hash"] = hash;
  out["revision"] = number("revision");
  out["totalKey"] = number("totalKey");
  out["totalSize"] = number("totalSize");
  PrintAnswer(settings,
              TextTable({{"HASH", "REVISION", "TOTAL KEYS", "TOTAL SIZE"},
                         {hash, std::to_string(number("revision")), std::to_string(number("totalKey")),
                          SizeText(number("totalSize"))}}),
              out);
  return 0;
}

// Refuses what cannot be restored on this machine.
Result<RestoreWish> WishOf(const Options& options, const Host& host) {
  const bool own = options.data_dir.empty();
  const EtcdSettings settings = ReadEtcdSettings(host);
  if (own && !settings.servers.empty()) {
    return Error(Code::kInvalid,
                 "kube-controlplane uses an etcd elsewhere: restore it there, or give --data-dir");
  }
  const bool static_pod = HasStaticControlPlane(host);
  if (own && ControlPlaneStarted(host)) {
    return Error(Code::kConflict,
                 "kube-controlplane runs: stop it first, on every machine of the control plane (" +
                     (static_pod ? "move " + std::string(paths::kControlPlaneManifest) +
                                       " to another directory, and wait until the pod has ended)"
                                 : "'systemctl stop kube-controlplane')"));
  }
  RestoreWish wish{options.path, own ? host.RealPath(paths::kEtcdData) : options.data_dir, options.member,
                   options.force};
  // What kube-controlplane starts its etcd as.
  if (!settings.address.empty()) {
    wish.member.name = settings.name;
    wish.member.peer_url = EtcdUrl(settings.address, kEtcdPeerPort);
  }
  if (!options.name.empty()) wish.member.name = options.name;
  if (!options.peer_url.empty()) wish.member.peer_url = options.peer_url;
  return wish;
}

Result<> Restore(const Options& options, VerbReport& report, boost::json::object& fields) {
  const std::unique_ptr<Host> host = NewHost(options.root);
  KEELSON_ASSIGN_OR_RETURN(const RestoreWish wish, WishOf(options, *host));
  fields["dryRun"] = options.dry_run;
  fields["snapshot"] = wish.snapshot;
  fields["dataDir"] = wish.directory + "/data";
  fields["member"] = wish.member.name;
  if (options.dry_run) {
    KEELSON_RETURN_IF_ERROR(etcd::CheckSnapshot(wish.snapshot));
    if (!wish.replace && PathExists(wish.directory + "/data")) {
      return Error(Code::kAlreadyExists,
                   wish.directory + "/data exists: --force puts the snapshot in its place");
    }
    report.out() << "[dryrun] Would restore " << wish.snapshot << " into " << wish.directory << "/data\n";
    return {};
  }
  KEELSON_RETURN_IF_ERROR(RestoreEtcd(wish, Now(), report.out()));
  if (!options.data_dir.empty()) return {};
  report.out()
      << "Start the control plane with 'systemctl start kube-controlplane'; where it is a static pod, move "
      << paths::kControlPlaneManifest << " back.\n";
  return {};
}

void AddSnapshot(CLI::App& parent, const std::shared_ptr<Options>& options, Run& chosen) {
  CLI::App* snapshot = parent.add_subcommand("snapshot", "Backups of etcd");
  snapshot->require_subcommand(1)->fallthrough();
  CLI::App* save = snapshot->add_subcommand("save", "Write a verified snapshot of the running etcd");
  AddEtcdAccess(*save, *options);
  save->add_option("file", options->path, "The file; or see --directory");
  const component::FlagAdder add{*save};
  add("--directory", options->directory, "Directory for a snapshot that is named by the time");
  add("--keep", options->keep, "How many snapshots stay in the directory; 0: all");
  ReportAs(*save, "EtcdSnapshotReport", options, SaveSnapshot, chosen);
  CLI::App* status = snapshot->add_subcommand("status", "Verify a snapshot and show what it has");
  status->fallthrough();
  status->add_option("file", options->path, "The snapshot")->required();
  status->callback([options, &chosen] {
    chosen = [options](const Settings& settings) { return ShowSnapshot(*options, settings); };
  });
}

void AddRestore(CLI::App& parent, const std::shared_ptr<Options>& options, Run& chosen) {
  CLI::App* restore = parent.add_subcommand("restore", "Make etcd's data directory out of a snapshot");
  restore->fallthrough();
  restore->add_option("file", options->path, "The snapshot")->required();
  const component::FlagAdder add{*restore};
  add("--data-dir", options->data_dir, "Directory around etcd's; default: the control plane's");
  add("--force", options->force, "Put it in the place of data that is there, which is kept aside");
  add("--name", options->name, "Name of the member; default: the control plane's");
  add("--initial-advertise-peer-urls", options->peer_url,
      "Peer URL of the member; default: the control plane's");
  add("--initial-cluster", options->member.cluster,
      "All members, NAME=PEER-URL,...; default: this one alone");
  add("--initial-cluster-token", options->member.token, "The same on all machines of a cluster of several");
  add("--rootfs", options->root, "Directory that stands for the root of the host's files");
  ReportAs(*restore, "EtcdRestoreReport", options, Restore, chosen);
}

}  // namespace

void AddEtcdBackup(CLI::App& parent, Run& chosen) {
  auto options = std::make_shared<Options>();
  AddSnapshot(parent, options, chosen);
  AddRestore(parent, options, chosen);
}

}  // namespace keelson::ctl
