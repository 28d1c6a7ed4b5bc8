// Measures real time since its construction, for histograms, whatever Clock the measured code uses.
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
