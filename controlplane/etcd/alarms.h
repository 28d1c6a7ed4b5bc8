// Follows the alarms of an etcd, and how much room its database has: at its quota etcd refuses all writes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "controlplane/etcd/client.h"
#include "lib/base/clock.h"
#include "lib/etcd/member.h"

namespace keelson::etcd {

// What to tell of an etcd, as an Event has it.
struct AlarmNews {
  bool warning = true;
  std::string reason;  // EtcdAlarmRaised, EtcdAlarmEnded, EtcdNearQuota
  std::string message;
};

// What is new since the last call. Pure, but for what it remembers.
class AlarmJudge {
 public:
  // `quota`: bytes; 0: not known.
  explicit AlarmJudge(int64_t quota) : quota_(quota) {}
  std::vector<AlarmNews> Look(const std::vector<Alarm>& alarms, int64_t db_size);

 private:
  const int64_t quota_;
  std::set<std::pair<uint64_t, std::string>> raised_;
  bool near_quota_ = false;
};

// One sentence for an alarm.
std::string AlarmText(const Alarm& alarm);

class AlarmFollower {
 public:
  // `client`: how etcd is reached; its first endpoint that answers is asked.
  AlarmFollower(ClientOptions client, int64_t quota) : client_(std::move(client)), judge_(quota) {}

  // The alarms at present. Thread safe. kUnavailable: no endpoint answers.
  Result<std::vector<Alarm>> Alarms() const;
  // Looks every 30 seconds until `stop`, and calls `tell` for what is new.
  void Run(const std::function<void(const AlarmNews&)>& tell, Clock& clock, std::stop_token stop);

 private:
  Result<std::pair<std::vector<Alarm>, int64_t>> Ask() const;  // and the size of the database

  const ClientOptions client_;
  AlarmJudge judge_;
};

}  // namespace keelson::etcd
