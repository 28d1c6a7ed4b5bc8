#include "lib/component/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <string_view>

namespace keelson {
namespace {

template <typename Each>
void ForEachApp(CLI::App& app, const Each& each) {
  each(app);
  for (CLI::App* child : app.get_subcommands([](CLI::App*) { return true; })) ForEachApp(*child, each);
}

void TakeOneValueEach(CLI::App& app) {
  ForEachApp(app, [](CLI::App& one) {
    for (CLI::Option* option : one.get_options([](CLI::Option*) { return true; })) {
      bool any_number = option->get_expected_max() >= CLI::detail::expected_max_vector_size;
      if (!option->nonpositional()) continue;
      if (any_number) {
        option->allow_extra_args(false);
      } else if (option->get_multi_option_policy() == CLI::MultiOptionPolicy::Throw) {
        option->take_last();
      }
    }
  });
}

// "--name" or "-n"; null: unknown, which CLI11 will tell. `here` is the command that the arguments so far have named: its
// own flags come first, then those around it.
const CLI::Option* Find(CLI::App& app, CLI::App& here, const std::string& name) {
  const CLI::Option* found = nullptr;
  for (CLI::App* one = &here; one && !found; one = one->get_parent()) found = one->get_option_no_throw(name);
  ForEachApp(app, [&](CLI::App& one) {
    if (!found) found = one.get_option_no_throw(name);
  });
  return found;
}

bool TakesWords(CLI::App& app) {
  if (app.get_allow_extras() || !app.get_subcommands([](CLI::App*) { return true; }).empty()) return true;
  const auto options = app.get_options([](CLI::Option*) { return true; });
  return std::any_of(options.begin(), options.end(),
                     [](const CLI::Option* option) { return option->get_positional(); });
}

CLI::ValidationError Invalid(const std::string& name, const std::string& value, const std::string& why) {
  return CLI::ValidationError("invalid argument \"" + value + "\" for \"" + name + "\" flag: " + why);
}

// As Go's strconv.ParseBool.
bool IsBool(const std::string& value) {
  constexpr std::string_view kBools[] = {"1", "t", "T", "true",  "TRUE",  "True",
                                         "0", "f", "F", "false", "FALSE", "False"};
  return std::find(std::begin(kBools), std::end(kBools), value) != std::end(kBools);
}

bool IsNumber(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type == "INT" || type == "UINT" || type == "FLOAT";
}

// One argument, and what belongs to it.
class Reader {
 public:
  Reader(CLI::App& app, const std::vector<std::string>& arguments) : app_(app), arguments_(arguments) {}

  // As CLI11 wants them: the last one first.
  std::vector<std::string> Run() {
    for (at_ = 0; at_ < arguments_.size(); ++at_) {
      const std::string& argument = arguments_[at_];
      if (argument == "--") {
        out_.insert(out_.end(), arguments_.begin() + static_cast<std::ptrdiff_t>(at_), arguments_.end());
        break;
      }
      if (argument.size() < 2 || argument[0] != '-') {
        if (!TakesWords(app_)) throw CLI::ValidationError("unknown command \"" + argument + "\"");
        out_.push_back(argument);
        const auto named =
            here_->get_subcommands([&](const CLI::App* one) { return one->check_name(argument); });
        if (!named.empty()) {
          here_ = named[0];
        } else if (here_->get_prefix_command()) {
          // A command line of its own begins here.
          out_.insert(out_.end(), arguments_.begin() + static_cast<std::ptrdiff_t>(at_) + 1,
                      arguments_.end());
          break;
        }
      } else {
        Flag(argument);
      }
    }
    std::reverse(out_.begin(), out_.end());
    return std::move(out_);
  }

 private:
  void Flag(const std::string& argument) {
    const size_t equals = argument.find('=');
    std::string name = argument.substr(0, equals);
    if (name.starts_with("--")) std::replace(name.begin(), name.end(), '_', '-');
    const CLI::Option* option = Find(app_, *here_, name);
    if (!option) return Unknown(argument, name);
    const bool is_switch = option->get_items_expected_max() == 0;
    if (equals == std::string::npos) {
      out_.push_back(name);
      // Whatever it looks like, it is the flag's value.
      if (option->get_items_expected_min() == 0) return;
      if (at_ + 1 == arguments_.size()) throw CLI::ArgumentMismatch("flag needs an argument: " + name);
      out_.push_back(arguments_[++at_]);
      return;
    }
    const std::string value = argument.substr(equals + 1);
    if (value.empty() && (is_switch || IsNumber(*option))) {
      throw Invalid(name, value, is_switch ? "want a boolean" : "want a number");
    }
    if (is_switch && !IsBool(value)) {
      throw Invalid(name, value, "strconv.ParseBool: parsing \"" + value + "\": invalid syntax");
    }
    if (is_switch) return out_.push_back(name + "=" + value);
    out_.push_back(name);
    out_.push_back(value);
  }

  // -v2 is -v 2, which CLI11 knows too.
  void Unknown(const std::string& argument, const std::string& name) {
    const bool is_short = !name.starts_with("--");
    if (app_.get_allow_extras() || (is_short && Find(app_, *here_, name.substr(0, 2)))) {
      return out_.push_back(argument);
    }
    throw CLI::ValidationError(is_short ? "unknown shorthand flag: '" + name.substr(1, 1) + "' in " + argument
                                        : "unknown flag: " + name);
  }

  CLI::App& app_;
  CLI::App* here_ = &app_;
  const std::vector<std::string>& arguments_;
  size_t at_ = 0;
  std::vector<std::string> out_;
};

}  // namespace

std::optional<int> ParseFlags(CLI::App& app, const std::vector<std::string>& arguments, std::ostream& out,
                              std::ostream& err) {
  TakeOneValueEach(app);
  try {
    app.parse(Reader(app, arguments).Run());
    return std::nullopt;
  } catch (const CLI::ParseError& e) {
    return app.exit(e, out, err) == 0 ? 0 : 1;
  }
}

std::optional<int> ParseFlags(CLI::App& app, int argc, const char* const* argv) {
  if (app.get_name().empty() && argc > 0) app.name(argv[0]);
  return ParseFlags(app, {argv + std::min(argc, 1), argv + argc}, std::cout, std::cerr);
}

std::vector<std::string> FlagsOf(const CLI::App& app) {
  std::vector<std::string> out;
  for (const CLI::Option* option : app.get_options()) {
    std::string name = option->get_single_name(), value = option->get_default_str();
    if (name == "help" || name == "version") continue;
    if (option->count() > 0) value = CLI::detail::join(option->reduced_results(), ",");
    out.push_back(name + "=" + value);
  }
  return out;
}

std::map<std::string, std::string> FlagsByName(const std::vector<std::string>& flags) {
  std::map<std::string, std::string> out;
  for (const std::string& flag : flags) {
    const size_t equals = std::min(flag.find('='), flag.size());
    out[flag.substr(0, equals)] = flag.substr(std::min(equals + 1, flag.size()));
  }
  return out;
}

}  // namespace keelson
