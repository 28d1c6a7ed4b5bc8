// Waiting in tests for what sends no event: other processes, the kernel, threads without a hook.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace keelson {

// Polls until the condition holds. False after `patience`, which is generous: a loaded machine is slow, and only a test that
// fails waits so long.
inline bool Eventually(const std::function<bool()>& condition,
                       std::chrono::seconds patience = std::chrono::minutes(1)) {
  const std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

}  // namespace keelson
