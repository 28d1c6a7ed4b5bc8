#include "ctl/etcd/plan.h"

#include <time.h>

#include <algorithm>

#include <fmt/format.h>

namespace keelson::ctl {
namespace {

constexpr std::string_view kPrefix = "keelson-etcd-", kSuffix = ".db", kPart = ".part";
constexpr size_t kStampSize = std::string_view("20260131T235959Z").size();

std::string Title(const SeenMember& member) {
  return member.info.name.empty() ? etcd::MemberId(member.info.id) : member.info.name;
}

bool IsSnapshot(std::string_view name) {
  return name.size() == kPrefix.size() + kStampSize + kSuffix.size() && name.starts_with(kPrefix) &&
         name.ends_with(kSuffix);
}

bool HasPeerUrl(const etcd::MemberInfo& member, const std::string& url) {
  return std::find(member.peer_urls.begin(), member.peer_urls.end(), url) != member.peer_urls.end();
}

}  // namespace

std::string FixOf(const etcd::Alarm& alarm) {
  const std::string id = etcd::MemberId(alarm.member_id);
  if (alarm.kind == "NOSPACE") {
    return "member " + id +
           " has reached its quota, and etcd takes no writes: 'nodectl etcd defrag --disarm' frees space and "
           "ends the alarm";
  }
  if (alarm.kind == "CORRUPT") {
    return "the data of member " + id +
           " differs from its peers': reset its machine and join it again, or restore a snapshot";
  }
  return "member " + id + " has raised " + alarm.kind;
}

Result<std::vector<std::string>> PlanDefragment(const EtcdView& view) {
  std::vector<std::string> out;
  std::string leader;
  for (const SeenMember& member : view.members) {
    if (!member.healthy()) {
      return Error(
          Code::kUnavailable,
          fmt::format("member {} is not healthy ({}), and one more that does not answer while it is "
                      "defragmented may cost the quorum: bring it back or remove it first, or choose "
                      "members by --endpoints",
                      Title(member), member.error.empty() ? "no leader" : member.error));
    }
    if (member.leads()) {
      leader = member.endpoint;
    } else {
      out.push_back(member.endpoint);
    }
  }
  if (!leader.empty()) out.push_back(leader);
  return out;
}

Result<SeenMember> FindMember(const EtcdView& view, const std::string& name_or_id) {
  std::vector<const SeenMember*> named;
  std::string known;
  for (const SeenMember& member : view.members) {
    const std::string id = etcd::MemberId(member.info.id);
    if (id == name_or_id) return member;
    if (member.info.name == name_or_id) named.push_back(&member);
    known += (known.empty() ? "" : ", ") + id + (member.info.name.empty() ? "" : " " + member.info.name);
  }
  if (named.size() == 1) return *named[0];
  if (named.empty()) {
    return Error(Code::kNotFound, "etcd has no member " + name_or_id + "; it has: " + known);
  }
  return Error(Code::kInvalid,
               fmt::format("{} members have the name {}: give an id", named.size(), name_or_id));
}

Result<> CheckLost(const EtcdView& view, const SeenMember& member, bool force) {
  if (view.members.size() == 1) {
    return Error(Code::kInvalid, "member " + Title(member) +
                                     " is the last one: the cluster ends with it, by 'nodectl reset'");
  }
  if (force) return {};
  if (member.status) {
    return Error(Code::kConflict, "member " + Title(member) +
                                      " answers: 'nodectl reset' on its machine takes it out and stops it, "
                                      "and --force removes it all the same");
  }
  if (auto kept = CheckRemoval(view, member.info.id); !kept) {
    return Error(kept.error().code(), kept.error().message() + "; bring members back first, or give --force");
  }
  return {};
}

Result<> CheckRemoval(const EtcdView& view, uint64_t id) {
  size_t voters = 0, healthy = 0;
  bool votes = false;
  for (const SeenMember& member : view.members) {
    if (member.info.learner) continue;
    if (member.info.id == id) {
      votes = true;
      continue;
    }
    ++voters;
    if (member.healthy()) ++healthy;
  }
  if (!votes || voters == 0) return {};
  const size_t quorum = voters / 2 + 1;
  if (healthy >= quorum) return {};
  return Error(Code::kUnavailable, fmt::format("without this member etcd would lose its quorum: {} of the {} "
                                               "others are healthy, and {} are needed",
                                               healthy, voters, quorum));
}

Result<> CheckVersions(const EtcdView& view, const Version& own) {
  const auto text = [](const Version& version) {
    return std::to_string(version.major) + "." + std::to_string(version.minor);
  };
  std::optional<Version> oldest;
  std::string oldest_name;
  for (const SeenMember& member : view.members) {
    if (!member.status) continue;
    KEELSON_ASSIGN_OR_RETURN(const Version version, ParseVersion(member.status->version));
    if (oldest && *oldest <= version) continue;
    oldest = version;
    oldest_name = member.info.name;
  }
  if (!oldest) return {};
  const auto minors = [](const Version& version) { return version.major * 1000 + version.minor; };
  if (minors(own) < minors(*oldest)) {
    return Error(Code::kInvalid, "etcd on this machine is " + text(own) + ", and the cluster's is " +
                                     text(*oldest) + ": install etcd " + text(*oldest) +
                                     " on this machine first");
  }
  if (minors(own) > minors(*oldest) + 1) {
    return Error(Code::kInvalid, "etcd on this machine is " + text(own) + ", and that of member " +
                                     oldest_name + " is " + text(*oldest) +
                                     ": members may be one minor version apart; upgrade that member first");
  }
  return {};
}

JoinStep PlanJoin(const std::vector<etcd::MemberInfo>& members, const std::string& peer_url, bool has_data) {
  for (const etcd::MemberInfo& member : members) {
    if (!HasPeerUrl(member, peer_url)) continue;
    if (member.started() && !has_data) return {JoinStep::Do::kReplace, member.id};
    const bool done = member.started() && !member.learner;
    return {done ? JoinStep::Do::kNothing : JoinStep::Do::kStart, member.id};
  }
  return {JoinStep::Do::kAdd, 0};
}

std::string InitialCluster(const std::vector<etcd::MemberInfo>& members, const std::string& name,
                           const std::string& peer_url) {
  std::string out;
  for (const etcd::MemberInfo& member : members) {
    const bool own = HasPeerUrl(member, peer_url);
    const std::string title = own ? name : member.started() ? member.name : etcd::MemberId(member.id);
    for (const std::string& url : member.peer_urls) {
      out += (out.empty() ? "" : ",") + title + "=" + url;
    }
  }
  return out;
}

std::vector<std::string> ClientUrls(const std::vector<etcd::MemberInfo>& members,
                                    const std::string& without_peer_url) {
  std::vector<std::string> out;
  for (const etcd::MemberInfo& member : members) {
    if (member.learner || HasPeerUrl(member, without_peer_url)) continue;
    // A socket in a directory is no matter of other machines.
    for (const std::string& url : member.client_urls) {
      if (url.starts_with("http")) out.push_back(url);
    }
  }
  return out;
}

std::string SnapshotName(int64_t unix_seconds) {
  const time_t time = unix_seconds;
  tm utc{};
  ::gmtime_r(&time, &utc);
  char stamp[kStampSize + 1];
  ::strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", &utc);
  return std::string(kPrefix) + stamp + std::string(kSuffix);
}

std::vector<std::string> Outdated(const std::vector<std::string>& names, size_t keep) {
  std::vector<std::string> out;
  std::copy_if(names.begin(), names.end(), std::back_inserter(out), IsSnapshot);
  std::sort(out.begin(), out.end());
  out.resize(out.size() - std::min(keep, out.size()));
  return out;
}

std::vector<std::string> Leftovers(const std::vector<std::string>& names) {
  std::vector<std::string> out;
  for (const std::string& name : names) {
    const std::string_view text = name;
    if (text.ends_with(kPart) && IsSnapshot(text.substr(0, text.size() - kPart.size()))) out.push_back(name);
  }
  return out;
}

}  // namespace keelson::ctl
