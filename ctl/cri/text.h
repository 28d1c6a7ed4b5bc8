// Numbers, ages, ids and tables as crictl prints them.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/clock.h"

namespace keelson::ctl {

// "Less than a second", "17 seconds", "About a minute", "3 weeks": docker/go-units' HumanDuration.
std::string HumanDuration(std::chrono::nanoseconds time);
// The age of a CRI time stamp: "17 seconds ago".
std::string Ago(int64_t created_nanos, WallTime now);
// Decimal units: "1.15MB". `precision`: how many digits count; 4, and 3 for sizes of images.
std::string HumanSize(double bytes, int precision = 4);

// The first 13 characters, without `prefix`.
std::string TruncatedId(std::string_view id, std::string_view prefix = "");
// An image as `ps` shows it: the digest without its algorithm and truncated; names stay as they are.
std::string TruncatedImage(const std::string& image);

// RFC 3339 with as many digits of fraction as count, in local time.
std::string LocalTime(int64_t nanos);
inline constexpr char kNoTime[] = "0001-01-01T00:00:00Z";

// Columns of at least 20 characters, three spaces apart; the last one is as it is (Go's tabwriter).
std::string CriTable(const std::vector<std::vector<std::string>>& rows);

// "Labels:" and a line for each; empty when there are none.
std::string KeyValueLines(std::string_view heading, const std::map<std::string, std::string>& items);

}  // namespace keelson::ctl
