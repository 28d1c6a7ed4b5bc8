// What /metrics has of one sample at this moment.
#pragma once

#include <cstdlib>
#include <string>

#include "lib/metrics/metrics.h"

namespace keelson::kubelet {

// `sample`: name and labels as they are printed. 0 where there is none: of the whole process, so tests look
// at how much it has grown.
inline double MetricValue(const std::string& sample) {
  const std::string text = "\n" + metrics::Print();
  const size_t at = text.find("\n" + sample + " ");
  return at == std::string::npos ? 0 : std::strtod(text.c_str() + at + sample.size() + 2, nullptr);
}

}  // namespace keelson::kubelet
