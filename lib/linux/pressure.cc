#include "lib/linux/pressure.h"

#include <cstdio>
#include <sstream>

#include "lib/base/file.h"

namespace keelson::linux {

std::optional<Pressure> ParsePressure(const std::string& text) {
  Pressure out;
  bool found = false;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    char kind[8] = {};
    Stall stall;
    unsigned long long total = 0;
    if (std::sscanf(line.c_str(), "%7s avg10=%lf avg60=%lf avg300=%lf total=%llu", kind, &stall.avg10,
                    &stall.avg60, &stall.avg300, &total) != 5) {
      continue;
    }
    stall.total_us = total;
    const std::string name = kind;
    if (name == "some") out.some = stall;
    if (name == "full") out.full = stall;
    found = found || name == "some";
  }
  return found ? std::optional<Pressure>(out) : std::nullopt;
}

std::optional<Pressure> ReadPressure(const std::string& path) {
  auto text = ReadFile(path);
  return text ? ParsePressure(*text) : std::nullopt;
}

}  // namespace keelson::linux
