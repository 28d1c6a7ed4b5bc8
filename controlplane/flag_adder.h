// How flags are written down: a name, where the value goes, what it means. All of them show their defaults.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace keelson::controlplane {

struct FlagAdder {
  CLI::App& app;

  template <typename T>
  CLI::Option* operator()(const std::string& name, T& value, const char* help) const {
    return app.add_option(name, value, help)->capture_default_str();
  }
  // One with commas, or several times; the empty value is the empty list.
  CLI::Option* operator()(const std::string& name, std::vector<std::string>& value, const char* help) const {
    auto set = [&value](std::vector<std::string> values) {
      std::erase(values, "");
      value = std::move(values);
    };
    return app.add_option_function<std::vector<std::string>>(name, set, help)
        ->delimiter(',')
        ->default_str("[" + CLI::detail::join(value, ",") + "]");
  }
  // 30s, 5m: into a number of seconds.
  void Seconds(const char* name, int& seconds, const char* help) const {
    static const CLI::AsNumberWithUnit duration(std::map<std::string, int>{{"s", 1}, {"m", 60}, {"h", 3600}},
                                                CLI::AsNumberWithUnit::UNIT_REQUIRED);
    app.add_option(name, seconds, help)->transform(duration);
  }
  // --name, or --name=false.
  CLI::Option* operator()(const std::string& name, bool& value, const char* help) const {
    return app.add_flag(name, value, help)->capture_default_str();
  }
};

}  // namespace keelson::controlplane
