#include "controlplane/etcd/alarms.h"

#include <fmt/format.h>

#include "lib/base/log.h"
#include "lib/base/mutex.h"

namespace keelson::etcd {
namespace {

constexpr std::chrono::seconds kPeriod{30};
constexpr std::chrono::seconds kPatience{2};
// Told once above the first, and again only after it was below the second. Per cent of the quota.
constexpr int64_t kNear = 80, kFarAgain = 70;

}  // namespace

std::string AlarmText(const Alarm& alarm) {
  const std::string member = "etcd member " + MemberId(alarm.member_id);
  if (alarm.kind == "NOSPACE") {
    return member +
           " has reached its quota (NOSPACE): etcd refuses all writes until it is defragmented and the alarm "
           "is "
           "ended";
  }
  if (alarm.kind == "CORRUPT") return "the data of " + member + " differs from its peers' (CORRUPT)";
  return member + " has raised the alarm " + alarm.kind;
}

std::vector<AlarmNews> AlarmJudge::Look(const std::vector<Alarm>& alarms, int64_t db_size) {
  std::vector<AlarmNews> news;
  std::set<std::pair<uint64_t, std::string>> now;
  for (const Alarm& alarm : alarms) {
    now.emplace(alarm.member_id, alarm.kind);
    if (!raised_.contains({alarm.member_id, alarm.kind})) {
      news.push_back({true, "EtcdAlarmRaised", AlarmText(alarm)});
    }
  }
  for (const auto& [member, kind] : raised_) {
    if (now.contains({member, kind})) continue;
    news.push_back({false, "EtcdAlarmEnded",
                    fmt::format("the alarm {} of etcd member {} has ended", kind, MemberId(member))});
  }
  raised_ = std::move(now);
  if (quota_ > 0 && db_size > quota_ / 100 * kNear && !near_quota_) {
    near_quota_ = true;
    news.push_back(
        {true, "EtcdNearQuota",
         fmt::format("etcd's database has {} of {} bytes: defragment it, or store less; at the quota "
                     "etcd refuses all writes",
                     db_size, quota_)});
  }
  if (quota_ > 0 && db_size < quota_ / 100 * kFarAgain) near_quota_ = false;
  return news;
}

Result<std::pair<std::vector<Alarm>, int64_t>> AlarmFollower::Ask() const {
  Error last(Code::kUnavailable, "etcd has no endpoints");
  for (const std::string& endpoint : client_.endpoints) {
    Member member(endpoint, {client_.ca_pem, client_.certificate_pem, client_.key_pem, kPatience});
    Result<std::vector<Alarm>> alarms = member.Alarms();
    Result<MemberStatus> status = alarms ? member.Status() : Result<MemberStatus>(alarms.error());
    if (status) return std::pair(std::move(*alarms), status->db_size);
    last = status.error();
  }
  return last;
}

Result<std::vector<Alarm>> AlarmFollower::Alarms() const {
  KEELSON_ASSIGN_OR_RETURN(auto asked, Ask());
  return std::move(asked.first);
}

void AlarmFollower::Run(const std::function<void(const AlarmNews&)>& tell, Clock& clock,
                        std::stop_token stop) {
  Mutex mutex;
  CondVar wake;
  std::stop_callback on_stop(stop, [&] {
    MutexLock lock(mutex);
    wake.notify_all();
  });
  while (!stop.stop_requested()) {
    // Health checks report an etcd that does not answer.
    if (const auto asked = Ask()) {
      for (const AlarmNews& one : judge_.Look(asked->first, asked->second)) tell(one);
    }
    const SteadyTime next = clock.SteadyNow() + kPeriod;
    MutexLock lock(mutex);
    while (!stop.stop_requested() && clock.SteadyNow() < next) clock.WaitUntil(mutex, wake, next);
  }
}

}  // namespace keelson::etcd
