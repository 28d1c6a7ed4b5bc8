#include "kubelet/pod/termination_message.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fcntl.h>
#include <algorithm>

#include "kubelet/container/labels.h"
#include "lib/base/file.h"

namespace keelson::kubelet {

namespace {

constexpr size_t kMaxMessage = 4096, kMaxLogMessage = 2048, kMaxLogLines = 80;
constexpr off_t kLogTail = 64 << 10;

std::string Annotation(const ContainerRecord& record, const char* name) {
  auto it = record.annotations.find(name);
  return it == record.annotations.end() ? std::string() : it->second;
}

std::string ReadPart(const std::string& path, bool tail, size_t most) {
  auto file = OpenFile(path, O_RDONLY | O_NOFOLLOW);
  if (!file) return "";
  struct stat info = {};
  if (::fstat(file->get(), &info) != 0 || !S_ISREG(info.st_mode)) return "";
  off_t from = tail ? std::max<off_t>(0, info.st_size - static_cast<off_t>(most)) : 0;
  std::string out(most, '\0');
  ssize_t size = ::pread(file->get(), out.data(), out.size(), from);
  out.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return out;
}

// CRI log lines: "<time> <stream> <F|P> <text>".
std::string LogTail(const std::string& path) {
  std::string text = ReadPart(path, true, kLogTail);
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line(text.data() + begin, end - begin);
    begin = end + 1;
    size_t space = 0;
    for (int i = 0; i < 3 && space != std::string_view::npos; ++i) {
      space = line.find(' ', space + (i ? 1 : 0));
    }
    if (space == std::string_view::npos) continue;
    bool partial = line[space - 1] == 'P';
    lines.push_back(std::string(line.substr(space + 1)) + (partial ? "" : "\n"));
  }
  std::string out;
  size_t first = lines.size() > kMaxLogLines ? lines.size() - kMaxLogLines : 0;
  for (size_t i = first; i < lines.size(); ++i) out += lines[i];
  return out.size() > kMaxLogMessage ? out.substr(out.size() - kMaxLogMessage) : out;
}

}  // namespace

std::string TerminationMessage(const ContainerRecord& record) {
  std::string path = Annotation(record, kMessagePathAnnotation);
  std::string message;
  for (const cri::Mount& mount : record.mounts) {
    if (!path.empty() && mount.container_path == path) {
      message = ReadPart(mount.host_path, false, kMaxMessage);
    }
  }
  bool logs = message.empty() && record.exit_code != 0 &&
              Annotation(record, kMessagePolicyAnnotation) == "FallbackToLogsOnError";
  return logs ? LogTail(record.log_path) : message;
}

}  // namespace keelson::kubelet
