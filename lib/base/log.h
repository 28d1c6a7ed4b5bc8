// Structured logging to stderr (journald reads it there). One line per event: level, time, message, then
// key="value" pairs. Thread safe. Messages are constant phrases; what varies goes into fields.
//
//   log::Info("Pod started", {{"pod", name}, {"seconds", 3}});
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

#include "lib/base/error.h"

namespace keelson::log {

enum class Level { kDebug, kInfo, kWarn, kError };

struct Field {
  Field(std::string_view k, std::string_view v) : key(k), value(v) {}
  Field(std::string_view k, const std::string& v) : key(k), value(v) {}
  Field(std::string_view k, const char* v) : key(k), value(v) {}
  Field(std::string_view k, const Error& v) : key(k), value(v.message()) {}
  Field(std::string_view k, bool v) : key(k), value(v ? "true" : "false") {}
  template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
  Field(std::string_view k, T v) : key(k), value(std::to_string(v)) {}

  std::string_view key;
  std::string value;
};

// Lines below `level` are dropped. Default: kInfo.
void SetLevel(Level level);
bool Enabled(Level level);
void Write(Level level, std::string_view message, std::initializer_list<Field> fields);

inline void Debug(std::string_view m, std::initializer_list<Field> f = {}) { Write(Level::kDebug, m, f); }
inline void Info(std::string_view m, std::initializer_list<Field> f = {}) { Write(Level::kInfo, m, f); }
inline void Warn(std::string_view m, std::initializer_list<Field> f = {}) { Write(Level::kWarn, m, f); }
inline void Error(std::string_view m, std::initializer_list<Field> f = {}) { Write(Level::kError, m, f); }

}  // namespace keelson::log
