#pragma once

namespace keelson::kubelet {

// Whether a thread of this process besides the caller runs, or would if it had a CPU (proc_pid_stat(5), state
// R or D).
bool OthersAtWork();

}  // namespace keelson::kubelet
