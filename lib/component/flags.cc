#include "lib/component/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

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

// "--name" or "-n"; null: unknown, which CLI11 will tell.
const CLI::Option* Find(CLI::App& app, const std::string& name) {
  const CLI::Option* found = nullptr;
  ForEachApp(app, [&](CLI::App& one) {
    if (!found) found = one.get_option_no_throw(name);
  });
  return found;
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
        out_.push_back(argument);
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
    const CLI::Option* option = Find(app_, name);
    if (!option) return out_.push_back(argument);
    const bool is_switch = option->get_items_expected_max() == 0;
    if (equals == std::string::npos) {
      out_.push_back(name);
      // Whatever it looks like, it is the flag's value.
      if (option->get_items_expected_min() > 0 && at_ + 1 < arguments_.size())
        out_.push_back(arguments_[++at_]);
      return;
    }
    const std::string value = argument.substr(equals + 1);
    if (value.empty() && (is_switch || IsNumber(*option))) {
      throw CLI::ValidationError("invalid argument \"\" for \"" + name + "\" flag: want a " +
                                 (is_switch ? "boolean" : "number"));
    }
    if (is_switch) return out_.push_back(name + "=" + value);
    out_.push_back(name);
    out_.push_back(value);
  }

  CLI::App& app_;
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

}  // namespace keelson
