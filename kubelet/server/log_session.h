// One containerLogs response: reads a log file, and what it is rotated to, as far as there is something to
// read and the client keeps up. Used by one thread at a time.
#pragma once

#include <memory>
#include <string>

#include "kubelet/server/backend.h"
#include "kubelet/server/log_line.h"
#include "lib/base/fd.h"
#include "lib/http/server/server.h"

namespace keelson::kubelet::server {

class LogSession {
 public:
  LogSession(LogOptions options, std::string path, std::shared_ptr<http::ResponseWriter> writer);

  enum class State {
    kDone,     // the response is complete, or the client has gone
    kBehind,   // the client does not keep up: try again soon
    kWaiting,  // at the end of the file, which may grow
  };
  State Pump();
  // The container has ended: the next end of the file is the end of the log.
  void NoMore() { more_ = false; }
  const std::string& path() const { return path_; }

 private:
  bool Open();
  bool SwitchedFile();
  void Lines();
  void Line(std::string_view line);
  bool Flush();
  State Finish();

  const LogOptions options_;
  const std::string path_;
  const std::shared_ptr<http::ResponseWriter> writer_;
  UniqueFd fd_;
  std::string pending_;  // an incomplete line
  std::string out_;
  int64_t left_;  // of limit_bytes
  bool more_;
  bool first_file_ = true;
  bool at_line_start_[2] = {true, true};  // of stdout and stderr: parts of a line get one timestamp
};

}  // namespace keelson::kubelet::server
