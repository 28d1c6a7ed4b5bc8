#include "ctl/cri/text.h"

#include <time.h>

#include <algorithm>
#include <cstdio>

namespace keelson::ctl {
namespace {

constexpr size_t kIdLength = 13, kMinWidth = 20, kPadding = 3;
constexpr int64_t kNanos = 1000000000;

std::string Count(int64_t number, const char* unit) { return std::to_string(number) + " " + unit; }

size_t Runes(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

std::string HumanDuration(std::chrono::nanoseconds time) {
  const int64_t seconds = time.count() / kNanos;
  if (seconds < 1) return "Less than a second";
  if (seconds == 1) return "1 second";
  if (seconds < 60) return Count(seconds, "seconds");
  const int64_t minutes = seconds / 60;
  if (minutes == 1) return "About a minute";
  if (minutes < 60) return Count(minutes, "minutes");
  const int64_t hours = (seconds + 1800) / 3600;  // rounded
  if (hours == 1) return "About an hour";
  if (hours < 48) return Count(hours, "hours");
  if (hours < 24 * 14) return Count(hours / 24, "days");
  if (hours < 24 * 60) return Count(hours / 24 / 7, "weeks");
  if (hours < 24 * 365 * 2) return Count(hours / 24 / 30, "months");
  return Count(seconds / 3600 / 24 / 365, "years");
}

std::string Ago(int64_t created_nanos, WallTime now) {
  const auto since = std::chrono::duration_cast<std::chrono::nanoseconds>(now.time_since_epoch()) -
                     std::chrono::nanoseconds(created_nanos);
  return HumanDuration(since) + " ago";
}

std::string HumanSize(double bytes, int precision) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"};
  size_t unit = 0;
  for (; bytes >= 1000 && unit + 1 < std::size(kUnits); ++unit) bytes /= 1000;
  char text[64];
  std::snprintf(text, sizeof(text), "%.*g%s", precision, bytes, kUnits[unit]);
  return text;
}

std::string TruncatedId(std::string_view id, std::string_view prefix) {
  if (id.starts_with(prefix)) id.remove_prefix(prefix.size());
  return std::string(id.substr(0, kIdLength));
}

std::string TruncatedImage(const std::string& image) {
  constexpr std::string_view kAlgorithms[] = {"sha256:", "sha384:", "sha512:"};
  for (const std::string_view algorithm : kAlgorithms) {
    const size_t digits = algorithm == "sha256:" ? 64 : algorithm == "sha384:" ? 96 : 128;
    if (image.starts_with(algorithm) && image.size() == algorithm.size() + digits &&
        image.find_first_not_of("0123456789abcdef", algorithm.size()) == std::string::npos) {
      return TruncatedId(image, algorithm);
    }
  }
  return image;
}

std::string LocalTime(int64_t nanos) {
  int64_t seconds = nanos / kNanos, fraction = nanos % kNanos;
  if (fraction < 0) {
    fraction += kNanos;
    --seconds;
  }
  const time_t stamp = static_cast<time_t>(seconds);
  tm local{};
  if (!::localtime_r(&stamp, &local)) return kNoTime;
  char date[96];
  std::snprintf(date, sizeof(date), "%04d-%02d-%02dT%02d:%02d:%02d", local.tm_year + 1900, local.tm_mon + 1,
                local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec);
  std::string out = date;
  if (fraction > 0) {
    char digits[16];
    std::snprintf(digits, sizeof(digits), ".%09d", static_cast<int>(fraction));
    out += digits;
    out.erase(out.find_last_not_of('0') + 1);
  }
  if (local.tm_gmtoff == 0) return out + "Z";
  const int64_t offset = std::abs(local.tm_gmtoff) / 60;
  char zone[32];
  std::snprintf(zone, sizeof(zone), "%c%02d:%02d", local.tm_gmtoff < 0 ? '-' : '+',
                static_cast<int>(offset / 60 % 100), static_cast<int>(offset % 60));
  return out + zone;
}

std::string CriTable(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), kMinWidth);
    for (size_t i = 0; i + 1 < row.size(); ++i) widths[i] = std::max(widths[i], Runes(row[i]) + kPadding);
  }
  std::string out;
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      out += row[i];
      if (i + 1 < row.size()) out.append(widths[i] - Runes(row[i]), ' ');
    }
    out += "\n";
  }
  return out;
}

std::string KeyValueLines(std::string_view heading, const std::map<std::string, std::string>& items) {
  if (items.empty()) return "";
  std::string out = std::string(heading) + ":\n";
  for (const auto& [key, value] : items) out.append("\t").append(key).append(" -> ").append(value) += "\n";
  return out;
}

}  // namespace keelson::ctl
