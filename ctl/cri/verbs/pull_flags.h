// The flags of verbs that pull.
#pragma once

#include <chrono>
#include <string>

#include "ctl/cri/verbs/verb.h"

namespace keelson::ctl {

struct PullFlags {
  std::string creds, auth, username;
  std::chrono::nanoseconds timeout{0};

  void AddTo(CLI::App& verb);
  // Sets the request's credentials, if there are any. Asks for the password of `username` on the terminal. kInvalid:
  // contradictory, or no terminal.
  Result<> Authenticate(cri::PullImageRequest& request) const;
  std::chrono::milliseconds Timeout() const;  // 0: none
};

}  // namespace keelson::ctl
