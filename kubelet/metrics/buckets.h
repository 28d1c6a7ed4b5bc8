// Bucket bounds that several histograms share.
#pragma once

#include <vector>

namespace keelson::kubelet {

// The default of Prometheus' client libraries.
inline std::vector<double> DefaultBuckets() {
  return {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};
}

// From a pod's creation to its containers' start.
inline std::vector<double> PodStartBuckets() {
  return {0.5, 1,   2,   3,   4,   5,   6,   8,   10,   20,   30,   45,  60,
          120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600};
}

}  // namespace keelson::kubelet
