// What keeps a role that has lost its election from writing: its requests fail from that moment on, whatever its threads are
// about to do.
#pragma once

#include <atomic>
#include <memory>

#include "lib/client/transport.h"

namespace keelson::controlplane {

class Fence {  // thread safe
 public:
  void Open() { open_.store(true); }
  void Close() { open_.store(false); }
  bool open() const { return open_.load(); }

 private:
  std::atomic<bool> open_{true};
};

// Passes requests on to `inner` while the fence is open, and answers kUnavailable while it is not. Requests under way and
// open streams go on.
std::shared_ptr<client::Transport> Fenced(std::shared_ptr<client::Transport> inner,
                                          std::shared_ptr<const Fence> fence);

}  // namespace keelson::controlplane
