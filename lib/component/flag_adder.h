// How flags are written down: a name, where the value goes, what it means (a sentence without a full stop).
// Help shows each with its type and its default.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "lib/api/duration.h"

namespace keelson::component {

struct FlagAdder {
  CLI::App& app;

  template <typename T>
  CLI::Option* operator()(const std::string& name, T& value, const char* help) const {
    return app.add_option(name, value, help)->capture_default_str();
  }
  // A comma-separated or repeated flag; an empty value is an empty list.
  CLI::Option* operator()(const std::string& name, std::vector<std::string>& value, const char* help) const {
    auto set = [&value](std::vector<std::string> values) {
      std::erase(values, "");
      value = std::move(values);
    };
    return app.add_option_function<std::vector<std::string>>(name, set, help)
        ->delimiter(',')
        ->default_str("[" + CLI::detail::join(value, ",") + "]");
  }
  // As Go writes it: 30s, 1h30m, 1.5s. What is less than the type's unit is cut off.
  template <typename Rep, typename Period>
  CLI::Option* operator()(const std::string& name, std::chrono::duration<Rep, Period>& value,
                          const char* help) const {
    auto set = [&value, name](const std::string& text) {
      const Result<int64_t> nanos = api::ParseGoDuration(text);
      if (!nanos) {
        throw CLI::ValidationError("invalid argument \"" + text + "\" for \"" + name +
                                   "\" flag: " + nanos.error().message());
      }
      value =
          std::chrono::duration_cast<std::chrono::duration<Rep, Period>>(std::chrono::nanoseconds(*nanos));
    };
    return app.add_option_function<std::string>(name, set, help)
        ->type_name("DURATION")
        ->default_str(api::FormatGoDuration(std::chrono::nanoseconds(value).count()));
  }
  // A boolean flag: --name, or --name=false.
  CLI::Option* operator()(const std::string& name, bool& value, const char* help) const {
    return app.add_flag(name, value, help)->default_str(value ? "true" : "false");
  }
};

}  // namespace keelson::component
