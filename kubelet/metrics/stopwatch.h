// Seconds since its making, for histograms: real ones, whatever clock drives the code that is measured.
#pragma once

#include <chrono>

namespace keelson::kubelet {

class Stopwatch {
 public:
  double Seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace keelson::kubelet
