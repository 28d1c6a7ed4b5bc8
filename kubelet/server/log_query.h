// What /logs/?query= asks of the node's services and log files (KEP-2258).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/http/message.h"

namespace keelson::kubelet::server {

struct LogQuery {
  std::vector<std::string> services, files;  // what has a slash is a file
  std::optional<WallTime> since, until;
  std::optional<int64_t> tail_lines, boot;  // boot: 0 this one, -1 the one before
  std::string pattern;

  bool HasOptions() const { return since || until || tail_lines || boot || !pattern.empty(); }
};

// nullopt: nothing is asked. kBadRequest: it cannot be read.
Result<std::optional<LogQuery>> ParseLogQuery(const http::Query& query);
// kNotAcceptable: it can, and makes no sense.
Result<> CheckLogQuery(const LogQuery& query);

// What journalctl(1) is run with for these of the services.
std::vector<std::string> JournalCommand(const LogQuery& query, const std::vector<std::string>& services);

}  // namespace keelson::kubelet::server
