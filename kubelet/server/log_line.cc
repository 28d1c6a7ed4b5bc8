#include "kubelet/server/log_line.h"

#include <time.h>

#include <charconv>

#include "lib/base/text.h"

namespace keelson::kubelet::server {
namespace {

constexpr int64_t kNanos = 1000000000;

std::optional<int> Digits(std::string_view text, size_t at, size_t count) {
  int value = 0;
  if (at + count > text.size()) return std::nullopt;
  for (size_t i = at; i < at + count; ++i) {
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
    value = value * 10 + (text[i] - '0');
  }
  return value;
}

// Seconds east of UTC: "Z" or "+hh:mm".
std::optional<int> Offset(std::string_view text) {
  if (text == "Z" || text == "z") return 0;
  if (text.size() != 6 || text[3] != ':' || (text[0] != '+' && text[0] != '-')) return std::nullopt;
  auto hours = Digits(text, 1, 2), minutes = Digits(text, 4, 2);
  if (!hours || !minutes) return std::nullopt;
  return (text[0] == '-' ? -1 : 1) * (*hours * 3600 + *minutes * 60);
}

Result<std::optional<int64_t>> Integer(const http::Query& query, const char* name) {
  std::string_view text = query.Get(name);
  if (text.empty()) return std::optional<int64_t>();
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return Error(Code::kBadRequest, R"({"message": "Unable to decode query."})");
  }
  return std::optional<int64_t>(value);
}

// Anything but false and 0 is true, also nothing.
bool Switch(const http::Query& query, const char* name) {
  const std::string_view text = query.Get(name);
  return query.Has(name) && text != "0" && !EqualsIgnoreCase(text, "false");
}

}  // namespace

std::optional<LogLine> ParseLogLine(std::string_view line) {
  LogLine out;
  size_t stream = line.find(' ');
  if (stream == std::string_view::npos) return std::nullopt;
  size_t tag = line.find(' ', stream + 1);
  if (tag == std::string_view::npos) return std::nullopt;
  size_t text = line.find(' ', tag + 1);
  if (text == std::string_view::npos) return std::nullopt;
  out.timestamp = line.substr(0, stream);
  std::string_view name = line.substr(stream + 1, tag - stream - 1);
  if (name != "stdout" && name != "stderr") return std::nullopt;
  out.is_stderr = name == "stderr";
  std::string_view tags = line.substr(tag + 1, text - tag - 1);
  out.partial = tags.substr(0, tags.find(':')) == "P";
  out.text = line.substr(text + 1);
  return out;
}

std::optional<int64_t> ParseRfc3339(std::string_view text) {
  auto year = Digits(text, 0, 4), month = Digits(text, 5, 2), day = Digits(text, 8, 2);
  auto hour = Digits(text, 11, 2), minute = Digits(text, 14, 2), second = Digits(text, 17, 2);
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  if (text[4] != '-' || text[7] != '-' || (text[10] != 'T' && text[10] != 't') || text[13] != ':' ||
      text[16] != ':') {
    return std::nullopt;
  }
  std::string_view rest = text.substr(19);
  int64_t nanos = 0;
  if (!rest.empty() && rest[0] == '.') {
    int64_t unit = kNanos / 10;
    size_t i = 1;
    for (; i < rest.size() && rest[i] >= '0' && rest[i] <= '9'; ++i, unit /= 10) {
      nanos += (rest[i] - '0') * unit;
    }
    if (i == 1) return std::nullopt;
    rest.remove_prefix(i);
  }
  auto offset = Offset(rest);
  if (!offset || *month < 1 || *month > 12 || *day < 1 || *day > 31) return std::nullopt;
  tm utc{};
  utc.tm_year = *year - 1900;
  utc.tm_mon = *month - 1;
  utc.tm_mday = *day;
  utc.tm_hour = *hour;
  utc.tm_min = *minute;
  utc.tm_sec = *second;
  int64_t seconds = timegm(&utc) - *offset;
  // Years that do not fit into 64 bits of nanoseconds become the last one that does.
  if (seconds > INT64_MAX / kNanos - 1) return INT64_MAX;
  if (seconds < INT64_MIN / kNanos + 1) return INT64_MIN;
  return seconds * kNanos + nanos;
}

std::string FixedTimestamp(std::string_view rfc3339) {
  size_t seconds_end = 19;
  if (rfc3339.size() < seconds_end + 1) return std::string(rfc3339);
  size_t at = seconds_end;
  std::string fraction;
  if (rfc3339[at] == '.') {
    for (++at; at < rfc3339.size() && rfc3339[at] >= '0' && rfc3339[at] <= '9'; ++at) fraction += rfc3339[at];
  }
  fraction.resize(9, '0');
  return std::string(rfc3339.substr(0, seconds_end)) + "." + fraction + std::string(rfc3339.substr(at));
}

Result<LogOptions> ParseLogOptions(const http::Query& query, int64_t now_nanoseconds) {
  LogOptions options;
  options.follow = Switch(query, "follow");
  options.previous = Switch(query, "previous");
  options.timestamps = Switch(query, "timestamps");
  KEELSON_ASSIGN_OR_RETURN(options.limit_bytes, Integer(query, "limitBytes"));
  // "tail" is the older name of tailLines.
  std::string_view tail = query.Get("tail");
  if (!tail.empty() && tail != "all") {
    KEELSON_ASSIGN_OR_RETURN(options.tail_lines, Integer(query, "tail"));
  } else if (tail.empty()) {
    KEELSON_ASSIGN_OR_RETURN(options.tail_lines, Integer(query, "tailLines"));
  }
  KEELSON_ASSIGN_OR_RETURN(std::optional<int64_t> seconds, Integer(query, "sinceSeconds"));
  std::string_view time = query.Get("sinceTime");
  if (!time.empty()) {
    options.since = ParseRfc3339(time);
    if (!options.since) return Error(Code::kBadRequest, R"({"message": "Unable to decode query."})");
  }
  Error invalid(Code::kInvalid, R"({"message": "Invalid request."})");
  if (seconds && (*seconds < 1 || options.since)) return invalid;
  if (options.tail_lines && *options.tail_lines < 0) return invalid;
  if (options.limit_bytes && *options.limit_bytes < 1) return invalid;
  if (seconds) {
    options.since = *seconds > now_nanoseconds / kNanos ? 0 : now_nanoseconds - *seconds * kNanos;
  }
  std::string_view stream = query.Get("stream");
  if (!stream.empty() && stream != "All" && stream != "Stdout" && stream != "Stderr") return invalid;
  if (options.tail_lines && !stream.empty() && stream != "All") return invalid;  // lines are not told apart
  if (stream == "Stdout") options.err = false;
  if (stream == "Stderr") options.out = false;
  return options;
}

}  // namespace keelson::kubelet::server
