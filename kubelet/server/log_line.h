// Lines of a CRI log:
//   2026-01-01T00:00:00.123456789Z stdout F text
// The tag is F for a full line and P for a part of one that goes on in the next entry of its stream.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/error.h"
#include "lib/http/message.h"

namespace keelson::kubelet::server {

struct LogLine {
  std::string_view timestamp;  // as written
  bool is_stderr = false;
  bool partial = false;
  std::string_view text;  // without the newline
};

// Parses a line without its newline; nullopt: malformed.
std::optional<LogLine> ParseLogLine(std::string_view line);

// RFC 3339 to nanoseconds since the epoch; nullopt: malformed.
std::optional<int64_t> ParseRfc3339(std::string_view text);
// With nine digits of fraction, as kubectl shows it.
std::string FixedTimestamp(std::string_view rfc3339);

struct LogOptions {
  bool follow = false, previous = false, timestamps = false;
  std::optional<int64_t> tail_lines, limit_bytes;
  std::optional<int64_t> since;  // nanoseconds since the epoch
  bool out = true, err = true;
};

// Parses the query of a containerLogs request. kBadRequest: malformed; kInvalid: breaks a rule of PodLogOptions.
Result<LogOptions> ParseLogOptions(const http::Query& query, int64_t now_nanoseconds);

}  // namespace keelson::kubelet::server
