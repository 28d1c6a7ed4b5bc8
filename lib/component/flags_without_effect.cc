#include "lib/component/flags_without_effect.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <map>

#include "lib/api/duration.h"
#include "lib/base/log.h"

namespace keelson::component {

namespace {

using Kind = FlagWithoutEffect::Kind;

[[noreturn]] void Refuse(const std::string& name, const std::string& text, const std::string& why) {
  throw CLI::ValidationError("invalid argument \"" + text + "\" for \"" + name + "\" flag: " + why);
}

void CheckDuration(const std::string& name, const std::string& text) {
  if (const auto nanos = api::ParseGoDuration(text); !nanos) Refuse(name, text, nanos.error().message());
}

void CheckNumber(const std::string& name, const std::string& text) {
  char* end = nullptr;
  (void)std::strtod(text.c_str(), &end);
  if (text.empty() || *end) Refuse(name, text, "strconv.ParseInt: parsing \"" + text + "\": invalid syntax");
}

// For the eye that compares: "10000000000" and "10s", "1m" and "1m0s" are one and the same.
bool AsksForNothing(const FlagWithoutEffect& flag, const std::string& value) {
  if (flag.standard.data() == kAnyValue.data()) return false;
  if (value == flag.standard || value.empty() || "kube=" + value == flag.standard) return true;
  if (flag.kind != Kind::kDuration) return false;
  const Result<int64_t> given = api::ParseGoDuration(value),
                        standard = api::ParseGoDuration(std::string(flag.standard));
  return given && standard && *given == *standard;
}

CLI::Option* Add(CLI::App& app, const std::string& name, const FlagWithoutEffect& flag) {
  static bool ignored = false;  // CLI11 reads a switch into something
  switch (flag.kind) {
    case Kind::kSwitch:
      return app.add_flag(name, ignored);
    case Kind::kText:
      break;
    case Kind::kList:
      return app.add_option_function<std::vector<std::string>>(name, [](const std::vector<std::string>&) {});
    case Kind::kNumber:
      return app
          .add_option_function<std::string>(name,
                                            [name](const std::string& text) { CheckNumber(name, text); })
          ->type_name("FLOAT");
    case Kind::kDuration:
      return app
          .add_option_function<std::string>(name,
                                            [name](const std::string& text) { CheckDuration(name, text); })
          ->type_name("DURATION");
  }
  return app.add_option_function<std::string>(name, [](const std::string&) {});
}

}  // namespace

void AddFlagsWithoutEffect(CLI::App& app, FlagsWithoutEffect flags) {
  std::map<std::string, CLI::Option*, std::less<>> present;
  for (CLI::Option* option : app.get_options([](CLI::Option*) { return true; })) {
    for (const std::string& name : option->get_lnames()) present.emplace(name, option);
  }
  for (const FlagWithoutEffect& flag : flags) {
    const auto found = present.find(flag.name);
    CLI::Option* option = found != present.end() ? found->second : nullptr;
    if (!option) {
      option = Add(app, "--" + std::string(flag.name), flag);
      option->default_str(std::string(flag.standard));
    }
    option->description("No effect: " + std::string(flag.why))->group("Flags without effect");
  }
}

std::vector<const FlagWithoutEffect*> GivenWithoutEffect(const CLI::App& app, FlagsWithoutEffect flags) {
  std::vector<const FlagWithoutEffect*> out;
  for (const FlagWithoutEffect& flag : flags) {
    const CLI::Option* option = app.get_option("--" + std::string(flag.name));
    if (option->count() == 0) continue;
    if (!AsksForNothing(flag, CLI::detail::join(option->reduced_results(), ","))) out.push_back(&flag);
  }
  return out;
}

void TellFlagsWithoutEffect(const std::vector<const FlagWithoutEffect*>& given) {
  for (const FlagWithoutEffect* flag : given) {
    log::Warn("A flag without effect", {{"flag", "--" + std::string(flag->name)}, {"why", flag->why}});
  }
}

}  // namespace keelson::component
