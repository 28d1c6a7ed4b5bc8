// Queries of /logs/?query= for logs of node services and files (KEP-2258).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/http/message.h"

namespace keelson::kubelet::server {

struct LogQuery {
  std::vector<std::string> services, files;  // names with a slash are files
  std::optional<WallTime> since, until;
  std::optional<int64_t> tail_lines, boot;  // boot: 0: the current one, -1: the previous one
  std::string pattern;

  bool HasOptions() const { return since || until || tail_lines || boot || !pattern.empty(); }
};

// nullopt: no query. kBadRequest: malformed.
Result<std::optional<LogQuery>> ParseLogQuery(const http::Query& query);
// kNotAcceptable: parameters that contradict each other.
Result<> CheckLogQuery(const LogQuery& query);

// The journalctl(1) command line for these services.
std::vector<std::string> JournalCommand(const LogQuery& query, const std::vector<std::string>& services);

}  // namespace keelson::kubelet::server
