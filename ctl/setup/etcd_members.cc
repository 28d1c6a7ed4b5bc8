// nodectl etcd members [remove NAME|ID]
#include <boost/json.hpp>
#include <iostream>

#include "ctl/etcd/report.h"
#include "ctl/etcd/view.h"
#include "ctl/host/paths.h"
#include "ctl/inspect_verbs.h"
#include "ctl/phases/etcd_members.h"
#include "ctl/setup/etcd_verbs.h"
#include "ctl/setup/verb_report.h"

namespace keelson::ctl {
namespace {

struct Options : EtcdVerbOptions {
  std::string member;
  bool force = false;
};

Result<int> ShowMembers(const Options& options, const Settings& settings) {
  KEELSON_ASSIGN_OR_RETURN(const EtcdAccess access, AccessTo(options));
  KEELSON_ASSIGN_OR_RETURN(const std::vector<etcd::MemberInfo> members, ListMembers(access));
  PrintAnswer(settings, MembersTable(members), MembersDocument(members));
  return 0;
}

// The others, those that answer first: a member that is removed ends before it answers.
EtcdAccess Without(EtcdAccess access, const EtcdView& view, uint64_t id) {
  std::vector<std::string> healthy, silent;
  for (const SeenMember& member : view.members) {
    if (member.info.id == id || member.endpoint.empty()) continue;
    (member.healthy() ? healthy : silent).push_back(member.endpoint);
  }
  access.endpoints = std::move(healthy);
  access.endpoints.insert(access.endpoints.end(), silent.begin(), silent.end());
  return access;
}

Result<> RemoveMember(const Options& options, VerbReport& report, boost::json::object& fields) {
  KEELSON_ASSIGN_OR_RETURN(EtcdAccess access, AccessTo(options));
  // Chosen endpoints are whom to ask, and not the whole cluster.
  access.chosen = false;
  KEELSON_ASSIGN_OR_RETURN(const EtcdView view, LookAtEtcd(access));
  KEELSON_ASSIGN_OR_RETURN(const SeenMember member, FindMember(view, options.member));
  KEELSON_RETURN_IF_ERROR(CheckLost(view, member, options.force));
  const std::string text = etcd::MemberId(member.info.id) + " (" + member.info.name + ")";
  fields["memberId"] = etcd::MemberId(member.info.id);
  fields["name"] = member.info.name;
  fields["dryRun"] = options.dry_run;
  if (options.dry_run) {
    report.out() << "[dryrun] Would remove member " << text << " from etcd\n";
    return {};
  }
  const EtcdAccess others = Without(access, view, member.info.id);
  if (auto removed = RemoveFromEtcd(others, member.info.id); !removed) {
    return removed.error().Is(Code::kTimeout)
               ? Error(Code::kTimeout, removed.error().message() +
                                           "; where too few members are left to agree, 'nodectl etcd "
                                           "restore' makes a new cluster out of a snapshot")
               : removed.error();
  }
  report.out() << "Member " << text << " is removed from etcd\n";
  const std::unique_ptr<Host> host = NewHost(options.root);
  if (!host->Exists(paths::kAdminConf)) return {};
  if (auto told = PublishEtcdEndpoints(*host, others); !told) {
    report.err() << "nodectl: WARNING: ConfigMap kube-system/keelson-etcd still names the member: "
                 << told.error().message() << "\n";
  }
  return {};
}

}  // namespace

void AddEtcdMembers(CLI::App& parent, Run& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* members = parent.add_subcommand("members", "List the members of the cluster");
  AddEtcdAccess(*members, *options);
  CLI::App* remove = members->add_subcommand("remove", "Remove the member of a machine that is lost");
  remove->fallthrough();
  remove->add_option("member", options->member, "Its name or its id")->required();
  component::FlagAdder{*remove}("-f,--force", options->force,
                                "Also a member that answers, or one that the quorum needs");
  AddEtcdDryRun(*remove, *options);
  // Runs after the subcommand's parsing.
  members->callback([options, remove, &chosen] {
    if (remove->parsed()) {
      chosen = [options](const Settings& settings) {
        return RunReported(settings, "EtcdMemberReport",
                           [&](VerbReport& report, boost::json::object& fields) {
                             return RemoveMember(*options, report, fields);
                           });
      };
    } else {
      chosen = [options](const Settings& settings) { return ShowMembers(*options, settings); };
    }
  });
}

}  // namespace keelson::ctl
