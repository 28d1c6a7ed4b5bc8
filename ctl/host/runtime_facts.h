// What a container runtime says of itself, by CRI.
#pragma once

#include <string>

#include "lib/base/error.h"

namespace keelson::ctl {

struct RuntimeFacts {
  std::string name, version;
  std::string cgroup_driver;  // systemd, cgroupfs; empty: it does not tell (containerd before 2.0)
  std::string config;  // its settings as JSON, in a form of its own (containerd's); empty: it does not tell
};

// `socket`: a path. kUnimplemented: a daemon listens there that serves no CRI v1. kUnavailable, kTimeout: none answers.
Result<RuntimeFacts> AskRuntimeAt(const std::string& socket);

// Of a CRI endpoint such as unix:///run/containerd/containerd.sock; a path stays as it is.
std::string PathOfSocket(const std::string& url);

}  // namespace keelson::ctl
