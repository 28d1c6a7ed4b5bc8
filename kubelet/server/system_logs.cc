#include "kubelet/server/system_logs.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "lib/base/file.h"
#include "lib/base/pause.h"
#include "lib/linux/beneath.h"

namespace keelson::kubelet::server {

namespace {

constexpr size_t kPiece = 256 << 10, kMostQueued = 4 << 20;

std::string Escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

void List(UniqueFd fd, http::ResponseWriter& writer) {
  std::unique_ptr<DIR, int (*)(DIR*)> dir(::fdopendir(fd.Release()), ::closedir);
  if (!dir) return writer.Reply(500, {}, "Error reading directory\n");
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(dir.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name + (entry->d_type == DT_DIR ? "/" : ""));
  }
  std::sort(names.begin(), names.end());
  std::string page = "<!doctype html>\n<meta name=\"viewport\" content=\"width=device-width\">\n<pre>\n";
  for (const std::string& name : names)
    page += "<a href=\"" + Escaped(http::PercentEncode(name)) + "\">" + Escaped(name) + "</a>\n";
  writer.Reply(200, {{"Content-Type", "text/html; charset=utf-8"}}, page + "</pre>\n");
}

void Send(int fd, http::ResponseWriter& writer) {
  writer.Start(200, {{"Content-Type", "text/plain; charset=utf-8"}});
  while (true) {
    std::string piece(kPiece, '\0');
    const ssize_t got = ::read(fd, piece.data(), piece.size());
    if (got <= 0) break;
    piece.resize(static_cast<size_t>(got));
    if (!writer.Write(std::make_shared<const std::string>(std::move(piece)))) return;
    // A client that reads slowly is waited for: logs may be larger than memory.
    while (writer.queued_bytes() > kMostQueued && !writer.closed())
      Pause(Clock::Real(), std::chrono::milliseconds(5), {});
  }
  writer.Finish();
}

}  // namespace

void ServeSystemLogs(const std::string& directory, const http::ServerRequest& request,
                     http::ResponseWriter& writer) {
  std::string path = request.path.substr(std::min(request.path.size(), sizeof("/logs") - 1));
  path.erase(0, path.find_first_not_of('/'));
  auto root = OpenFile(directory, O_PATH | O_DIRECTORY);
  // Without O_NONBLOCK a FIFO would hold the thread; a path does not go on behind a NUL.
  auto fd = !root || path.find('\0') != std::string::npos
                ? Result<UniqueFd>(Error(Code::kNotFound, "no such log"))
                : linux::OpenBeneath(root->get(), path.empty() ? "." : path, O_RDONLY | O_NONBLOCK);
  struct stat info = {};
  if (!fd || ::fstat(fd->get(), &info) != 0)
    return writer.Reply(404, {{"Content-Type", "text/plain; charset=utf-8"}}, "404 page not found\n");
  if (S_ISDIR(info.st_mode)) return List(std::move(*fd), writer);
  if (!S_ISREG(info.st_mode))
    return writer.Reply(403, {{"Content-Type", "text/plain; charset=utf-8"}}, "403 Forbidden\n");
  Send(fd->get(), writer);
}

}  // namespace keelson::kubelet::server
