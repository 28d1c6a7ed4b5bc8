// The current value of one sample of /metrics.
#pragma once

#include <cstdlib>
#include <string>

#include "lib/metrics/metrics.h"

namespace keelson::kubelet {

// `sample`: name and labels as printed. 0: there is none. Metrics are the whole process's, so tests compare values.
inline double MetricValue(const std::string& sample) {
  const std::string text = "\n" + metrics::Print();
  const size_t at = text.find("\n" + sample + " ");
  return at == std::string::npos ? 0 : std::strtod(text.c_str() + at + sample.size() + 2, nullptr);
}

}  // namespace keelson::kubelet
