#include "ctl/cri/log_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "lib/api/duration.h"
#include "lib/base/fd.h"
#include "lib/base/file.h"

namespace keelson::ctl {
namespace {

constexpr int64_t kNanos = 1000000000;
constexpr int kFollowMillis = 1000;  // how often to look without a notice of inotify
constexpr size_t kBlock = 64 << 10;

// "2026-01-02T03:04:05", then a fraction, then a zone; without a zone it is local time. nullopt: something else.
std::optional<int64_t> ParseTime(std::string_view text) {
  tm parts{};
  const std::string copy(text);
  const char* rest = ::strptime(copy.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (!rest) return std::nullopt;
  int64_t nanos = 0;
  if (*rest == '.') {
    int64_t unit = kNanos / 10;
    for (++rest; *rest >= '0' && *rest <= '9'; ++rest, unit /= 10) nanos += (*rest - '0') * unit;
  }
  int64_t seconds = 0;
  if (*rest == '\0') {
    parts.tm_isdst = -1;
    seconds = ::mktime(&parts);
  } else if (*rest == 'Z' && rest[1] == '\0') {
    seconds = ::timegm(&parts);
  } else {
    int hours = 0, minutes = 0;
    char sign = 0, end = 0;
    if (std::sscanf(rest, "%c%2d:%2d%c", &sign, &hours, &minutes, &end) != 3 ||
        (sign != '+' && sign != '-')) {
      return std::nullopt;
    }
    const int64_t offset = hours * 3600 + minutes * 60;
    seconds = ::timegm(&parts) - (sign == '-' ? -offset : offset);
  }
  return seconds * kNanos + nanos;
}

// With nine digits of fraction, as kubectl and crictl show it.
std::string FixedTime(std::string_view stamp) {
  const size_t point = stamp.find_first_of(".Zz+-", std::min<size_t>(stamp.size(), 19));
  if (point == std::string_view::npos) return std::string(stamp);
  size_t end = point;
  std::string digits;
  if (stamp[point] == '.') {
    end = std::min(stamp.find_first_not_of("0123456789", point + 1), stamp.size());
    digits = stamp.substr(point + 1, end - point - 1);
  }
  digits.resize(9, '0');
  return std::string(stamp.substr(0, point)) + "." + digits + std::string(stamp.substr(end));
}

// Reads lines of one file after another.
class LogReader {
 public:
  LogReader(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  // False: no complete line now.
  Result<bool> Next(std::string& line) {
    for (;;) {
      const size_t end = buffer_.find('\n', at_);
      if (end != std::string::npos) {
        line = buffer_.substr(at_, end - at_);
        at_ = end + 1;
        return true;
      }
      buffer_.erase(0, at_);
      at_ = 0;
      const size_t old = buffer_.size();
      buffer_.resize(old + kBlock);
      const ssize_t got = ::read(fd_.get(), buffer_.data() + old, kBlock);
      buffer_.resize(old + static_cast<size_t>(std::max<ssize_t>(got, 0)));
      if (got < 0) return ErrnoError("read log file " + path_);
      if (got == 0) return false;
    }
  }
  // Goes on to the file that has taken this one's place, if there is one.
  bool Rotate() {
    struct stat mine {
    }, there{};
    if (::fstat(fd_.get(), &mine) != 0 || ::stat(path_.c_str(), &there) != 0 || mine.st_ino == there.st_ino) {
      return false;
    }
    Result<UniqueFd> next = OpenFile(path_, O_RDONLY);
    if (!next) return false;
    fd_ = *std::move(next);
    buffer_.clear();
    at_ = 0;
    return true;
  }

 private:
  const std::string path_;
  UniqueFd fd_;
  std::string buffer_;
  size_t at_ = 0;
};

}  // namespace

Result<int64_t> ParseSince(const std::string& text, WallTime now) {
  const int64_t stamp = std::chrono::duration_cast<std::chrono::nanoseconds>(now.time_since_epoch()).count();
  if (const Result<int64_t> span = api::ParseGoDuration(text)) return stamp - *span;
  if (const auto time = ParseTime(text)) return *time;
  int64_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error == std::errc() && end == text.data() + text.size() && std::abs(seconds) < INT64_MAX / kNanos) {
    return seconds * kNanos;
  }
  return Error(Code::kInvalid, "--since: \"" + text + "\" is neither a time nor a duration");
}

Result<std::optional<LogPrinter::Output>> LogPrinter::Print(std::string_view line) {
  const size_t stream = line.find(' ');
  const size_t tag = stream == std::string_view::npos ? stream : line.find(' ', stream + 1);
  const size_t text = tag == std::string_view::npos ? tag : line.find(' ', tag + 1);
  if (text == std::string_view::npos) {
    return Error(Code::kInvalid, "\"" + std::string(line.substr(0, 100)) + "\" is not a line of a CRI log");
  }
  const std::string_view stamp = line.substr(0, stream), name = line.substr(stream + 1, tag - stream - 1),
                         tags = line.substr(tag + 1, text - tag - 1);
  const bool goes_on = in_line_;
  const bool partial = tags.substr(0, tags.find(':')) == "P";
  if (choice_.since) {
    const auto time = ParseTime(stamp);
    if (time && *time < *choice_.since) return std::optional<Output>();
  }
  in_line_ = partial;
  Output out{name == "stderr", ""};
  if (choice_.timestamps && !goes_on) out.text = FixedTime(stamp) + " ";
  out.text += line.substr(text + 1);
  if (!partial) out.text += "\n";
  if (left_ >= 0) {
    out.text.resize(std::min(out.text.size(), static_cast<size_t>(left_)));
    left_ -= static_cast<int64_t>(out.text.size());
  }
  return std::optional<Output>(std::move(out));
}

Result<int64_t> TailOffset(int fd, int64_t lines) {
  int64_t end = ::lseek(fd, 0, SEEK_END);
  if (end < 0) return ErrnoError("seek log file");
  if (lines <= 0) return end;
  std::string block;
  int64_t newlines = 0;
  for (int64_t at = end; at > 0;) {
    const auto size = static_cast<size_t>(std::min<int64_t>(at, kBlock));
    at -= static_cast<int64_t>(size);
    block.resize(size);
    if (::pread(fd, block.data(), size, at) != static_cast<ssize_t>(size)) return ErrnoError("read log file");
    for (size_t i = size; i-- > 0;) {
      // A newline at the very end ends the last line and begins none.
      if (block[i] != '\n' || at + static_cast<int64_t>(i) + 1 == end) continue;
      if (++newlines == lines) return at + static_cast<int64_t>(i) + 1;
    }
  }
  return 0;
}

Result<> PrintLog(const std::string& path, const LogChoice& choice,
                  const std::function<void(const LogPrinter::Output&)>& print,
                  const std::function<bool()>& alive) {
  KEELSON_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(path, O_RDONLY));
  if (choice.tail >= 0) {
    KEELSON_ASSIGN_OR_RETURN(const int64_t start, TailOffset(fd.get(), choice.tail));
    if (::lseek(fd.get(), start, SEEK_SET) < 0) return ErrnoError("seek log file");
  } else if (::lseek(fd.get(), 0, SEEK_SET) < 0) {
    return ErrnoError("seek log file");
  }
  const UniqueFd notices(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  ::inotify_add_watch(notices.get(), folder.empty() ? "." : folder.c_str(),
                      IN_MODIFY | IN_CREATE | IN_MOVED_TO);
  LogReader reader(path, std::move(fd));
  LogPrinter printer(choice);
  std::string line;
  bool last_round = false;
  while (!printer.done()) {
    KEELSON_ASSIGN_OR_RETURN(const bool found, reader.Next(line));
    if (found) {
      KEELSON_ASSIGN_OR_RETURN(const auto output, printer.Print(line));
      if (output) print(*output);
      continue;
    }
    if (reader.Rotate()) continue;
    if (last_round) return {};
    last_round = !alive();  // what it wrote before its end is read in one more round
    if (last_round) continue;
    pollfd wait{notices.get(), POLLIN, 0};
    ::poll(&wait, 1, kFollowMillis);
    char drained[4096];
    while (::read(notices.get(), drained, sizeof(drained)) > 0) {
    }
  }
  return {};
}

}  // namespace keelson::ctl
