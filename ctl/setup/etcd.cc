// nodectl etcd status|defrag; the other verbs are in etcd_backup.cc, etcd_members.cc and etcd_expose.cc.
#include <CLI/CLI.hpp>
#include <boost/json.hpp>

#include "ctl/etcd/report.h"
#include "ctl/etcd/view.h"
#include "ctl/inspect_verbs.h"
#include "ctl/setup/etcd_verbs.h"
#include "ctl/setup/verb_report.h"

namespace keelson::ctl {
namespace {

struct Options : EtcdVerbOptions {
  bool disarm = false;
};

Result<int> ShowStatus(const Options& options, const Settings& settings) {
  KEELSON_ASSIGN_OR_RETURN(const EtcdAccess access, AccessTo(options));
  KEELSON_ASSIGN_OR_RETURN(const EtcdView view, LookAtEtcd(access));
  PrintAnswer(settings, StatusTable(view), StatusDocument(view));
  return ProblemsOf(view).empty() ? 0 : kFoundProblems;
}

// NOSPACE ends when every member has room again; one that has not raises it anew.
Result<> Disarm(const EtcdAccess& access, const EtcdView& view, bool dry_run, std::ostream& out) {
  for (const etcd::Alarm& alarm : view.alarms) {
    if (alarm.kind != "NOSPACE") continue;
    const std::string what = "alarm NOSPACE of member " + etcd::MemberId(alarm.member_id);
    if (dry_run) {
      out << "[dryrun] Would end " << what << "\n";
      continue;
    }
    KEELSON_RETURN_IF_ERROR(
        WithAnyMember(access, [&](etcd::Member& member) { return member.Disarm(alarm); }));
    out << "Ended " << what << "\n";
  }
  return {};
}

Result<> Defragment(const Options& options, VerbReport& report, boost::json::object& fields) {
  KEELSON_ASSIGN_OR_RETURN(const EtcdAccess access, AccessTo(options));
  KEELSON_ASSIGN_OR_RETURN(const EtcdView view, LookAtEtcd(access));
  KEELSON_ASSIGN_OR_RETURN(const std::vector<std::string> order, PlanDefragment(view));
  fields["dryRun"] = options.dry_run;
  boost::json::array members;
  for (const std::string& endpoint : order) {
    etcd::Member member(endpoint, access.credentials);
    KEELSON_ASSIGN_OR_RETURN(const etcd::MemberStatus before, member.Status());
    boost::json::object entry{{"endpoint", endpoint}, {"dbSizeBefore", before.db_size}};
    if (options.dry_run) {
      report.out() << "[dryrun] Would defragment " << endpoint << ": " << SizeText(before.db_size) << "\n";
    } else {
      KEELSON_RETURN_IF_ERROR(member.Defragment());
      KEELSON_ASSIGN_OR_RETURN(const etcd::MemberStatus after, member.Status());
      entry["dbSize"] = after.db_size;
      report.out() << "Defragmented " << endpoint << ": " << SizeText(before.db_size) << ", now "
                   << SizeText(after.db_size) << "\n";
    }
    members.push_back(std::move(entry));
    fields["members"] = members;
  }
  if (!options.disarm) return {};
  return Disarm(access, view, options.dry_run, report.out());
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

void AddEtcdDryRun(CLI::App& verb, EtcdVerbOptions& options) {
  component::FlagAdder{verb}("--dry-run", options.dry_run, "Change nothing; say what would be done");
}

Result<EtcdAccess> AccessTo(const EtcdVerbOptions& options) {
  return FindEtcd(*NewHost(options.root), options.etcd);
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
  AddEtcdBackup(*etcd, chosen);
  CLI::App* defragment = etcd->add_subcommand(
      "defrag", "Give free space back to the file system, one member after the other and the leader last");
  AddEtcdAccess(*defragment, *options);
  component::FlagAdder{*defragment}("--disarm", options->disarm, "End alarms NOSPACE afterwards");
  ReportAs(*defragment, "EtcdDefragReport", options, Defragment, chosen);
}

}  // namespace keelson::ctl
