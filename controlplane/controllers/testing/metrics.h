// Reads /metrics in tests.
#pragma once

#include <cstdlib>
#include <string>

#include "lib/metrics/metrics.h"

namespace keelson::controllers {

// The increase of a series, named as it is printed (`name{label="x"}`), since construction.
class Growth {
 public:
  explicit Growth(std::string series) : series_(std::move(series)), before_(Now()) {}
  double operator()() const { return Now() - before_; }

 private:
  double Now() const {
    const std::string text = "\n" + metrics::Print(), mark = "\n" + series_ + " ";
    const size_t at = text.find(mark);
    return at == std::string::npos ? 0 : std::strtod(text.c_str() + at + mark.size(), nullptr);
  }

  const std::string series_;
  const double before_;
};

}  // namespace keelson::controllers
