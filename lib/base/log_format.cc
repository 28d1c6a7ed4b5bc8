#include "lib/base/log_format.h"

#include <cstdio>

namespace keelson::log {
namespace {

// The length of the UTF-8 sequence at the start of `text`; 0: not valid UTF-8.
size_t Sequence(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const size_t size = first < 0x80   ? 1
                      : first < 0xc2 ? 0
                      : first < 0xe0 ? 2
                      : first < 0xf0 ? 3
                      : first < 0xf5 ? 4
                                     : 0;
  if (size > text.size()) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  return size;
}

void AppendString(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const char c = text[0];
    const size_t size = Sequence(text);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
      out += escaped;
    } else if (size == 0) {
      out += "\\ufffd";
    } else {
      out += text.substr(0, size);
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  out += '"';
}

}  // namespace

std::string JsonLine(double milliseconds, int verbosity, std::string_view message,
                     const std::pair<std::string_view, std::string>* fields, size_t count) {
  char time[32];
  std::snprintf(time, sizeof time, "%.3f", milliseconds);
  std::string line = std::string("{\"ts\":") + time + ",\"msg\":";
  AppendString(line, message);
  if (verbosity >= 0) line += ",\"v\":" + std::to_string(verbosity);
  for (size_t i = 0; i < count; ++i) {
    line += ',';
    AppendString(line, fields[i].first);
    line += ':';
    AppendString(line, fields[i].second);
  }
  return line + '}';
}

}  // namespace keelson::log
