// nodectl etcd status|snapshot|restore|defrag; the verbs about members are in etcd_members.cc and etcd_expose.cc.
#include <CLI/CLI.hpp>
#include <iostream>

#include "ctl/etcd/report.h"
#include "ctl/etcd/snapshots.h"
#include "ctl/etcd/view.h"
#include "ctl/host/paths.h"
#include "ctl/phases/control_plane.h"
#include "ctl/setup/etcd_verbs.h"
#include "lib/base/clock.h"
#include "lib/component/document.h"

namespace keelson::ctl {
namespace {

struct Options : EtcdVerbOptions {
  std::string path, directory, data_dir;
  uint32_t keep = 0;
  etcd::RestoredMember member;
  std::string name, peer_url;  // of `member`, where given
  bool force = false, disarm = false;
};

int64_t Now() { return std::chrono::system_clock::to_time_t(Clock::Real().Now()); }

Result<int> ShowStatus(const Options& options, const Settings& settings) {
  KEELSON_ASSIGN_OR_RETURN(const EtcdAccess access, AccessTo(options));
  KEELSON_ASSIGN_OR_RETURN(const EtcdView view, LookAtEtcd(access));
  Print(settings, StatusTable(view), StatusDocument(view));
  return ProblemsOf(view).empty() ? 0 : kFoundProblems;
}

// NOSPACE ends when every member has room again; one that has not raises it anew.
Result<> Disarm(const EtcdAccess& access, const EtcdView& view) {
  for (const etcd::Alarm& alarm : view.alarms) {
    if (alarm.kind != "NOSPACE") continue;
    KEELSON_RETURN_IF_ERROR(
        WithAnyMember(access, [&](etcd::Member& member) { return member.Disarm(alarm); }));
    std::cout << "Ended alarm NOSPACE of member " << etcd::MemberId(alarm.member_id) << "\n";
  }
  return {};
}

Result<int> Defragment(const Options& options) {
  KEELSON_ASSIGN_OR_RETURN(const EtcdAccess access, AccessTo(options));
  KEELSON_ASSIGN_OR_RETURN(const EtcdView view, LookAtEtcd(access));
  KEELSON_ASSIGN_OR_RETURN(const std::vector<std::string> order, PlanDefragment(view));
  std::cout << std::unitbuf;
  for (const std::string& endpoint : order) {
    etcd::Member member(endpoint, access.credentials);
    KEELSON_ASSIGN_OR_RETURN(const etcd::MemberStatus before, member.Status());
    KEELSON_RETURN_IF_ERROR(member.Defragment());
    KEELSON_ASSIGN_OR_RETURN(const etcd::MemberStatus after, member.Status());
    std::cout << "Defragmented " << endpoint << ": " << SizeText(before.db_size) << ", now "
              << SizeText(after.db_size) << "\n";
  }
  if (options.disarm) KEELSON_RETURN_IF_ERROR(Disarm(access, view));
  return 0;
}

Result<int> SaveSnapshotVerb(const Options& options) {
  if (options.path.empty() == options.directory.empty()) {
    return Error(Code::kInvalid, "name a file, or a --directory for snapshots");
  }
  if (options.keep > 0 && options.directory.empty()) {
    return Error(Code::kInvalid, "--keep is for snapshots in a --directory");
  }
  KEELSON_ASSIGN_OR_RETURN(const EtcdAccess access, AccessTo(options));
  if (!options.directory.empty()) {
    KEELSON_RETURN_IF_ERROR(SaveInDirectory(access, options.directory, options.keep, Now(), std::cout));
    return 0;
  }
  KEELSON_ASSIGN_OR_RETURN(const etcd::SnapshotInfo info, SaveEtcdSnapshot(access, options.path));
  std::cout << "Snapshot saved at " << options.path << " (" << SizeText(info.bytes) << ")\n";
  return 0;
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
  Print(settings,
        TextTable({{"HASH", "REVISION", "TOTAL KEYS", "TOTAL SIZE"},
                   {hash, std::to_string(number("revision")), std::to_string(number("totalKey")),
                    SizeText(number("totalSize"))}}),
        out);
  return 0;
}

Result<int> Restore(const Options& options) {
  const std::unique_ptr<Host> host = NewHost(options.root);
  const bool own = options.data_dir.empty();
  const EtcdSettings settings = ReadEtcdSettings(*host);
  if (own && !settings.servers.empty()) {
    return Error(Code::kInvalid,
                 "kube-controlplane uses an etcd elsewhere: restore it there, or give --data-dir");
  }
  const bool static_pod = HasStaticControlPlane(*host);
  if (own && ControlPlaneStarted(*host)) {
    return Error(Code::kConflict,
                 "kube-controlplane runs: stop it first, on every machine of the control plane (" +
                     (static_pod ? "move " + std::string(paths::kControlPlaneManifest) +
                                       " to another directory, and wait until the pod has ended)"
                                 : "'systemctl stop kube-controlplane')"));
  }
  RestoreWish wish{options.path, own ? host->RealPath(paths::kEtcdData) : options.data_dir, options.member,
                   options.force};
  // What kube-controlplane starts its etcd as.
  if (!settings.address.empty()) {
    wish.member.name = settings.name;
    wish.member.peer_url = EtcdUrl(settings.address, kEtcdPeerPort);
  }
  if (!options.name.empty()) wish.member.name = options.name;
  if (!options.peer_url.empty()) wish.member.peer_url = options.peer_url;
  KEELSON_RETURN_IF_ERROR(RestoreEtcd(wish, Now(), std::cout));
  if (own) {
    std::cout
        << "Start the control plane with 'systemctl start kube-controlplane'; where it is a static pod, move "
        << paths::kControlPlaneManifest << " back.\n";
  }
  return 0;
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
  save->callback(
      [options, &chosen] { chosen = [options](const Settings&) { return SaveSnapshotVerb(*options); }; });
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
  restore->callback(
      [options, &chosen] { chosen = [options](const Settings&) { return Restore(*options); }; });
}

}  // namespace

void AddEtcdAccess(CLI::App& verb, EtcdVerbOptions& options) {
  verb.fallthrough();
  const component::FlagAdder add{verb};
  add("--endpoints", options.etcd.endpoints,
      "Members to ask, https://HOST:2379; default: all of this machine's cluster");
  add("--cacert", options.etcd.ca_file, "CA of etcd's certificates; default: the control plane's");
  add("--cert", options.etcd.certificate_file, "Client certificate; default: the control plane's");
  add("--key", options.etcd.key_file, "Key of the client certificate; default: the control plane's");
  add("--rootfs", options.root, "Directory that stands for the root of the host's files");
}

Result<EtcdAccess> AccessTo(const EtcdVerbOptions& options) {
  return FindEtcd(*NewHost(options.root), options.etcd);
}

void Print(const Settings& settings, const std::string& table, const boost::json::value& document) {
  switch (settings.format()) {
    case OutputFormat::kJson:
      std::cout << ToJson(document);
      break;
    case OutputFormat::kYaml:
      std::cout << ToYaml(document);
      break;
    case OutputFormat::kTable:
      std::cout << table;
      break;
  }
}

void AddEtcd(CLI::App& parent, Run& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* etcd = parent.add_subcommand("etcd", "The cluster's database");
  etcd->require_subcommand(1)->fallthrough();
  AddEtcdMembers(*etcd, chosen);
  AddEtcdExpose(*etcd, chosen);
  CLI::App* status = etcd->add_subcommand("status", "Show each member's health, and alarms with their fix");
  AddEtcdAccess(*status, *options);
  status->callback([options, &chosen] {
    chosen = [options](const Settings& settings) { return ShowStatus(*options, settings); };
  });
  AddSnapshot(*etcd, options, chosen);
  AddRestore(*etcd, options, chosen);
  CLI::App* defragment = etcd->add_subcommand(
      "defrag", "Give free space back to the file system, one member after the other and the leader last");
  AddEtcdAccess(*defragment, *options);
  component::FlagAdder{*defragment}("--disarm", options->disarm, "End alarms NOSPACE afterwards");
  defragment->callback(
      [options, &chosen] { chosen = [options](const Settings&) { return Defragment(*options); }; });
}

}  // namespace keelson::ctl
