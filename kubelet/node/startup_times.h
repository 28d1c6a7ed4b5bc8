// Measures how long the node takes to start: kubelet_node_startup_*.
#pragma once

#include <optional>

#include "lib/base/clock.h"

namespace keelson::kubelet {

class StartupTimes {  // of one thread; made when the kubelet starts
 public:
  explicit StartupTimes(Clock& clock);
  void Registering();  // at each attempt
  void Registered();   // as a new node; others are not measured
  void Ready();

 private:
  double Since(SteadyTime begin) const;

  Clock& clock_;
  const double before_kubelet_;  // from the machine's boot, in seconds
  const SteadyTime begin_;
  std::optional<SteadyTime> registering_, registered_;
  bool ready_ = false;
};

}  // namespace keelson::kubelet
