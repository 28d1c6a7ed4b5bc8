// How long a node takes to come up: kubelet_node_startup_*.
#pragma once

#include <optional>

#include "lib/base/clock.h"

namespace keelson::kubelet {

class StartupTimes {  // of one thread; made when the kubelet starts
 public:
  explicit StartupTimes(Clock& clock);
  void Registering();  // each time it is tried
  void Registered();   // as a node that was not there before; others have no startup to tell of
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
