#include "kubelet/server/service_logs.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>

#include "lib/base/file.h"
#include "lib/base/pause.h"
#include "lib/event/process.h"
#include "lib/linux/beneath.h"

namespace keelson::kubelet::server {

namespace {

using Time = std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience(30);  // with the journal, for a whole request
constexpr size_t kPiece = 256 << 10, kMostQueued = 4 << 20;

// Takes the program's words, errors among them, as they come. False when it cannot be run.
bool RunProgram(const std::vector<std::string>& argv, Time::time_point until,
                const std::function<bool(std::string)>& take) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return false;
  UniqueFd read(ends[0]), write(ends[1]);
  event::ProcessOptions options;
  options.argv = argv;
  options.output_file = "/proc/self/fd/" + std::to_string(write.get());
  auto process = event::Process::Start(options);
  if (!process) return false;
  write.Reset();
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Time::now()).count();
    pollfd waits{read.get(), POLLIN, 0};
    if (left <= 0 || ::poll(&waits, 1, static_cast<int>(left)) <= 0) return true;
    std::string piece(kPiece, '\0');
    const ssize_t got = ::read(read.get(), piece.data(), piece.size());
    if (got <= 0) return true;
    piece.resize(static_cast<size_t>(got));
    if (!take(std::move(piece))) return true;
  }
}

bool Send(std::string text, http::ResponseWriter& writer) {
  if (!writer.Write(std::make_shared<const std::string>(std::move(text)))) return false;
  // A client that reads slowly is waited for: logs may be larger than memory.
  while (writer.queued_bytes() > kMostQueued && !writer.closed()) {
    Pause(Clock::Real(), std::chrono::milliseconds(5), {});
  }
  return !writer.closed();
}

// Whether the journal knows the service. Its answer for an unknown service equals that for a silent one.
bool IsInJournal(const std::string& units, const std::string& service) {
  return ("\n" + units).find("\n" + service + ".service\n") != std::string::npos;
}

// <service>, <service>.log or <service>/<service>.log: the first that is there.
void SendFilesOf(const std::string& service, const std::string& directory, http::ResponseWriter& writer) {
  auto root = OpenFile(directory, O_PATH | O_DIRECTORY);
  for (const std::string& name : {service, service + ".log", service + "/" + service + ".log"}) {
    if (!root) break;
    auto fd = linux::OpenBeneath(root->get(), name, O_RDONLY | O_NONBLOCK);
    struct stat info = {};
    if (!fd || ::fstat(fd->get(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    SendFile(fd->get(), writer);
    return;
  }
  Send("\nlog not found for " + service + "\n", writer);
}

}  // namespace

bool SendFile(int fd, http::ResponseWriter& writer) {
  while (true) {
    std::string piece(kPiece, '\0');
    const ssize_t got = ::read(fd, piece.data(), piece.size());
    if (got <= 0) return true;
    piece.resize(static_cast<size_t>(got));
    if (!Send(std::move(piece), writer)) return false;
  }
}

void ServeServiceLogs(const LogQuery& query, const std::string& directory, http::ResponseWriter& writer) {
  const auto until = Time::now() + kPatience;
  std::string units;
  (void)RunProgram({"journalctl", "--field", "_SYSTEMD_UNIT"}, until, [&units](std::string piece) {
    units += piece;
    return true;
  });
  std::vector<std::string> journal, files;
  std::string named;  // the latter, as Go prints a list
  for (const std::string& service : query.services) {
    const bool known = IsInJournal(units, service);
    (known ? journal : files).push_back(service);
    if (!known) named += (named.empty() ? "" : " ") + service;
  }
  writer.Start(200, {{"Content-Type", "text/plain;charset=UTF-8"}});
  if (!journal.empty() && !RunProgram(JournalCommand(query, journal), until, [&writer](std::string piece) {
        return Send(std::move(piece), writer);
      })) {
    Send("\nerror: journal output not available\n", writer);
  }
  if (!files.empty() && query.HasOptions()) {
    Send("\noptions present and query resolved to log files for [" + named +
             "]\ntry without specifying options\n",
         writer);
  } else {
    for (const std::string& service : files) SendFilesOf(service, directory, writer);
  }
  writer.Finish();
}

}  // namespace keelson::kubelet::server
