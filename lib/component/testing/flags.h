// For tests of programs' flags.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "lib/component/flags.h"

namespace keelson {

// Gives each flag that `add` adds as "--flag=", with another word behind it. It has to be refused by its
// name, or to have the empty value; the word belongs to no flag. Returns what is otherwise.
inline std::vector<std::string> FlagsThatAreNotEmpty(const std::function<void(CLI::App&)>& add) {
  CLI::App all;
  add(all);
  std::vector<std::string> out;
  for (const CLI::Option* option : all.get_options()) {
    const std::string name = option->get_single_name();
    if (name == "help") continue;
    const std::string flag = (option->get_lnames().empty() ? "-" : "--") + name;
    CLI::App app;
    add(app);
    app.allow_extras();
    std::ostringstream told;
    if (ParseFlags(app, {flag + "=", "word"}, told, told)) {
      if (told.str().find(flag) == std::string::npos) out.push_back(flag + ": " + told.str());
      continue;
    }
    const bool empty = app.get_option(flag)->results() == std::vector<std::string>{""};
    if (!empty || app.remaining() != std::vector<std::string>{"word"}) out.push_back(flag);
  }
  return out;
}

}  // namespace keelson
