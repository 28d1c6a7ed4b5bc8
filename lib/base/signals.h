// The signals that end a program: SIGTERM and SIGINT. A thread of a library that does not block them would
// take one and end the process at once, past every orderly stop.
#pragma once

#include <functional>

namespace keelson {

// Blocks SIGTERM and SIGINT in this thread and in all that it starts, and ignores SIGPIPE. First in main(),
// before any thread exists. Until a StopOnSignal exists, a signal ends the process as it does by default:
// programs wait for others while they start. A further call changes nothing.
void BlockSignals();

// From here on a signal calls `stop` instead, on a thread of its own; at most one lives at a time. After its
// end signals are ignored: the process is on its way out.
class StopOnSignal {
 public:
  explicit StopOnSignal(std::function<void()> stop);
  ~StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;
};

}  // namespace keelson
