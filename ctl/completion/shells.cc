#include "ctl/completion/shells.h"

#include <functional>

namespace keelson::ctl {
namespace {

// In single quotes, for all three shells.
std::string Quoted(const std::string& text, bool fish = false) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += fish ? "\\'" : "'\\''";
    } else if (c == '\\' && fish) {
      out += "\\\\";
    } else {
      out += c == '\n' ? ' ' : c;
    }
  }
  return out + "'";
}

// Calls `visit` for the program, whose path is empty, and for each command below it: " token create".
void Walk(const Command& command, const std::string& path,
          const std::function<void(const std::string& path, const Command& command)>& visit) {
  visit(path, command);
  for (const Command& one : command.commands) Walk(one, path + " " + one.name, visit);
}

// Patterns of what a command line may begin with, and the path that each means.
std::string Cases(const Command& program,
                  const std::function<std::string(const std::string&, const std::string&)>& line) {
  std::string out;
  Walk(program, "", [&](const std::string& path, const Command& command) {
    for (const Command& one : command.commands) {
      const std::string meaning = path + " " + one.name;
      out += line(meaning, meaning);
      for (const std::string& alias : one.aliases) out += line(path + " " + alias, meaning);
    }
  });
  return out;
}

std::string PosixCases(const Command& program, const char* variable) {
  return Cases(program, [&](const std::string& pattern, const std::string& meaning) {
    return "      " + Quoted(pattern) + ") " + variable + "=" + Quoted(meaning) + " ;;\n";
  });
}

}  // namespace

std::string BashCompletion(const Command& program) {
  const std::string function = "_" + program.name;
  std::string out = "# Completion of " + program.name + " in bash.\n" + function +
                    "() {\n  local at= i words= current=${COMP_WORDS[COMP_CWORD]}\n"
                    "  for ((i = 1; i < COMP_CWORD; i++)); do\n    case \"$at ${COMP_WORDS[i]}\" in\n" +
                    PosixCases(program, "at") + "    esac\n  done\n  case $at in\n";
  Walk(program, "", [&](const std::string& path, const Command& command) {
    std::string words;
    for (const Command& one : command.commands) words += one.name + " ";
    for (const CommandFlag& flag : command.flags) {
      for (const std::string& name : flag.names) words += name + " ";
    }
    if (!words.empty()) words.pop_back();
    out += "    " + Quoted(path) + ") words=" + Quoted(words) + " ;;\n";
  });
  return out + "  esac\n  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n}\ncomplete -o default -F " +
         function + " " + program.name + "\n";
}

std::string ZshCompletion(const Command& program) {
  const std::string function = "_" + program.name;
  auto choice = [](const std::string& name, const std::string& help) {
    std::string escaped;
    for (const char c : name) escaped += c == ':' ? "\\:" : std::string(1, c);
    return "        " + Quoted(escaped + ":" + help) + "\n";
  };
  std::string out = "#compdef " + program.name + "\n# Completion of " + program.name + " in zsh.\n" +
                    function +
                    "() {\n  local at= i\n  local -a choices\n  for ((i = 2; i < CURRENT; i++)); do\n"
                    "    case \"$at ${words[i]}\" in\n" +
                    PosixCases(program, "at") + "    esac\n  done\n  case $at in\n";
  Walk(program, "", [&](const std::string& path, const Command& command) {
    out += "    " + Quoted(path) + ")\n      choices=(\n";
    for (const Command& one : command.commands) out += choice(one.name, one.help);
    for (const CommandFlag& flag : command.flags) {
      for (const std::string& name : flag.names) out += choice(name, flag.help);
    }
    out += "      ) ;;\n";
  });
  return out + "  esac\n  _describe " + program.name +
         " choices || _files\n}\nif [[ $funcstack[1] == " + function + " ]]; then\n  " + function +
         " \"$@\"\nelse\n  compdef " + function + " " + program.name + "\nfi\n";
}

std::string FishCompletion(const Command& program) {
  const std::string function = "__" + program.name + "_at";
  std::string out = "# Completion of " + program.name + " in fish.\nfunction " + function +
                    "\n  set -l at ''\n  for word in (commandline -opc)[2..-1]\n    switch \"$at $word\"\n" +
                    Cases(program,
                          [](const std::string& pattern, const std::string& meaning) {
                            return "      case " + Quoted(pattern, true) + "\n        set at " +
                                   Quoted(meaning, true) + "\n";
                          }) +
                    "    end\n  end\n  test \"$at\" = \"$argv[1]\"\nend\n";
  Walk(program, "", [&](const std::string& path, const Command& command) {
    const std::string begin =
        "complete -c " + program.name + " -n " + Quoted(function + " \"" + path + "\"", true);
    for (const Command& one : command.commands) {
      out += begin + " -a " + one.name + " -d " + Quoted(one.help, true) + "\n";
    }
    for (const CommandFlag& flag : command.flags) {
      out += begin;
      for (const std::string& name : flag.names) {
        out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      out += (flag.takes_value ? " -r -d " : " -d ") + Quoted(flag.help, true) + "\n";
    }
  });
  return out;
}

}  // namespace keelson::ctl
