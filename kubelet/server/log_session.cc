#include "kubelet/server/log_session.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "lib/base/file.h"
#include "lib/linux/beneath.h"

namespace keelson::kubelet::server {
namespace {

constexpr size_t kReadSize = 64 << 10;
constexpr size_t kMaxQueued = 1 << 20;  // at the client; then the file waits
constexpr size_t kMaxLine = 1 << 20;    // the runtime cuts lines at 16 KB

// Where the last `lines` lines of a file begin.
off_t TailOffset(int fd, int64_t lines) {
  off_t end = lseek(fd, 0, SEEK_END);
  if (lines == 0) return end;
  char block[8192];
  int64_t seen = 0;
  for (off_t to = end; to > 0;) {
    off_t from = std::max<off_t>(0, to - static_cast<off_t>(sizeof block));
    ssize_t size = pread(fd, block, static_cast<size_t>(to - from), from);
    if (size <= 0) break;
    for (ssize_t i = size - 1; i >= 0; --i) {
      bool last_byte = from + i == end - 1;  // ends the last line rather than one before it
      if (block[i] == '\n' && !last_byte && ++seen == lines) return from + i + 1;
    }
    to = from;
  }
  return 0;
}

// <logs>/<pod>/<container>/<n>.log. Below <logs> nothing is a link: a container that can write there would
// have others read files of the node for it.
UniqueFd OpenLog(const std::string& path) {
  size_t cut = path.size();
  for (int i = 0; i < 3 && cut > 0; ++i) cut = path.rfind('/', cut - 1);
  if (cut == std::string::npos || path[0] != '/') return UniqueFd();
  auto root = OpenFile(path.substr(0, std::max<size_t>(cut, 1)), O_PATH | O_DIRECTORY);
  if (!root) return UniqueFd();
  auto log = linux::OpenWithoutLinks(root->get(), path.substr(cut + 1), O_RDONLY | O_NONBLOCK);
  struct stat info = {};
  if (!log || fstat(log->get(), &info) != 0 || !S_ISREG(info.st_mode)) return UniqueFd();
  return std::move(*log);
}

}  // namespace

LogSession::LogSession(LogOptions options, std::string path, std::shared_ptr<http::ResponseWriter> writer)
    : options_(options),
      path_(std::move(path)),
      writer_(std::move(writer)),
      left_(options.limit_bytes.value_or(INT64_MAX)),
      more_(options.follow) {
  writer_->Start(200, {{"Content-Type", "text/plain; charset=utf-8"}});
}

bool LogSession::Open() {
  if (fd_) return true;
  fd_ = OpenLog(path_);
  if (!fd_) return false;
  if (std::exchange(first_file_, false) && options_.tail_lines) {
    lseek(fd_.get(), TailOffset(fd_.get(), *options_.tail_lines), SEEK_SET);
  }
  return true;
}

// True when the path is another file by now: the runtime writes there, and this one has come to its end.
bool LogSession::SwitchedFile() {
  struct stat ours {
  }, there{};
  if (fstat(fd_.get(), &ours) != 0 || stat(path_.c_str(), &there) != 0) return false;
  if (ours.st_ino != there.st_ino || ours.st_dev != there.st_dev) return true;
  // Truncated and rewritten.
  if (there.st_size < lseek(fd_.get(), 0, SEEK_CUR)) lseek(fd_.get(), 0, SEEK_SET);
  return false;
}

LogSession::State LogSession::Pump() {
  std::string block;
  bool switched = false;
  for (;;) {
    if (writer_->closed()) return State::kDone;
    if (writer_->queued_bytes() > kMaxQueued) return State::kBehind;
    if (!Open()) return more_ ? State::kWaiting : Finish();
    block.resize(kReadSize);
    ssize_t size = read(fd_.get(), block.data(), block.size());
    if (size > 0) {
      pending_.append(block, 0, static_cast<size_t>(size));
      Lines();
      if (!Flush()) return State::kDone;
      if (left_ <= 0) return Finish();
      continue;
    }
    if (switched) {  // nothing came to the old file between the look and this read
      fd_.Reset();
      pending_.clear();
      switched = false;
      continue;
    }
    if (options_.follow && (switched = SwitchedFile())) continue;
    return more_ ? State::kWaiting : Finish();
  }
}

void LogSession::Lines() {
  size_t begin = 0;
  while (left_ > 0) {
    size_t end = pending_.find('\n', begin);
    if (end == std::string::npos) break;
    Line(std::string_view(pending_).substr(begin, end - begin));
    begin = end + 1;
  }
  pending_.erase(0, begin);
  if (pending_.size() > kMaxLine) pending_.clear();
}

void LogSession::Line(std::string_view line) {
  std::optional<LogLine> entry = ParseLogLine(line);
  if (!entry || !(entry->is_stderr ? options_.err : options_.out)) return;
  if (options_.since) {
    std::optional<int64_t> time = ParseRfc3339(entry->timestamp);
    if (time && *time < *options_.since) return;
  }
  size_t before = out_.size();
  bool& at_start = at_line_start_[entry->is_stderr ? 1 : 0];
  if (options_.timestamps && at_start) out_ += FixedTimestamp(entry->timestamp) + " ";
  out_ += entry->text;
  if (!entry->partial) out_ += '\n';
  at_start = !entry->partial;
  int64_t added = static_cast<int64_t>(out_.size() - before);
  if (added > left_) out_.resize(before + static_cast<size_t>(left_));
  left_ -= std::min(added, left_);
}

bool LogSession::Flush() {
  if (out_.empty()) return true;
  return writer_->Write(std::make_shared<const std::string>(std::exchange(out_, {})));
}

LogSession::State LogSession::Finish() {
  writer_->Finish();
  return State::kDone;
}

}  // namespace keelson::kubelet::server
