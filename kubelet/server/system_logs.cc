#include "kubelet/server/system_logs.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "kubelet/server/service_logs.h"
#include "lib/base/file.h"
#include "lib/base/percent.h"
#include "lib/linux/beneath.h"

namespace keelson::kubelet::server {

namespace {

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
  for (const std::string& name : names) {
    page += "<a href=\"" + Escaped(PercentEncode(name)) + "\">" + Escaped(name) + "</a>\n";
  }
  writer.Reply(200, {{"Content-Type", "text/html; charset=utf-8"}}, page + "</pre>\n");
}

void ReplyText(http::ResponseWriter& writer, int status, std::string text) {
  writer.Reply(status, {{"Content-Type", "text/plain; charset=utf-8"}}, std::move(text));
}

void ServeFile(const std::string& directory, std::string path, http::ResponseWriter& writer) {
  path.erase(0, path.find_first_not_of('/'));
  auto root = OpenFile(directory, O_PATH | O_DIRECTORY);
  // Without O_NONBLOCK a FIFO would hold the thread; a path does not go on behind a NUL.
  auto fd = !root || path.find('\0') != std::string::npos
                ? Result<UniqueFd>(Error(Code::kNotFound, "no such log"))
                : linux::OpenBeneath(root->get(), path.empty() ? "." : path, O_RDONLY | O_NONBLOCK);
  struct stat info = {};
  if (!fd || ::fstat(fd->get(), &info) != 0) return ReplyText(writer, 404, "404 page not found\n");
  if (S_ISDIR(info.st_mode)) return List(std::move(*fd), writer);
  if (!S_ISREG(info.st_mode)) return ReplyText(writer, 403, "403 Forbidden\n");
  writer.Start(200, {{"Content-Type", "text/plain; charset=utf-8"}});
  if (SendFile(fd->get(), writer)) writer.Finish();
}

}  // namespace

void ServeSystemLogs(const std::string& directory, const http::ServerRequest& request,
                     http::ResponseWriter& writer, bool queries) {
  std::string path = request.path.substr(std::min(request.path.size(), sizeof("/logs") - 1));
  if (!queries) return ServeFile(directory, std::move(path), writer);
  auto query = ParseLogQuery(request.query);
  if (!query) return ReplyText(writer, 400, query.error().message() + "\n");
  if (!*query) return ServeFile(directory, std::move(path), writer);
  if (path.find_first_not_of('/') != std::string::npos) {
    return ReplyText(writer, 406, "path not allowed in query mode\n");
  }
  if (auto checked = CheckLogQuery(**query); !checked) {
    return ReplyText(writer, 406, checked.error().message() + "\n");
  }
  if (!(*query)->services.empty()) return ServeServiceLogs(**query, directory, writer);
  path = (*query)->files.front();
  std::replace(path.begin(), path.end(), '\\', '/');
  ServeFile(directory, std::move(path), writer);
}

}  // namespace keelson::kubelet::server
