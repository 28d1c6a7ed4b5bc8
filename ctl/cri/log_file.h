// A container's log file, in the CRI's format:
//   2026-01-01T00:00:00.123456789Z stdout F text
// The tag is F for a full line and P for a part of one.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/clock.h"
#include "lib/base/error.h"

namespace keelson::ctl {

struct LogChoice {
  bool timestamps = false;
  int64_t tail = -1, limit_bytes = -1;  // negative: all
  std::optional<int64_t> since;         // nanoseconds since 1970
};

// RFC 3339, a date and time without a zone (local time), seconds since 1970, or a duration before `now`, such as 42m.
Result<int64_t> ParseSince(const std::string& text, WallTime now);

// Turns lines of the file into what is printed.
class LogPrinter {
 public:
  explicit LogPrinter(const LogChoice& choice) : choice_(choice), left_(choice.limit_bytes) {}
  struct Output {
    bool is_stderr = false;
    std::string text;
  };
  // `line` is without its newline; nullopt: nothing to print. kInvalid: not such a line.
  Result<std::optional<Output>> Print(std::string_view line);
  bool done() const { return left_ == 0; }  // the limit is reached

 private:
  const LogChoice choice_;
  int64_t left_;
  bool in_line_ = false;
};

// Where the last `lines` lines of the open file begin.
Result<int64_t> TailOffset(int fd, int64_t lines);

// Prints the file. `alive` is asked when all has been read: true waits for more, across rotations.
Result<> PrintLog(const std::string& path, const LogChoice& choice,
                  const std::function<void(const LogPrinter::Output&)>& print,
                  const std::function<bool()>& alive);

}  // namespace keelson::ctl
