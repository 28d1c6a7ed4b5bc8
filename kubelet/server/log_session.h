// One containerLogs response: reads a log file and its successors after rotation, as far as there is data and the
// client keeps up. One thread at a time.
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
    kDone,     // the response is complete, or the client is gone
    kBehind,   // the client does not keep up: call Pump again soon
    kWaiting,  // at the end of the file, which may grow
  };
  // Reads and writes as much as possible without blocking.
  State Pump();
  // The container has ended: the log ends at the end of the file.
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
