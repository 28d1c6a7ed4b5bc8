#include "lib/base/log.h"

#include <atomic>
#include <chrono>
#include <vector>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "lib/base/log_format.h"

namespace keelson::log {
namespace {

std::atomic<bool> json{false};

spdlog::logger& Logger() {
  static spdlog::logger* logger = [] {
    auto* made = new spdlog::logger("keelson", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%L%m%d %H:%M:%S.%f %t] %v", spdlog::pattern_time_type::utc);
    made->flush_on(spdlog::level::trace);
    return made;
  }();
  return *logger;
}

spdlog::level::level_enum Convert(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarn:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

void AppendQuoted(std::string& out, std::string_view text) {
  out += '"';
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  out += '"';
}

void WriteJson(Level level, std::string_view message, std::initializer_list<Field> fields) {
  constexpr int kErrorVerbosity = -1, kDebugVerbosity = 4;
  std::vector<std::pair<std::string_view, std::string>> pairs;
  for (const Field& field : fields) pairs.emplace_back(field.key, field.value);
  const std::chrono::duration<double, std::milli> now = std::chrono::system_clock::now().time_since_epoch();
  const int verbosity = level == Level::kError   ? kErrorVerbosity
                        : level == Level::kDebug ? kDebugVerbosity
                                                 : 0;
  const std::string line = JsonLine(now.count(), verbosity, message, pairs.data(), pairs.size());
  Logger().log(Convert(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace

Result<> SetFormat(std::string_view name) {
  if (name != "text" && name != "json") {
    return keelson::Error(Code::kInvalid, "Unsupported log format: \"" + std::string(name) + "\"");
  }
  json = name == "json";
  if (json) Logger().set_pattern("%v");
  return {};
}

void SetLevel(Level level) { Logger().set_level(Convert(level)); }
bool Enabled(Level level) { return Logger().should_log(Convert(level)); }

void Write(Level level, std::string_view message, std::initializer_list<Field> fields) {
  if (!Enabled(level)) return;
  if (json.load(std::memory_order_relaxed)) return WriteJson(level, message, fields);
  std::string line;
  AppendQuoted(line, message);
  for (const Field& field : fields) {
    line += ' ';
    line += field.key;
    line += '=';
    AppendQuoted(line, field.value);
  }
  Logger().log(Convert(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace keelson::log
