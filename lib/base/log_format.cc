#include "lib/base/log_format.h"

#include <cstdio>

#include "lib/base/json_quote.h"

namespace keelson::log {

std::string JsonLine(double milliseconds, int verbosity, std::string_view message,
                     const std::pair<std::string_view, std::string>* fields, size_t count) {
  char time[32];
  std::snprintf(time, sizeof time, "%.3f", milliseconds);
  std::string line = std::string("{\"ts\":") + time + ",\"msg\":";
  AppendJsonQuoted(line, message);
  if (verbosity >= 0) line += ",\"v\":" + std::to_string(verbosity);
  for (size_t i = 0; i < count; ++i) {
    line += ',';
    AppendJsonQuoted(line, fields[i].first);
    line += ':';
    AppendJsonQuoted(line, fields[i].second);
  }
  return line + '}';
}

}  // namespace keelson::log
