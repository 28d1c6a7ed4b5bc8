#include "ctl/etcd/report.h"

#include <boost/json.hpp>

#include <fmt/format.h>

#include "ctl/output.h"
#include "lib/base/text.h"

namespace keelson::ctl {

namespace json = boost::json;

namespace {

const char* YesNo(bool yes) { return yes ? "true" : "false"; }

json::array Texts(const std::vector<std::string>& values) {
  json::array out;
  for (const std::string& value : values) out.emplace_back(value);
  return out;
}

std::string Title(const SeenMember& member) {
  if (!member.info.name.empty()) return member.info.name;
  return member.info.id != 0 ? etcd::MemberId(member.info.id) : member.endpoint;
}

json::object MemberDocument(const etcd::MemberInfo& member) {
  json::object out;
  out["id"] = etcd::MemberId(member.id);
  out["name"] = member.name;
  out["started"] = member.started();
  out["learner"] = member.learner;
  out["peerURLs"] = Texts(member.peer_urls);
  out["clientURLs"] = Texts(member.client_urls);
  return out;
}

}  // namespace

std::string SizeText(int64_t bytes) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  auto size = static_cast<double>(bytes);
  size_t unit = 0;
  while (size >= 1000 && unit + 1 < std::size(kUnits)) {
    size /= 1000;
    ++unit;
  }
  return unit == 0 || size >= 10 ? fmt::format("{:.0f} {}", size, kUnits[unit])
                                 : fmt::format("{:.1f} {}", size, kUnits[unit]);
}

std::string MembersTable(const std::vector<etcd::MemberInfo>& members) {
  std::vector<std::vector<std::string>> rows = {
      {"ID", "STATUS", "NAME", "PEER ADDRS", "CLIENT ADDRS", "IS LEARNER"}};
  for (const etcd::MemberInfo& member : members) {
    rows.push_back({etcd::MemberId(member.id), member.started() ? "started" : "unstarted", member.name,
                    Join(member.peer_urls, ","), Join(member.client_urls, ","), YesNo(member.learner)});
  }
  return TextTable(rows);
}

json::value MembersDocument(const std::vector<etcd::MemberInfo>& members) {
  json::array list;
  for (const etcd::MemberInfo& member : members) list.push_back(MemberDocument(member));
  json::object out;
  out["members"] = std::move(list);
  return out;
}

std::vector<Problem> ProblemsOf(const EtcdView& view) {
  std::vector<Problem> out;
  for (const SeenMember& member : view.members) {
    if (!member.status) {
      out.push_back({"MemberUnreachable", "member " + Title(member) + ": " + member.error});
    } else if (member.status->leader == 0) {
      out.push_back({"NoLeader", "member " + Title(member) +
                                     " has no leader: more than half of the voting members have to run and "
                                     "reach each other"});
    } else if (member.info.learner) {
      out.push_back({"Learner", "member " + Title(member) +
                                    " has no vote yet: 'nodectl join' of its machine has not ended"});
    }
  }
  for (const etcd::Alarm& alarm : view.alarms) out.push_back({alarm.kind, FixOf(alarm)});
  return out;
}

std::string StatusTable(const EtcdView& view) {
  std::vector<std::vector<std::string>> rows = {{"ENDPOINT", "ID", "NAME", "VERSION", "DB SIZE", "IN USE",
                                                 "REVISION", "IS LEADER", "IS LEARNER", "RAFT TERM",
                                                 "RAFT INDEX", "ERRORS"}};
  for (const SeenMember& member : view.members) {
    const std::string id = member.info.id == 0 ? "" : etcd::MemberId(member.info.id);
    if (!member.status) {
      rows.push_back({member.endpoint, id, member.info.name, "", "", "", "", "", YesNo(member.info.learner),
                      "", "", "does not answer"});
      continue;
    }
    const etcd::MemberStatus& status = *member.status;
    rows.push_back({member.endpoint, id, member.info.name, status.version, SizeText(status.db_size),
                    SizeText(status.db_size_in_use), std::to_string(status.revision), YesNo(member.leads()),
                    YesNo(status.learner), std::to_string(status.raft_term),
                    std::to_string(status.raft_index), Join(status.errors, ",")});
  }
  std::string out = TextTable(rows);
  for (const Problem& problem : ProblemsOf(view)) {
    out += "[" + problem.reason + "] " + problem.message + "\n";
  }
  return out;
}

json::value StatusDocument(const EtcdView& view) {
  json::array members, problems;
  for (const SeenMember& member : view.members) {
    json::object item;
    item["endpoint"] = member.endpoint;
    item["id"] = etcd::MemberId(member.info.id);
    item["name"] = member.info.name;
    item["healthy"] = member.healthy();
    if (member.status) {
      const etcd::MemberStatus& status = *member.status;
      item["clusterID"] = etcd::MemberId(status.cluster_id);
      item["version"] = status.version;
      item["dbSize"] = status.db_size;
      item["dbSizeInUse"] = status.db_size_in_use;
      item["revision"] = status.revision;
      item["leader"] = member.leads();
      item["learner"] = status.learner;
      item["raftTerm"] = status.raft_term;
      item["raftIndex"] = status.raft_index;
      item["raftAppliedIndex"] = status.raft_applied_index;
      item["errors"] = Texts(status.errors);
    } else {
      item["error"] = member.error;
    }
    members.push_back(std::move(item));
  }
  for (const Problem& problem : ProblemsOf(view)) {
    json::object item;
    item["reason"] = problem.reason;
    item["message"] = problem.message;
    problems.push_back(std::move(item));
  }
  json::object out;
  out["members"] = std::move(members);
  out["problems"] = std::move(problems);
  return out;
}

}  // namespace keelson::ctl
